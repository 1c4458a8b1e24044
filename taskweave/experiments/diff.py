"""What did an event change?  Entry point: `compare`, which sets runs against a base, with redrawn controls where there are any.

Runs are compared from the first week on in which they part.  A placebo fork is its parent again, answer for answer: it says nothing of
chance, so only runs whose answers were drawn anew count as controls.  Knows nothing of files, nor of how a comparison is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from taskweave.errors import BadInput
from taskweave.experiments.changes import Documents, documents, keyword_changes, task_changes
from taskweave.experiments.comparison import Comparison, Diff, Difference, FamilyDifference, LeftOut, Noise, redraw
from taskweave.experiments.measures import Family, measures
from taskweave.experiments.rows import RunRows, Span
from taskweave.experiments.spread import LEAST, judge
from taskweave.org.calendar import WorkCalendar
from taskweave.report.departures import told as departure_told
from taskweave.report.intervals import LEVEL
from taskweave.report.wording import plural


def compare(base: RunRows, others: Sequence[RunRows], controls: Sequence[RunRows] = (), *, until: str = "year") -> Diff:
    """Set each of `others` against `base`, up to the end of the week that `until` (week:8, quarter:2, a date) lies in.

    Raises BadInput where nothing can be compared: another organization, calendar or seed, a run given twice, a placebo as a control.
    """
    refuse(base, others, controls)
    most = WorkCalendar(base.organization.calendar).boundary(until)
    return Diff(
        base=base.name,
        path=str(base.path),
        organization=base.config.organization,
        seed=base.config.seed,
        comparisons=tuple(_compared(base, other, controls, most) for other in others),
    )


# ---------------------------------------------------------------- what cannot be compared
def refuse(base: RunRows, others: Sequence[RunRows], controls: Sequence[RunRows]) -> None:
    """Raise BadInput where the runs have nothing in common that could be compared."""
    if not others:
        only = " What is given beside it are controls." if controls else ""
        raise BadInput(f"{base.path}: there is no run to compare it with.{only} Name one: taskweave diff {quote(str(base.path))} RUN")
    seen: set[str] = set()
    for run in (base, *others, *controls):
        if (place := str(run.path.resolve())) in seen:
            raise BadInput(f"{run.path}: is given twice. A run is the same as itself; name each once.")
        seen.add(place)
    for run in (*others, *controls):
        if (why := _foreign(base, run)) is not None:
            raise BadInput(f"{run.path} cannot be compared with {base.path}: {why}")
    for control in controls:
        if parted(base, control) is None and not _redrawn(control):
            raise BadInput(
                f"{control.path}: is {base.path} again, the same digest up to week {min(base.last, control.last)}. Such a placebo is "
                f"identical by construction and says nothing of chance. Take runs whose answers were drawn anew: {redraw(base.path, 'N')}"
            )


def _foreign(base: RunRows, run: RunRows) -> str | None:
    """Why two runs have nothing in common that could be compared."""
    if base.config.organization != run.config.organization:
        return f"it is of another organization, {run.config.organization!r} and not {base.config.organization!r}."
    if base.organization.calendar != run.organization.calendar:
        return "it has another calendar, so that its weeks are other weeks."
    mine, theirs = (
        # Only reports read a role's `share`.
        one.organization.model_dump(mode="json", exclude={"given": True, "roles": {"__all__": {"share"}}})
        for one in (base, run)
    )
    if differing := [name for name in mine if mine[name] != theirs[name]]:
        return f"it began with another organization of that name: the two differ in {', '.join(differing)}."
    if base.config.seed != run.config.seed:
        return (
            f"its seed is {run.config.seed} and not {base.config.seed}: other people and durations, another year. Run both with one seed."
        )
    return None


def _redrawn(run: RunRows) -> bool:
    return run.config.parent is not None and run.config.parent.is_control


# ---------------------------------------------------------------- one comparison
def parted(a: RunRows, b: RunRows) -> int | None:
    """The first week whose digests differ; None where the runs are the same as far as both go."""
    weeks = sorted(a.digests.keys() & b.digests.keys())
    return next((week for week in weeks if a.digests[week] != b.digests[week]), None)


def _compared(base: RunRows, other: RunRows, controls: Sequence[RunRows], most: int) -> Comparison:
    week, last = parted(base, other), min(base.last, other.last, most)
    week = week if week is not None and week <= last else None
    outside = tuple(left_out(base, week, last, controls))
    unfit = {one.run for one in outside}
    fit = [run for run in controls if str(run.path) not in unfit] if week is not None else []
    span = Span(WorkCalendar(base.organization.calendar), week or last + 1, last)
    figures = [measures(run, span) for run in (base, other, *fit)] if week is not None else []
    families = _families(figures[0], figures[1], figures[2:]) if figures else ()
    plans = [documents(run, span) for run in (base, other, *fit)] if week is not None else [{}, {}]
    changes = [task_changes(base, run, span) for run in fit]
    differences = [one for family in families for one in family.differences]
    judged = sum(one.judged is not None and one.judged.spread for one in differences)
    enough = len(fit) >= LEAST
    return Comparison(
        run=other.name,
        week=week,
        last=last,
        ends=(base.last, other.last),
        scripted=base.scripted and other.scripted,
        told=tuple(_told(base, other)),
        controls=tuple(run.name for run in fit),
        left_out=outside if week is not None else (),
        families=families,
        measured=len(differences),
        judged=judged,
        by_chance=(1 - LEVEL) * judged if enough else None,
        outstanding=sum(family.outstanding for family in families) if enough else None,
        tasks=task_changes(base, other, span),
        controls_added=tuple(sorted(len(one.added) for one in changes)),
        controls_dropped=tuple(sorted(len(one.dropped) for one in changes)),
        keywords=keyword_changes(plans[0], plans[1], plans[2:]),
        noise=_noise(figures[0], figures[2:], plans[0], plans[2:]) if len(fit) > LEAST else None,
    )


def left_out(base: RunRows, week: int | None, last: int, controls: Sequence[RunRows]) -> Iterator[LeftOut]:
    """The controls that do not vary just the weeks that are compared."""
    for run in controls:
        parent, since = run.config.parent, parted(base, run)
        if parent is not None and parent.is_control:
            since = min(parent.week, since or parent.week)  # what was drawn anew may have come out the same at first
        if week is not None and since != week:
            told = f"it varies from week {since} on, and the compared run from week {week}; make some with {redraw(base.path, week)}"
            yield LeftOut(run=str(run.path), why=told)
        elif run.last < last:
            yield LeftOut(run=str(run.path), why=f"it has closed {plural(run.last, 'week')} only, and {last} are compared; resume it")


def _families(base: Sequence[Family], other: Sequence[Family], controls: Sequence[Sequence[Family]]) -> tuple[FamilyDifference, ...]:
    found = []
    for place, mine in enumerate(base):
        theirs, redrawn = other[place], [families[place] for families in controls]
        names = dict.fromkeys(name for family in (mine, theirs) for name in family.figures)
        differences = [_difference(name, mine, theirs, redrawn) for name in names]
        # What is most telling first; ties keep the order of the family.
        ordered = sorted(differences, key=lambda one: (not _outstanding(one), -one.strength))
        found.append(
            FamilyDifference(
                name=mine.name, title=mine.title, unit=mine.unit, of_unit=mine.of_unit, basis=mine.basis, differences=tuple(ordered)
            )
        )
    return tuple(found)


def _difference(name: str, base: Family, other: Family, controls: Sequence[Family]) -> Difference:
    a, b = base.figure(name), other.figure(name)
    redrawn = [value for family in controls if (value := family.figure(name).value) is not None]
    known = None if a.value is None or b.value is None else (a.value, b.value)
    return Difference(
        name=name,
        unit=(base.units or {}).get(name, ""),
        base=a,
        other=b,
        difference=known[1] - known[0] if known else None,
        judged=judge(*known, redrawn) if known else None,
    )


def _outstanding(one: Difference) -> bool:
    return one.judged is not None and one.judged.verdict == "stands out"


def _noise(base: Sequence[Family], controls: Sequence[Sequence[Family]], plans: Documents, redrawn: Sequence[Documents]) -> Noise:
    """Judge each control as if it were compared."""
    figures, keywords = [], []
    for place in range(len(controls)):
        families = _families(base, controls[place], [*controls[:place], *controls[place + 1 :]])
        figures.append(sum(family.outstanding for family in families))
        groups = keyword_changes(plans, redrawn[place], [*redrawn[:place], *redrawn[place + 1 :]])
        keywords.append(sum(group.outstanding for group in groups))
    return Noise(figures=tuple(sorted(figures)), keywords=tuple(sorted(keywords)))


# ---------------------------------------------------------------- what it was given otherwise
def _told(base: RunRows, other: RunRows) -> Iterator[str]:
    """What is known to differ in what the two were given, a line each."""
    parent = other.config.parent
    if parent is not None:
        redrawn = ", its answers drawn anew from there on" if parent.redraw else ""
        prompts = ", with other prompts from there on" if parent.prompts else ""
        nothing = "; nothing else was changed, so that what differs is what chance makes" if parent.is_control else ""
        yield f"a fork of {parent.run} at week {parent.week}{prompts}{redrawn}{nothing}"
    for run in (base, other):
        if held := [segment for segment in _amended(run) if segment not in _amended(other if run is base else base)]:
            yield f"organization of {run.name}: {', '.join(f'{file} from week {week} on' for week, file in held)}"
    for mine, theirs, words in ((other, base, f"only in {other.name}"), (base, other, f"only in {base.name}")):
        for id_, row in mine.incidents.items():
            if id_ not in theirs.incidents:
                yield f"incident {words}: {row['title']} ({row['category']}, {row['severity']}, from {row['since'] or '–'})"
    known = {(one.agent, one.time) for one in base.left}
    for one in other.left:
        if (one.agent, one.time) not in known:
            yield departure_told(one)
    for name in ("assign", "style", "without"):
        a, b = getattr(base.config, name), getattr(other.config, name)
        if a != b:
            yield f"{name}: {_said(a)} in {base.name}, {_said(b)} in {other.name}"
    a, b = _backbones(base), _backbones(other)
    if a != b:
        yield f"backbone: {a} in {base.name}, {b} in {other.name}"
    if files := _differing(base, other):
        yield f"prompts: {', '.join(files)}"


def _differing(a: RunRows, b: RunRows) -> list[str]:
    """The prompts that both runs have written down, and that differ in a week of either."""
    starts = sorted({segment.week for run in (a, b) for segment in run.config.segments})
    pairs = [(a.config.segment_at(week).prompts, b.config.segment_at(week).prompts) for week in starts]
    found: dict[str, None] = {}
    for mine, theirs in dict.fromkeys(pairs):
        for name, digest in a.inputs.items():
            file = name.removeprefix(f"{mine}/")
            if file != name and b.inputs.get(f"{theirs}/{file}", digest) != digest:
                found[f"{theirs}/{file}"] = None
    return list(found)


def _amended(run: RunRows) -> list[tuple[int, str]]:
    """From which weeks on the run's organization is which file, beside the one that it began with."""
    pairs = zip(run.config.segments, run.config.segments[1:], strict=False)
    return [(later.week, later.org) for earlier, later in pairs if later.org != earlier.org]


def _backbones(run: RunRows) -> str:
    return ", ".join(dict.fromkeys(segment.backbone for segment in run.config.segments))


def _said(value: object) -> str:
    return (", ".join(map(str, value)) or "nothing") if isinstance(value, tuple) else str(value)
