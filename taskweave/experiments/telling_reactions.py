"""How is it told what incidents asked for and what came of it?  Entry point: `told`: plain text of 60 to 100 columns.

Knows nothing of runs: all that it says stands in the `Reactions`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from taskweave.experiments.comparison import Difference, redraw
from taskweave.experiments.reactions import GIVEN, GROUPS, PLANNED, SPEAKING, WHENS, Group, Reaction, Reactions, Shift, When
from taskweave.experiments.spread import LEAST
from taskweave.experiments.telling import LEAST_WIDTH, WIDTH
from taskweave.report.wording import DASH, percent, plural

SHOWN = 8  # activities of a category, where not all are asked for
_SCRIPTED = (
    "A scripted run: who hears of an incident, the work that it lays on somebody and how much is planned follow from it by code. Which "
    "activity other tasks are was chosen from phrase banks, so that nothing is claimed here of what people would turn to: a run with a "
    "model shows that, with the same command."
)


def told(found: Reactions, *, all: bool = False, width: int = WIDTH) -> str:
    """The reactions as text; `all` shows every activity, `width` is how many columns there are."""
    width = min(WIDTH, max(LEAST_WIDTH, width))
    return "\n".join(_Telling(found, all, width).lines())


class _Telling:
    """All of it, line by line."""

    def __init__(self, found: Reactions, all: bool, width: int) -> None:
        self.found, self.all, self.width = found, all, width

    def lines(self) -> Iterator[str]:
        found = self.found
        yield self._wrapped(f"{plural(len(found.reactions), 'incident')} against {found.base}: {found.organization}, seed {found.seed}")
        if found.scripted:
            yield self._wrapped(_SCRIPTED, "  ")
        if found.shared:
            yield self._wrapped("Some runs have several incidents at once: what one of them made shows in the figures of the others.", "  ")
        yield from self._noise()
        yield from self._summary()
        for one in found.reactions:
            yield from ["", *self._reaction(one)]
        yield from ["", *self._figure_5()]

    def _noise(self) -> Iterator[str]:
        least = min(len(one.controls) for one in self.found.reactions)
        if least < LEAST:
            first = self.found.reactions[0].first
            make = redraw(self.found.path, first)
            yield self._wrapped(f"With fewer than {LEAST} controls nothing can be said of chance. Make some: {make}", "  ")
        else:
            yield self._wrapped(
                f"{least} controls. * stands out: outside the 95 % interval for one further redrawn run in the same weeks and units.", "  "
            )
        for run, why in dict.fromkeys((out.run, out.why) for one in self.found.reactions for out in one.left_out):
            yield self._wrapped(f"Control {run} is left out: {why}.", "  ")

    # ------------------------------------------------------------ all together
    def _summary(self) -> Iterator[str]:
        yield ""
        yield self._wrapped("Do those who hear of it turn to it, the others not, and does it end?")
        rows: Sequence[tuple[str, str, Group, When]] = (
            ("affected units speak of it while in force", SPEAKING, "affected", "while"),
            ("other units do", SPEAKING, "others", "while"),
            ("affected units speak of it after its end", SPEAKING, "affected", "after"),
            ("affected units plan hours for it while in force", GIVEN, "affected", "while"),
            ("other units do", GIVEN, "others", "while"),
            ("affected units plan hours for it after its end", GIVEN, "affected", "after"),
        )
        for said, what, group, when in rows:
            known = [one for reaction in self.found.reactions if (one := reaction.found(what, group, when)) is not None]
            some = [one for one in known if one.other.value]
            out = sum(_stands_out(one) for one in some)
            judged = f", {out} beyond chance" if any(one.judged for one in known) else ""
            parts = sum((one.other.value or 0) * (one.other.of or 0) for one in known)
            of = sum(one.other.of or 0 for one in known)
            unit = "plans" if what == SPEAKING else "h"
            share = f"{parts:,.0f} of {of:,.0f} {unit}, {percent(parts / of, 1)}" if of else DASH
            yield self._wrapped(f"{said}: in {len(some)} of {plural(len(known), 'incident')}{judged} ({share})", "  ", "    ")

    # ------------------------------------------------------------ one incident
    def _reaction(self, one: Reaction) -> Iterator[str]:
        lasts = f"weeks {one.first}-{one.last}" if one.last is not None else f"weeks {one.first}-{one.compared}, and beyond"
        yield self._wrapped(f"{one.title} ({one.category}, {one.severity}): {lasts}; {one.run}")
        yield self._wrapped(f"asks for: {'; '.join(one.asks) or 'nothing but to be heard'}", "  ", "    ")
        for group in GROUPS:
            yield self._wrapped(f"{group}: {', '.join(one.owners[group]) or 'nobody who plans weeks'}", "  ", "    ")
        yield self._row("", *(_when(when, one) for when in WHENS))
        for what in (SPEAKING, GIVEN, PLANNED):
            for group in GROUPS:
                if one.owners[group]:
                    cells = (_cell(what, one.found(what, group, when)) for when in WHENS)
                    yield self._row(f"{what}, {group}", *cells)

    def _row(self, name: str, *cells: str) -> str:
        """A line of a table; in a narrow terminal the name has a line of its own."""
        if self.width < WIDTH:
            room = (self.width - 4) // len(cells) - 1
            line = " " * 4 + " ".join(f"{cell:>{room}}" for cell in cells)
            return f"  {name}\n{line}" if name else line
        room = (self.width - 36) // len(cells) - 1
        return f"  {name:<33} " + " ".join(f"{cell:>{room}}" for cell in cells)

    # ------------------------------------------------------------ by category
    def _figure_5(self) -> Iterator[str]:
        yield self._wrapped("Activities of the tasks planned while incidents of a category were in force (difference in points)")
        for shift in self.found.shifts:
            yield from ["", *self._shift(shift)]

    def _shift(self, shift: Shift) -> Iterator[str]:
        before, after = (max(one.of or 0 for one in some) for some in zip(*((a.base, a.other) for a in shift.activities), strict=True))
        known = [one for one in shift.activities if one.judged is not None]
        out = f"; {sum(map(_stands_out, known))} of {len(known)} stand out, about {0.05 * len(known):.0f} by chance" if known else ""
        units = "units that hear of it" if shift.group == "affected" else "other units"
        yield self._wrapped(
            f"{shift.category}, {plural(shift.incidents, 'incident')}, {units}: {after:,.0f} tasks, {before:,.0f} in {self.found.base}{out}"
        )
        changed = [one for one in shift.activities if one.base.value or one.other.value]
        shown = changed if self.all else sorted(changed, key=lambda one: not _stands_out(one))[:SHOWN]
        for one in shown:
            yield self._activity(one)
        if hidden := len(changed) - len(shown):
            yield f"    … and {hidden} more: --all shows them"

    def _activity(self, one: Difference) -> str:
        base, other = (f"{percent(figure.value, 1)} ({(figure.value or 0) * (figure.of or 0):,.0f})" for figure in (one.base, one.other))
        chance = ""
        if one.judged is not None:
            chance = (
                f"{100 * one.judged.low:+.1f} to {100 * one.judged.high:+.1f} by chance" if one.judged.spread else "no spread by chance"
            )
        difference = DASH if one.difference is None else f"{100 * one.difference:+.1f}"
        mark, change = "*" if _stands_out(one) else " ", f"{base:>14} -> {other:<14} {difference:>6}"
        line = f"  {mark} {one.name:<16} {change}  {chance}".rstrip()
        return line if len(line) <= self.width else f"  {mark} {one.name:<16} {chance}\n    {change}"

    def _wrapped(self, text: str, indent: str = "", hanging: str | None = None) -> str:
        after = indent if hanging is None else hanging
        return textwrap.fill(text, self.width, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False)


# ---------------------------------------------------------------- words
def _stands_out(one: Difference) -> bool:
    return one.judged is not None and one.judged.verdict == "stands out"


def _when(when: When, one: Reaction) -> str:
    if when == "before":
        return f"before (1-{one.first - 1})" if one.first > 1 else "before"
    if when == "while":
        return f"in force ({one.first}-{one.last or one.compared})"
    return f"after ({one.last + 1}-{one.compared})" if one.last is not None and one.last < one.compared else "after"


def _cell(what: str, one: Difference | None) -> str:
    """A figure of the run; of hours planned with the base's, which the incident may have changed."""
    if one is None or one.other.value is None:
        return DASH
    mark = " *" if _stands_out(one) else ""
    if what == PLANNED:
        return f"{one.other.value:,.0f} ({one.base.value or 0:,.0f}){mark}"
    of = one.other.of or 0
    return f"{one.other.value * of:,.0f} of {of:,.0f}{mark}"
