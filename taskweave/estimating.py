"""What will a run take?  Entry points: `estimate`, `lengths_from` (a file of lengths, or a run to measure).

The organization is simulated in a temporary folder by the scripted stand-in, which is asked with the run's own prompts and writes answers
as long as those that were measured; what its journal counts is the estimate.  It asks no model.  The plans of a model differ
from the stand-in's, and with them what is asked: it stays an estimate.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from taskweave import driving
from taskweave.answering import asked_in, backbone_for, routes_in
from taskweave.backbones.lengths import Lengths, Planned, read_lengths, shipped_lengths
from taskweave.backbones.pricing import Price, PriceList, Used, bill, price_of
from taskweave.backbones.probed import place_of, recall
from taskweave.backbones.stretched import Stretched
from taskweave.driving import Organization
from taskweave.engine.reader import JournalReader
from taskweave.exports.lengths import measure, planned_share, prompts_mark
from taskweave.given import left_out
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool
from taskweave.records import LEVELS, StyleName, step_of
from taskweave.report.wording import plural
from taskweave.runs import RunFolder
from taskweave.runs.folder import CONFIG
from taskweave.simulation.year import Outcome

if TYPE_CHECKING:
    from taskweave.backbones.routing import Routes
    from taskweave.records import Backbone

QUARTER = "quarter:1"
EXECUTION = "execution"
WEEK_PLAN = "partition_week"  # the step whose answer lists the tasks that are executed
_ANYWHERE = "https://api.openai.com/v1"  # where nothing is asked: with an address no key is wanted


class Row(NamedTuple):
    """Calls, tokens of prompts and of answers, and dollars at list price (None: no price is known) of one step, level, role or backbone."""

    name: str
    calls: float
    prompt: float
    completion: float
    cost: float | None


class Span(NamedTuple):
    """A run to one horizon, `weeks` long; `hours` are those that writing the answers takes, None where no speed is known.

    `backbones` has a row where calls are routed.
    """

    until: str
    weeks: int
    steps: tuple[Row, ...]
    levels: tuple[Row, ...]
    roles: tuple[Row, ...]
    backbones: tuple[Row, ...]
    total: Row
    hours: float | None


class Speed(NamedTuple):
    """Completion tokens a second, over all that is in flight, as probed with so many in flight."""

    in_flight: int
    rate: float


class Estimate(NamedTuple):
    """What a run will take, to the first quarter and to its horizon; `prices` are those of its backbones (None: none is known).

    `unmeasured` are steps of which the lengths say nothing: those shipped are taken, and of a step that those do not know either, the
    stand-in's own.
    """

    organization: str
    seed: int
    backbone: str
    base_url: str | None
    style: str
    without: tuple[str, ...]
    lengths: Lengths
    prices: dict[str, Price | None]
    speed: Speed | None
    unmeasured: tuple[str, ...]
    spans: tuple[Span, ...]


def estimate(
    org: Organization,
    *,
    backbone: str,
    base_url: str | None = None,
    seed: int = 1,
    until: str = "year",
    prompts: Sequence[Path] = (),
    assign: Literal["match", "model"] = "match",
    incidents: Sequence[Path] = (),
    rate: str | None = None,
    style: StyleName | None = None,
    routing: Path | None = None,
    without: str | Sequence[str] = (),
    limit: int = 16,
    lengths: Lengths | None = None,
    prices: PriceList | None = None,
    quarter: bool = True,
    say: Callable[[str], None] = lambda _: None,
    answering: Backbone | None = None,
) -> Estimate:
    """Rehearse a run to its horizon and count.  `quarter` asks for its first quarter as well, where the horizon lies beyond.

    A `style` of None is that in which a run would ask, by what is known of its backbones.  `lengths` are those shipped where none are
    given; `say` is told what is being done; `answering` is what `backbone`, with its routes, has been made into already.
    Raises BadInput for what cannot be used, and Interrupted where a signal ended it.
    """
    parts = left_out(without)
    said = say if answering is None else lambda _: None  # else it has been said
    routes = routes_in(routing, org.resolved, said)[1]
    asked = answering or _made(backbone, base_url, routes)
    asking = asked_in(style, backbone, asked, base_url, prompts, look=False, say=said)[0]
    calendar = WorkCalendar(org.resolved.calendar)
    last, first = calendar.boundary(until), calendar.boundary(QUARTER)
    stages = [QUARTER, until] if quarter and first < last else [until]
    probed = recall(asked.name, base_url)
    speed = None if probed is None else _speed(probed.rates, limit)
    shipped = shipped_lengths(asking)
    measured = lengths or shipped
    known = replace(measured, steps={**shipped.steps, **measured.steps})
    say(f"rehearsing {plural(last, 'week')} of {org.resolved.name} with the scripted stand-in; no model is asked")
    spans: list[Span] = []
    unmeasured: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="taskweave-") as place:
        folder, writing = driving.begin(
            org, out=Path(place) / "rehearsal", backbone=Stretched(known), seed=seed, until=stages[0], base_url=None, prompts=prompts,
            assign=assign, incidents=incidents, rate=rate, limit=16, patience=600.0, tags={}, style=asking, without=parts, look=False,
            reach=False,
        )  # fmt: skip
        outcome = driving.drive(folder, writing)
        for stage in stages:
            if spans:
                folder, outcome = driving.resume(folder, backbone=writing, until=stage)
            _refuse_half(outcome)
            counted = list(_counted(folder, known, backbone, routes))
            unmeasured |= {one.step for one in counted} - measured.steps.keys()
            spans.append(_span(stage, calendar.boundary(stage), counted, prices, speed))
    return Estimate(
        organization=org.resolved.name,
        seed=seed,
        backbone=backbone,
        base_url=base_url,
        style=asking,
        without=parts,
        lengths=measured,
        prices={name: price_of(name, prices) for name in dict.fromkeys([backbone, *(one.backbone for one in counted)])},
        speed=speed,
        unmeasured=tuple(sorted(unmeasured)),
        spans=tuple(spans),
    )


def _made(backbone: str, base_url: str | None, routes: Routes | None) -> Backbone:
    """What would answer, made as for a run and never asked: with an address no key is wanted.  Raises BadInput for what cannot be."""
    led = () if routes is None else routes.routes
    wants = backbone.partition(":")[0] == "openai" or any(route.takes_a_url and route.base_url is None for route in led)
    return backbone_for(backbone, place_of("openai:", base_url) or _ANYWHERE if wants else base_url, routes)


def lengths_from(given: str | Path) -> Lengths:
    """The lengths of a file, or of a run (its folder, or its name under runs/)."""
    path = Path(given)
    if path.is_file():
        return read_lengths(path)
    is_run = path.is_dir() or (Path("runs") / path / CONFIG).is_file()
    return measure(RunFolder.open(path)) if is_run else read_lengths(path)


# ---------------------------------------------------------------- counting
class _Counted(NamedTuple):
    """One question, with the calls that it takes on average."""

    step: str
    level: str
    role: str
    backbone: str
    calls: float
    prompt: float
    completion: float


def _counted(folder: RunFolder, lengths: Lengths, backbone: str, routes: Routes | None) -> Iterator[_Counted]:
    """Each question of a rehearsal, in the tokens that its backbone reported, and which backbone it would go to.

    Where a run like it was measured, its prompts took what they took there; and where less was planned there than the stand-in plans, or
    more, there is that much less or more to execute; and
    tools were looked for as often as there.
    """
    like = lengths.planned is not None and (lengths.planned.organization, lengths.planned.prompts) == (
        folder.config.organization,
        prompts_mark(folder.prompts(), folder.config.without),
    )
    with Pool.open(folder.run_db_path) as pool:
        amount = _amount(pool, lengths.planned if like else None)
        agents = {row["id"]: row["assignee"] for row in pool.rows("subtasks")}
        agents |= {row["id"]: row["agent"] for row in pool.rows("results")}
        people = {row["id"]: row for row in pool.rows("agents")}  # also those who were hired
    with JournalReader(folder.journal_path) as journal:
        asked = Counter(one.prompt for one in journal.taken())
        for one in journal.taken():
            length = lengths.steps.get(one.prompt)
            again = length.again if length is not None else 1.0
            if like and length is not None and length.per_execute:
                again *= length.per_execute * asked["execute"] / asked[one.prompt]
            place = one.site.rpartition(":")[0]
            period, _, rest = place.partition("@")
            owner, _, task = rest.partition("/")
            actor = people[(agents.get(place) or owner) if one.site.endswith((":execute", ":merge")) else owner]
            routed = None if routes is None else routes.chosen(step_of(one.prompt), actor["tier"], actor["role"])
            calls = again * (amount if task else 1.0)
            yield _Counted(
                step=one.prompt,
                level=EXECUTION if task else LEVELS[period.count("/")],
                role=actor["role"],
                backbone=routed or backbone,
                calls=calls,
                prompt=(length.prompt if like and length is not None and length.prompt else one.prompt_tokens) * calls,
                completion=one.completion_tokens * (again * amount if one.prompt == WEEK_PLAN else calls),
            )


def _amount(pool: Pool, planned: Planned | None) -> float:
    """How much the measured run planned to how much the stand-in does, in the same weeks; 1 where none like it was measured."""
    if planned is None:
        return 1.0
    rehearsed = planned_share(pool, min(planned.weeks, max(pool.weeks(), default=0)))
    return 1.0 if rehearsed is None else planned.share / rehearsed


def _span(until: str, weeks: int, counted: Sequence[_Counted], price: PriceList | None, speed: Speed | None) -> Span:
    levels = {name: place for place, name in enumerate((*LEVELS, EXECUTION))}
    by_level = _rows(counted, lambda one: one.level, price)
    total = _sum("total", counted, price)
    return Span(
        until=until,
        weeks=weeks,
        steps=_rows(counted, lambda one: one.step, price),
        levels=tuple(sorted(by_level, key=lambda row: levels[row.name])),
        roles=_rows(counted, lambda one: one.role, price),
        backbones=_rows(counted, lambda one: one.backbone, price) if len({one.backbone for one in counted}) > 1 else (),
        total=total,
        hours=None if speed is None else total.completion / speed.rate / 3600,
    )


def _rows(counted: Sequence[_Counted], of: Callable[[_Counted], str], price: PriceList | None) -> tuple[Row, ...]:
    """A row a name, the one with the most tokens first."""
    groups: defaultdict[str, list[_Counted]] = defaultdict(list)
    for one in counted:
        groups[of(one)].append(one)
    rows = [_sum(name, group, price) for name, group in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.prompt - row.completion, row.name)))


def _sum(name: str, counted: Sequence[_Counted], price: PriceList | None) -> Row:
    prompt, completion = sum(one.prompt for one in counted), sum(one.completion for one in counted)
    cost = bill((Used(one.backbone, one.prompt, 0, one.completion) for one in counted), price)
    return Row(name, sum(one.calls for one in counted), prompt, completion, None if cost is None else cost.uncached)


def _speed(rates: dict[str, float], limit: int) -> Speed | None:
    """The speed that was probed with the most in flight that `limit` allows, else with the fewest."""
    found = sorted((int(name), rate) for name, rate in rates.items() if rate > 0)
    if not found:
        return None
    return Speed(*max((one for one in found if one[0] <= limit), default=found[0]))


def _refuse_half(outcome: Outcome) -> None:
    """A rehearsal that did not reach its horizon counts nothing."""
    if (early := driving.ending(outcome)) is not None:
        raise early(f"the estimate was given up ({outcome.stop}{': ' + outcome.cause if outcome.cause else ''})")
