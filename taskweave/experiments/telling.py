"""How is a comparison told to a person?  Entry point: `told`: plain text of 60 to 100 columns.

Knows nothing of runs: all that it says stands in the `Diff`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from taskweave.experiments.changes import Change, KeywordChange, Task, TaskChange
from taskweave.experiments.comparison import Comparison, Diff, Difference, FamilyDifference, redraw
from taskweave.experiments.measures import Figure, Unit
from taskweave.experiments.spread import LEAST, Judged
from taskweave.report.wording import DASH, percent

LEAST_WIDTH, WIDTH = 60, 100  # columns
SHOWN = 6  # differences of a kind, where not all are asked for
SHOWN_GROUPS = 5  # levels and owners of plans
SHOWN_WORDS = 5  # keywords that come, and that go, of each
SHOWN_TITLES = 4
_NAME, _RUN, _DIFFERENCE, _CHANCE = 30, 18, 10, 18  # the widest columns of a table
_NARROW = 20  # columns of a name, below which it has a line of its own
CAPACITY = "Follows from simulated capacity"
TEXT = "Only text"
_CAPACITY_WHY = (
    "In a scripted run code works out from capacity, absences and incidents how much is planned, who gets it, what gets done and where "
    "the readings go."
)
_TEXT_WHY = (
    "What a task is called, which activity it is and what plans say was chosen from phrase banks: of what people would do it says nothing."
)


class ReadableDiff(Diff):
    """A `Diff` whose `str()` is the text that `taskweave diff` shows."""

    __slots__ = ()

    def __str__(self) -> str:
        return told(self)


def readable(diff: Diff) -> ReadableDiff:
    """The same, to be printed."""
    return ReadableDiff(**{field.name: getattr(diff, field.name) for field in fields(diff)})


def told(diff: Diff, *, all: bool = False, width: int = WIDTH) -> str:
    """The comparison as text; `all` shows every difference, `width` is how many columns there are."""
    width = min(WIDTH, max(LEAST_WIDTH, width))
    head = _cut(f"Base {diff.base}: {diff.organization}, seed {diff.seed}", width)
    parts = [line for one in diff.comparisons for line in ["", *_Telling(diff, one, all, width).lines()]]
    return "\n".join([head, *parts])


class _Telling:
    """One comparison, line by line."""

    def __init__(self, diff: Diff, one: Comparison, all: bool, width: int) -> None:
        self.diff, self.one, self.all, self.width = diff, one, all, width
        self.judged = one.outstanding is not None
        self.cut = False

    def lines(self) -> list[str]:
        """All of it."""
        one, base = self.one, self.diff.base
        head = [_cut(f"{base} -> {one.run}", self.width), *(self._wrapped(line, "  ") for line in one.told)]
        if one.week is None:
            return [*head, self._wrapped(self._identical(), "  ")]
        weeks = f"week {one.week} is" if one.week == one.last else f"weeks {one.week}-{one.last} are"
        same = f"the same digest up to week {one.week - 1}" if one.week > 1 else "no week is the same in both"
        head.append(
            self._wrapped(f"They part in week {one.week} ({same}); {weeks} compared, as it stood when week {one.last} closed.", "  ")
        )
        head += self._ends()
        body = [self._wrapped(line, "  ") for line in self._noise()] + [""]
        body += self._grouped() if one.scripted else [*self._families("capacity"), *self._families("text"), *self._texts()]
        if self.cut:
            body += ["", "Not all is shown: --all shows the rest."]
        return [*head, *body]

    def _identical(self) -> str:
        one = self.one
        longer = ""
        if min(one.ends) > one.last:
            longer = f"; what happened after that is left out, though both go on to week {min(one.ends)}"
        elif one.ends[0] != one.ends[1]:
            name = self.diff.base if one.ends[0] > one.ends[1] else one.run
            longer = f"; {name} goes on to week {max(one.ends)}"
        return f"identical: the same digest up to week {one.last}{longer}"

    def _ends(self) -> Iterator[str]:
        names = [name for name, end in zip((self.diff.base, self.one.run), self.one.ends, strict=True) if end > self.one.last]
        if names:
            goes = f"{names[0]} goes" if len(names) == 1 else "both go"
            yield self._wrapped(f"What happened after week {self.one.last} is left out; {goes} on to week {max(self.one.ends)}.", "  ")

    # ------------------------------------------------------------ noise
    def _noise(self) -> Iterator[str]:
        one = self.one
        for out in one.left_out:
            yield f"Control {out.run} is left out: {out.why}."
        make = redraw(self.diff.path, one.week)
        if not one.controls:
            yield (
                "No controls: these are differences, and how many of them chance alone would have made cannot be said. A fork in which "
                f"nothing is changed (a placebo) is no noise floor: it is the same run by construction. Make controls: {make}"
            )
        elif not self.judged:
            yield f"{len(one.controls)} control: with fewer than {LEAST} nothing can be said of noise. Make more: {make}"
        else:
            yield (
                f"{len(one.controls)} controls: one further redrawn run would lie within the interval shown in 95 % of cases. Of "
                f"{one.measured} figures compared {_outstanding(one.outstanding or 0)}; {one.judged} vary among base and controls, and "
                f"about {one.by_chance or 0:.0f} of these would stand out by chance alone."
            )
        if one.noise is not None:
            figures, words = _range(one.noise.figures), _range(one.noise.keywords)
            yield (
                f"Judged in the same way, by the base and the other controls, each control has {figures} figures and {words} keywords "
                "that stand out."
            )

    # ------------------------------------------------------------ figures
    def _grouped(self) -> list[str]:
        capacity = [CAPACITY, self._wrapped(_CAPACITY_WHY, "  "), "", *self._families("capacity")]
        return [*capacity, TEXT, self._wrapped(_TEXT_WHY, "  "), "", *self._families("text"), *self._texts()]

    def _families(self, basis: str) -> list[str]:
        found: list[str] = []
        same: list[str] = []
        for family in self.one.families:
            if family.basis != basis:
                continue
            changed = [one for one in family.differences if one.changed or one.judged and one.judged.verdict == "stands out"]
            if changed:
                found += [*self._family(family, changed), ""]
            else:
                same.append(family.title[0].lower() + family.title[1:])
        return [*found, self._wrapped(f"The same in both: {'; '.join(same)}.", ""), ""] if same else found

    def _family(self, family: FamilyDifference, changed: Sequence[Difference]) -> list[str]:
        title = f"{family.title} (difference in points)" if family.unit == "share" else family.title
        lines = self._row(title, self.diff.base, self.one.run, "difference", "by chance" if self.judged else "")
        shown = changed if self.all else changed[:SHOWN]
        group = ""
        for one in shown:
            if self.judged and (verdict := one.judged.verdict if one.judged is not None else "cannot be judged") != group:
                group = verdict
                lines.append(f"  {verdict}")
            lines += self._difference(family, one)
        return [*lines, *self._more(len(changed) - len(shown))]

    def _difference(self, family: FamilyDifference, one: Difference) -> list[str]:
        unit = family.unit
        name = f"    {one.name}, {one.unit}" if one.unit else f"    {one.name}"
        before, after = (_figure(figure, unit, family.of_unit) for figure in (one.base, one.other))
        return self._row(name, before, after, _change(one.difference, unit), _chance(one.judged, unit))

    def _more(self, hidden: int) -> list[str]:
        if hidden <= 0:
            return []
        self.cut = True
        return [f"    … and {hidden} more"]

    # ------------------------------------------------------------ texts
    def _texts(self) -> list[str]:
        return [*self._tasks(self.one.tasks), *self._keywords()]

    def _tasks(self, change: TaskChange) -> list[str]:
        if not change.added and not change.dropped:
            return ["No task was added, dropped or called otherwise.", ""]
        one = self.one
        against = ""
        if one.controls_added:
            added, dropped = _range(one.controls_added), _range(one.controls_dropped)
            against = f" (controls against {self.diff.base}: {added} added, {dropped} dropped)"
        retitled = sum(task.retitled for task in change.added)
        lines = [
            "Tasks added and dropped, by id and title",
            self._wrapped(
                f"{len(change.added)} of {change.added_of} tasks of {one.run} were added, {len(change.dropped)} of {change.dropped_of} of "
                f"{self.diff.base} dropped{against}; {retitled} of these are one task under another title.",
                "  ",
            ),
        ]
        rows = change.by_activity()
        shown = rows if self.all else rows[:SHOWN]
        lines += [f"    {_cut(name, 44):<44} {f'+{added}':>5} {f'-{dropped}':>5}" for name, added, dropped in shown]
        lines += self._more(len(rows) - len(shown))
        for word, tasks in (("added", change.added), ("dropped", change.dropped)):
            lines += self._titles(word, tasks)
        return [*lines, ""]

    def _titles(self, word: str, tasks: Sequence[Task]) -> Iterator[str]:
        shown = tasks if self.all else tasks[:SHOWN_TITLES]
        for task in shown:
            urgent = "urgent, " if task.priority == "urgent" else ""
            yield self._wrapped(f"{word}: {task.title} ({urgent}{task.department}, {task.activity}; {task.id})", "    ", "      ")
        yield from self._more(len(tasks) - len(shown))

    def _keywords(self) -> list[str]:
        groups = self.one.keywords
        if not groups:
            return ["The plans say the same."]
        says = "of so many units' plans, in brackets those of the base"
        if self.judged:
            says += (
                f"; of {sum(len(g.comes) + len(g.goes) for g in groups)} keywords {_outstanding(sum(g.outstanding for g in groups))} (*)"
            )
        lines = ["Keywords that come and go in plans, by level and owner", self._wrapped(says, "  ")]
        shown = groups if self.all else groups[:SHOWN_GROUPS]
        for group in shown:
            plans = f"{group.after} {'unit' if group.after == 1 else 'units'}, {group.before} in {self.diff.base}"
            lines.append(self._wrapped(f"{group.level}, {group.owner} ({plans})", "  "))
            lines += [line for line in (self._words("come", group.comes, group), self._words("go", group.goes, group)) if line]
        return [*lines, *self._more(len(groups) - len(shown))]

    def _words(self, word: str, changes: Sequence[Change], group: KeywordChange) -> str:
        ordered = sorted(changes, key=lambda one: one.verdict != "stands out") if self.judged else list(changes)
        shown = ordered if self.all else ordered[:SHOWN_WORDS]
        if not shown:
            return ""
        told = [
            f"{'*' if c.verdict == 'stands out' else ''}{c.term} {c.hits} of {group.after} ({c.before} of {group.before})" for c in shown
        ]
        if hidden := len(ordered) - len(shown):
            self.cut = True
            told.append(f"… and {hidden} more")
        return self._wrapped(f"{word + ':':<6}{'; '.join(told)}", "    ", " " * 10)

    # ------------------------------------------------------------ lines
    def _row(self, name: str, base: str, other: str, difference: str, chance: str) -> list[str]:
        """A line of a table; a name that is too long has a line of its own."""
        rest = _DIFFERENCE + 1 + (_CHANCE + 1 if self.judged else 0)
        run = min(_RUN, (self.width - rest) // 2 - 1)
        room = min(_NAME, self.width - rest - 2 * (run + 1))
        room = room if room >= _NARROW else 0
        cells = f" {_cut(base, run):>{run}} {_cut(other, run):>{run}} {difference:>{_DIFFERENCE}} {chance:>{_CHANCE}}".rstrip()
        return [f"{name:<{room}}{cells}"] if len(name) <= room else [_cut(name, self.width), " " * room + cells]

    def _wrapped(self, text: str, indent: str, hanging: str | None = None) -> str:
        after = indent if hanging is None else hanging
        return textwrap.fill(text, self.width, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False)


# ---------------------------------------------------------------- words
def _figure(figure: Figure, unit: Unit, of_unit: str) -> str:
    value, of = figure.value, figure.of
    if value is None:
        return DASH
    if unit == "share":
        return percent(value, 1) if of is None else f"{percent(value, 1)} of {of:,.0f}{f' {of_unit}' if of_unit else ''}"
    if unit == "reading":
        return f"{value:,.6g}"
    number = f"{value:,.0f}"
    return f"{number} of {of:,.0f}" if of is not None else number


def _change(value: float | None, unit: Unit) -> str:
    if value is None:
        return DASH
    if unit == "share":
        return f"{100 * value:+.1f}"
    if unit == "reading":
        return f"{value:+,.3g}"
    return f"{value:+,.0f}" if unit == "hours" or value == round(value) else f"{value:+,.1f}"


def _chance(judged: Judged | None, unit: Unit) -> str:
    if judged is None:
        return ""
    return f"{_change(judged.low, unit)} to {_change(judged.high, unit)}" if judged.spread else "no spread"


def _outstanding(count: int) -> str:
    return f"{count} stands out" if count == 1 else f"{count} stand out"


def _range(counts: Iterable[int]) -> str:
    least, *_, most = sorted([*counts] * 2)
    return f"{least}" if least == most else f"{least} to {most}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
