"""What does work cost in calls and tokens?  Entry points: `economy` (a run's figures), `lines` and `render` (as a person reads them).

Reads journal.db only.  The formulas, `per` and `Prefixes`, are pure.  Refuses to know prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from taskweave.engine.reader import JournalReader, Spent
from taskweave.records import Json
from taskweave.report.wording import DASH

if TYPE_CHECKING:
    from rich.console import RenderableType

Told = Literal["reported", "computed", "partly reported", "not computed"]

_LEFT_OUT: Told = "not computed"
EXECUTION = frozenset({"decompose", "execute", "merge"})  # the steps that a composite task is executed by
STEP = 128  # tokens: prompts are cached in such steps,
LEAST = 1_024  # and not below so many
_BYTES = 4  # of a token


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Calls and tokens for one of something, of which there are `of`: all None where there is none yet.

    `uncached` are the prompt tokens that no earlier prompt begins with.
    """

    of: float
    calls: float | None
    prompt: float | None
    uncached: float | None
    completion: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Economy:
    """What the closed weeks took: answers that came until the last of them closed, over what is finished in them.

    subtask: all calls / executed subtasks; hour: all calls / their planned hours; composite: the calls of decompose, execute and merge /
    composite tasks done.  `cached` says where the cached tokens come from: the provider, or the prompts of the journal, whose reading
    takes a moment and can be left out.
    """

    weeks: int
    cached: Told
    subtask: Rate
    composite: Rate
    hour: Rate


class Prefixes:
    """Which beginning of a prompt has been sent before, as providers cache it: LEAST tokens or more, in steps of STEP."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def covered(self, sent: bytes) -> int:
        """Tokens of the longest beginning of `sent` that an earlier one has too; `sent` is an earlier one from now on."""
        block, mark, steps, known = STEP * _BYTES, 0, 0, True
        for end in range(block, len(sent) + 1, block):
            mark = hash((mark, sent[end - block : end]))
            known = known and mark in self._seen
            if known:
                steps += 1
            else:
                self._seen.add(mark)
        return steps * STEP if steps * STEP >= LEAST else 0


def economy(journal: JournalReader, weeks: int, facts: Mapping[str, Json], until: str | None, *, compute: bool = True) -> Economy:
    """The figures of `weeks` closed weeks, the last of which has these facts and was closed at `until`.

    `compute`: where the provider does not report what it had cached, read all prompts for it.
    """
    spent = journal.spent(until) if weeks else []
    cached, told = cached_of(spent, journal) if compute or any(one.cached is not None for one in spent) else (None, _LEFT_OUT)
    executing = [place for place, one in enumerate(spent) if step_of(one.site) in EXECUTION]
    return Economy(
        weeks=weeks,
        cached=told,
        subtask=per(spent, cached, facts.get("subtasks", 0)),
        composite=per(
            [spent[place] for place in executing], None if cached is None else [cached[place] for place in executing], facts.get("done", 0)
        ),
        hour=per(spent, cached, facts.get("hours", 0)),
    )


def cached_of(spent: Sequence[Spent], journal: JournalReader) -> tuple[list[int], Told]:
    """Cached tokens of each completion, and by whose word.

    A backbone that reports them for any answer is believed; for the others they are the prefixes that its earlier prompts share.
    """
    reporting = {one.backbone for one in spent if one.cached is not None}
    backbones = {one.backbone for one in spent}
    before = {backbone: Prefixes() for backbone in backbones - reporting}
    cached = [one.cached or 0 if one.backbone in reporting else before[one.backbone].covered(journal.sent(one)) for one in spent]
    return cached, "computed" if not reporting else "reported" if reporting == backbones else "partly reported"


def per(spent: Sequence[Spent], cached: Sequence[int] | None, of: float) -> Rate:
    """Sums over `of`: uncached = Σ (prompt - cached), never below 0 for one call, None where what was cached is not known."""
    if not of:
        return Rate(of=0, calls=None, prompt=None, uncached=None, completion=None)
    uncached = None if cached is None else sum(max(0, one.prompt_tokens - tokens) for one, tokens in zip(spent, cached, strict=True))
    return Rate(
        of=of,
        calls=len(spent) / of,
        prompt=sum(one.prompt_tokens for one in spent) / of,
        uncached=None if uncached is None else uncached / of,
        completion=sum(one.completion_tokens for one in spent) / of,
    )


def step_of(site: str) -> str:
    """Y1/Q2/M05/W19@owner/t2/s1:execute -> execute; a turn after the step is no part of it."""
    return site.rpartition(":")[2].partition(".")[0]


def lines(found: Economy) -> list[tuple[str, str]]:
    """A line each for a subtask, a composite task and a planned hour, and what is counted."""
    return [(f"a {name}", _said(rate)) for name, _, rate in _rates(found)] + [("", _counted(found))]


def render(found: Economy) -> RenderableType:
    """The same as a table, with the denominators."""
    from rich.console import Group  # by far the most of what this file would load, and of no use to who only asks how far a run is
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("for one")
    for column in ("of", "calls", "prompt", "uncached", "completion"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, counted, rate in _rates(found):
        tokens = (DASH if number is None else f"{number:,.0f}" for number in (rate.prompt, rate.uncached, rate.completion))
        calls = DASH if rate.calls is None else f"{rate.calls:.2f}"
        table.add_row(f"{name} {counted}", f"{rate.of:,.0f}", calls, *tokens)
    return Group(Text("\nCalls and tokens", "bold"), Text(_counted(found), "dim"), table)


def _rates(found: Economy) -> list[tuple[str, str, Rate]]:
    return [
        ("subtask", "executed", found.subtask),
        ("composite task", "done", found.composite),
        ("planned hour", "executed", found.hour),
    ]


def _counted(found: Economy) -> str:
    week = "week" if found.weeks == 1 else "weeks"
    return f"{found.weeks} closed {week}; composite task: decompose, execute, merge; uncached: {_MEANT[found.cached]}"


_MEANT: Mapping[Told, str] = {
    "reported": "without what the provider reports as cached",
    "computed": f"computed, without what an earlier prompt begins with ({LEAST:,} tokens or more)",
    _LEFT_OUT: "the status works it out",
    "partly reported": "without what is reported as cached or, where nothing is, what an earlier prompt begins with",
}


def _said(rate: Rate) -> str:
    if rate.calls is None or rate.prompt is None or rate.completion is None:
        return DASH
    uncached = "" if rate.uncached is None else f" ({rate.uncached:,.0f} uncached)"
    return f"{rate.calls:.2f} calls, {rate.prompt:,.0f} prompt tokens{uncached}, {rate.completion:,.0f} completion"
