"""The command that asks an endpoint what it can do: probe.

Entry point: `register`.  What is asked is in `taskweave.backbones.probe`; here it is said what each finding means and what to set.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson, BaseUrl
from taskweave.errors import BackboneOut, BadInput

if TYPE_CHECKING:
    from taskweave.backbones.probe import Found
    from taskweave.backbones.probed import Probed
    from taskweave.records import Backbone

ENOUGH = 0.9  # of the best pace: more requests at once are not worth their while


class Finding(NamedTuple):
    """One row of the table: what was looked for, what was found, what that means and what to set."""

    what: str
    found: str
    means: str = ""


def probe(
    backbone: Annotated[
        str, typer.Option("--backbone", metavar="B", help="What to ask, e.g. --backbone openai:gpt-4o-mini.", show_default=False)
    ],
    base_url: BaseUrl = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=3600, help="About how long it may take, e.g. --seconds 120 for a slow server.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Find out what a backbone can do, with few calls, e.g. [bold]taskweave probe --backbone openai:llama3.2 --base-url URL[/bold].

    Is it reachable and the model known; how long a prompt it really sees; which form of structured answer holds; does it report usage,
    repeat a seed; how fast is it.  What is found is kept for a week: `run` chooses its style by it.
    """
    if backbone == "scripted":
        raise BadInput("backbone 'scripted' answers here, without a server: there is nothing to probe. Name one, for example openai:MODEL.")
    from taskweave.answering import make_ready
    from taskweave.backbones import backbone as made
    from taskweave.backbones.probed import keep, place_of, recall
    from taskweave.looking import longest
    from taskweave.prompts import PromptBook

    answering = made(backbone, base_url=base_url)
    make_ready(answering)
    place = place_of(answering.name, base_url)
    where = answering.name if place is None else f"{answering.name} at {place}"
    output.note(f"Asking {where} for about {seconds:g} seconds.")
    found = asyncio.run(_probed(answering, place, seconds))
    if found.trouble:
        raise BackboneOut(f"{where} cannot be used: {found.trouble.rstrip('.')}.{_nearest(answering.name, found)}")
    probed = found.probed.beside(recall(answering.name, base_url))
    keep(probed)
    cost = {
        "calls": len(found.sent),
        "prompt_tokens": found.prompt_tokens,
        "completion_tokens": found.completion_tokens,
        "seconds": round(found.seconds, 1),
    }
    output.answer({"reachable": True, **probed.model_dump(mode="json"), "notes": dict(found.notes), "cost": cost})
    output.show(_table(findings(found, probed, longest(PromptBook.load()))))
    output.line(
        f"It took {len(found.sent)} calls, {found.prompt_tokens:,} prompt and {found.completion_tokens:,} completion tokens, "
        f"{found.seconds:.0f} s."
    )


async def _probed(answering: Backbone, place: str | None, seconds: float) -> Found:
    from taskweave.backbones.probe import probe as ask

    try:
        return await ask(answering, base_url=place, seconds=seconds)
    finally:
        # Its connections belong to this loop, which ends here.
        if (close := getattr(answering, "close", None)) is not None:
            await close()


def _nearest(name: str, found: Found) -> str:
    """The models that are listed, where the one that was asked for is not among them."""
    if not found.models or found.probed.listed:
        return ""
    near = difflib.get_close_matches(name.partition(":")[2], found.models, n=3, cutoff=0.3) or list(found.models[:3])
    return f" It lists {len(found.models)} models, among them {', '.join(near)}."


def findings(found: Found, probed: Probed, full: int) -> Iterator[Finding]:
    """What was found, in the order of the table; `full` is the longest prompt of the full style in tokens."""
    notes = found.notes
    yield Finding("reachable", "yes", f"the first answer came after {found.sent[0].seconds:.1f} s")
    listed = {
        True: ("yes", ""),
        False: ("no", f"it answers all the same; listed are {_some(found.models)}"),
        None: ("not known", notes.get("listed", "the endpoint has no list of models")),
    }[probed.listed]
    yield Finding("model listed", *listed)
    yield _context(probed, notes.get("context", ""), full)
    usage = {True: ("reported", ""), False: ("not reported", "tokens are counted as bytes / 4, so that costs and budgets are estimates")}
    yield Finding("usage", *usage.get(bool(probed.usage), ("not known", "")))
    yield _rung(probed, notes.get("rung", ""))
    called = {
        True: ("native", "an organization's tools are chosen by native calls (`tools: on`)"),
        False: ("not native", "a tool is chosen by a structured answer, or of some by a second question"),
        None: ("not known", ""),
    }[probed.tools]
    yield Finding("tool calls", called[0], _joined(called[1], notes.get("tools", "")))
    repeats = {True: ("repeats", ""), False: ("does not repeat", "a run can be replayed from its journal, not asked for again")}
    seed = repeats[probed.seed_repeats] if probed.seed_repeats is not None else ("not known", "")
    yield Finding("seed", seed[0], _joined(seed[1], notes.get("seed", "")))
    if probed.omitted:
        yield Finding("not taken", ", ".join(probed.omitted), "the endpoint refuses or limits these; requests are sent without them")
    yield _pace(found.probed.rates, notes.get("rates", ""))
    yield Finding("style", probed.style, f"what 'run' takes where --style is not given{_why(probed)}")


def _context(probed: Probed, note: str, full: int) -> Finding:
    from taskweave.looking import COMPACT_NEEDS, raise_it

    need = f"the full style asks with up to {full:,} tokens, the compact one with about {COMPACT_NEEDS:,}"
    if probed.limit is None:
        found = "not known" if probed.context is None else f"at least {probed.context:,} tokens"
        return Finding("context", found, _joined(need, note))
    met = {
        True: "cut at the front without a word",
        False: "refused as too long",
        None: "counted whole, but the model did not see, or overlooked, its beginning",
    }[probed.cut]
    seen = "less than any that was tried" if not probed.context else f"{probed.context:,} tokens"
    means = _joined(f"a prompt of {probed.limit:,} was {met}", need)
    return Finding("context", seen, _joined(means, note, raise_it(probed.base_url) if probed.limit <= full or probed.cut else ""))


def _rung(probed: Probed, note: str) -> Finding:
    meaning = {
        "json_schema": "answers are held to a schema",
        "json_object": "answers are JSON, but not held to a schema: some will have to be mended",
        "plain": "plain chat only: answers are read from text, and more of them will have to be mended",
    }
    if probed.rung is None:
        means = "no form of structured answer held: expect fallbacks; a larger model may help" if probed.structured is False else ""
        return Finding("structured answer", "none" if probed.structured is False else "not known", _joined(means, note))
    return Finding("structured answer", probed.rung, _joined(meaning[probed.rung], note))


def _pace(rates: dict[str, float], note: str) -> Finding:
    if not rates:
        return Finding("tokens a second", "not known", _joined(note, "--seconds gives it more time"))
    found = ", ".join(f"{rate:g} with {flight} in flight" for flight, rate in rates.items())
    best = max(rates.values())
    enough = next(int(flight) for flight, rate in rates.items() if rate >= ENOUGH * best)
    means = f"--limit {enough} is enough: more at once are no faster" if enough < max(map(int, rates)) else ""
    if enough == 1 and len(rates) > 1:
        means += "\na server's slots are OLLAMA_NUM_PARALLEL for Ollama, --parallel for the llama.cpp server"
    return Finding("tokens a second", found, _joined(means, note))


def _why(probed: Probed) -> str:
    if probed.style == "full":
        return ""
    from taskweave.backbones.probed import style_for

    if style_for(rung=probed.rung, structured=probed.structured, context=probed.context, limit=probed.limit) == "full":
        return ": the model is known to be a small one"
    if probed.structured is False:
        return ": the model answered a small structured question badly"
    return ": no better form than plain text" if probed.rung in (None, "plain") else ": the context is short"


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _table(rows: Iterator[Finding]) -> Any:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in Finding._fields:
        table.add_column(name, no_wrap=name == "what", style="bold" if name == "what" else None, ratio={"found": 2, "means": 4}.get(name))
    for row in rows:
        table.add_row(*row)
    return table


def register(app: typer.Typer) -> None:
    app.command()(probe)
