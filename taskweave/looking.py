"""Can this endpoint do what the run needs, and in which style is it to be asked?  Entry point: `chosen`.

An endpoint of which nothing is known is looked at first, with a few small questions; what they took is written into the run's journal.
What cannot work is refused before anything is made.  Trouble that the run itself would meet is left to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from taskweave.backbones.probe import SITE, Found, look
from taskweave.backbones.probed import Probed, keep, place_of, recall
from taskweave.engine.budget import Budget, reserve
from taskweave.engine.journal import Journal
from taskweave.engine.outcomes import Ended, Landed, journaled
from taskweave.engine.promises import COMPLETE, Ask, outcome_key
from taskweave.errors import BadInput, Refused, Transient
from taskweave.prompts import PromptBook
from taskweave.records import Backbone, Completion, Request, StyleName, tokens

COMPACT_NEEDS = 1_000  # tokens of the longest prompt that the compact style sends, about
SETTINGS = (
    "OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, -c (--ctx-size, shared by its --parallel slots) for the llama.cpp server, "
    "--max-model-len for vLLM, 'Context Length' in LM Studio"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """The style a run is asked in, and what was asked to choose it."""

    style: StyleName
    found: Found | None = None


def chosen(
    backbone: Backbone,
    *,
    base_url: str | None,
    prompts: PromptBook,
    style: StyleName | None,
    allowed: bool,
    say: Callable[[str], None],
    budget: Budget | None = None,
) -> Chosen:
    """The style that was given, else the one that suits what is known of the endpoint.

    `allowed` is whether it may be asked, as far as the run's `budget` reaches; `say` hears a line for a person.
    Raises BadInput where the endpoint's context is shorter than the prompts, naming what to set.
    """
    full = longest(prompts)
    known = recall(backbone.name, base_url)
    asks = allowed and backbone.name.startswith("openai:")
    found: Found | None = None
    if asks and (known is None or not _enough(known, style, full)):
        say(f"Looking at {_where(backbone.name, base_url)}: a few small questions, as not enough is known (--no-look: none).")
        asked = backbone if budget is None else Sparing(backbone, budget)
        found = run_apart(partial(_looked, asked, base_url, full, style))
        if found.trouble:
            best = found.probed if found.probed.structured is not None else known
            picked = style or (_suited(best, full) if best is not None else "full")
            say(f"The look ended early: {found.trouble.rstrip('.')}. The run begins all the same, in the {picked} style.")
            return Chosen(style=picked, found=found)
        known = found.probed.beside(known)
    style = style or getattr(backbone, "style", None)  # one that knows itself needs no finding out
    if known is None:
        return Chosen(style=style or "full")
    picked = style or _suited(known, full)
    if asks and (why := unfit(known, picked, full)):
        raise BadInput(why)
    if found is not None:
        keep(known)
    if style is None:
        since = f" (as of {known.at[:10]}; 'taskweave probe' looks anew)" if found is None else ""
        say(f"Style {picked}: {_reason(known, picked, full)}{since}.")
    return Chosen(style=picked, found=found)


class Sparing:
    """A backbone that is asked only what its run's budget allows; all else of it is its own."""

    def __init__(self, own: Backbone, budget: Budget) -> None:
        self._own, self._budget = own, budget
        self.name, self.origin = own.name, own.origin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    async def complete(self, request: Request) -> Completion:
        """Raises Transient where the budget allows no such call, and what the backbone raises."""
        ask = Ask(f"{id(request)}", SITE, 0, 0, COMPLETE, request=request, estimate=reserve(request))
        if (short := self._budget.short(ask, 0.0)) is not None:
            raise Transient(f"not asked: {short.cause}")
        self._budget.hold(ask)
        try:
            completion = await self._own.complete(request)
        except (Transient, Refused) as trouble:
            self._budget.lost(ask) if getattr(trouble, "billed", False) else self._budget.release(ask)
            raise
        except BaseException:  # also where nobody waits any longer
            self._budget.lost(ask)
            raise
        prompt, answer = completion.tokens(request)
        self._budget.landed(ask, prompt, answer, 0.0)
        return completion


def longest(prompts: PromptBook) -> int:
    """An upper bound on the tokens of a run's longest prompt in the full style: its file and all that its head grants."""
    return max(sum(prompt.budget.values()) + tokens(prompt.text) for prompt in prompts)


def needs(style: StyleName, full: int) -> int:
    """The longest prompt of a style, where that of the full one is `full` tokens."""
    return full if style == "full" else COMPACT_NEEDS


def unfit(known: Probed, style: StyleName, full: int) -> str:
    """Why an endpoint cannot be asked in this style, and what to set; '' where it can, or nothing certain is known."""
    need = needs(style, full)
    if known.takes(need) is not False or known.cut is None:
        return ""  # a weak model may have overlooked the beginning of a prompt that it has read
    seen = "not even a short one" if not known.context else f"one of {known.context:,} tokens"
    met = "was cut without a word" if known.cut else "was refused as too long"
    small = " Or take --style compact, whose prompts it takes whole." if style == "full" and known.takes(COMPACT_NEEDS) else ""
    return (
        f"{_where(known.backbone, known.base_url)}: the {style} style asks with prompts of up to {need:,} tokens, and one of "
        f"{known.limit:,} {met} ({seen} was seen whole). {raise_it(known.base_url)}{small} --no-look begins all the same."
    )


def raise_it(base_url: str | None) -> str:
    """What raises the context, in a sentence."""
    return "Choose a model that takes longer prompts." if base_url is None else f"Raise the server's context: {SETTINGS}."


def _enough(known: Probed, style: StyleName | None, full: int) -> bool:
    """Whether no question is left: what could not be told before is not asked again, what forbade the run may have changed since."""
    picked = style or _suited(known, full)
    if known.structured is None or unfit(known, picked, full):
        return False
    return known.context is None or known.takes(needs(picked, full)) is not None


def _suited(known: Probed, full: int) -> StyleName:
    return "compact" if known.takes(full) is False else known.style


def _reason(known: Probed, style: StyleName, full: int) -> str:
    if style == "full":
        told = f"a prompt of {known.context:,} tokens is seen whole" if known.context else "how long a prompt may be could not be told"
        return f"answers as {known.rung} hold, and {told}"
    if known.structured is False:
        return "the model answered a small structured question badly"
    if known.rung in (None, "plain"):
        return "the endpoint takes no form of structured answer better than plain text"
    return f"prompts are seen whole up to {known.context or 0:,} tokens, and those of the full style are up to {full:,} long"


def _where(name: str, base_url: str | None) -> str:
    place = place_of(name, base_url)
    return name if place is None else f"{name} at {place}"


async def _looked(backbone: Backbone, base_url: str | None, full: int, style: StyleName | None) -> Found:
    try:
        return await look(backbone, base_url=place_of(backbone.name, base_url), full=full, compact=COMPACT_NEEDS, style=style)
    finally:
        # Its connections belong to this loop, which ends here.
        if (close := getattr(backbone, "close", None)) is not None:
            await close()


def run_apart(work: Callable[[], Coroutine[None, None, Found]]) -> Found:
    """What `work` returns, on a loop of its own: in a thread where this one has a running loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="taskweave") as threads:
        return threads.submit(lambda: asyncio.run(work())).result()


def write_all(looks: Iterable[Chosen], journal: Journal) -> None:
    """Write down what was asked before the run, so that no call is missing from its books."""
    sent = [one for look in looks if look.found is not None for one in look.found.sent]
    asks = []
    for ordinal, one in enumerate(sent, 1):
        texts = one.request.text_digests()
        key = outcome_key(SITE, ordinal, 0, COMPLETE, one.request.logical(texts))
        ask = Ask(key, SITE, ordinal, 0, COMPLETE, request=one.request, texts=texts, estimate=reserve(one.request))
        asks.append(ask)
    landed: list[Landed] = []
    ended: list[Ended] = []
    for ask, one, attempt in zip(asks, sent, journal.begin(asks), strict=True):
        if one.completion is not None:
            landed.append(Landed(ask, journaled(one.request, one.completion, one.seconds), attempt))
        else:
            ended.append(Ended(attempt, one.how, one.why))
    journal.land(landed, ended)
