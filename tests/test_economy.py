"""What work costs in calls and tokens: the formulas, and the figures of a run."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave.backbones.scripted import Scripted
from taskweave.cutting import tokens, value_tokens
from taskweave.engine.reader import ClosedWeek, JournalReader, Spent
from taskweave.prompts import PromptBook
from taskweave.records import Completion, Request
from taskweave.report import economy
from taskweave.report.economy import Prefixes, Rate, cached_of, per, step_of
from tests.simulated import rows


def spent(site: str, prompt: int, completion: int, *, cached: int | None = None, backbone: str = "m", sent: int = 0) -> Spent:
    return Spent(
        site=site,
        backbone=backbone,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached=cached,
        schema=None,
        messages=(sent,),
    )


class Sent:
    """A journal's side that the figures read: the text of each request by number."""

    def __init__(self, *texts: bytes) -> None:
        self.texts = texts

    def sent(self, spent: Spent) -> bytes:
        return self.texts[spent.messages[0]]


# ---------------------------------------------------------------- formulas
def test_a_rate_is_a_sum_over_what_was_finished() -> None:
    calls = [spent("a:execute", 1000, 100), spent("b:execute", 3000, 300)]
    assert per(calls, [0, 1024], 4) == Rate(of=4, calls=0.5, prompt=1000, uncached=744, completion=100)


def test_where_nothing_is_finished_there_is_no_rate() -> None:
    assert per([spent("a:execute", 1000, 100)], [0], 0) == Rate(of=0, calls=None, prompt=None, uncached=None, completion=None)


def test_a_call_cannot_have_more_cached_than_it_has() -> None:
    assert per([spent("a:execute", 10, 1), spent("b:execute", 10, 1)], [128, 0], 1).uncached == 10


def test_a_prefix_counts_from_1024_tokens_in_steps_of_128() -> None:
    stable = bytes(range(256)) * 20  # 1,280 tokens
    prefixes = Prefixes()
    assert prefixes.covered(stable) == 0, "nothing was sent before"
    assert prefixes.covered(stable[:4200] + b"other" * 900) == 1024
    assert prefixes.covered(stable[:4000] + b"other" * 900) == 0, "1,000 tokens are too few"
    assert prefixes.covered(stable + b"more") == 1280
    assert prefixes.covered(b"x" + stable) == 0, "it must be the beginning"


def test_what_a_provider_reports_is_believed_and_for_others_prefixes_are_computed() -> None:
    long = b"the same beginning " * 300
    journal: Any = Sent(long, long + b"and an end")
    said = [spent("a:merge", 1500, 9, cached=0, sent=0), spent("b:merge", 1500, 9, cached=128, sent=1)]
    silent = [spent("a:merge", 1500, 9, backbone="n", sent=0), spent("b:merge", 1500, 9, backbone="n", sent=1)]
    assert cached_of(said, journal) == ([0, 128], "reported")
    assert cached_of(silent, journal) == ([0, 1408], "computed")
    assert cached_of([*said, *silent], journal) == ([0, 128, 0, 1408], "partly reported")


def test_a_site_tells_its_step_whatever_turn_it_is() -> None:
    assert step_of("Y1/Q2/M05/W19@cto/t2/s1.2:execute") == "execute"
    assert step_of("Y1/Q2@cto:formulate.3") == "formulate"


# ---------------------------------------------------------------- of a run
@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tw.Run:
    return tw.simulate("tiny", until="week:3", out=tmp_path_factory.mktemp("economy") / "r")


def test_the_status_divides_the_calls_of_closed_weeks_by_what_they_finished(run: tw.Run) -> None:
    found = run.status().economy
    assert found is not None
    calls = rows(run, "calls")
    done = rows(run, "subtasks", status="done")
    tasks = rows(run, "tasks", kind="composite", status="done")
    assert (found.weeks, found.cached) == (3, "computed")
    assert found.subtask.of == len(done)
    assert found.subtask.calls == pytest.approx(len(calls) / len(done))
    assert found.subtask.prompt == pytest.approx(sum(call["prompt_tokens"] for call in calls) / len(done))
    assert found.hour.of == pytest.approx(sum(subtask["hours"] for subtask in done))
    executing = [call for call in calls if step_of(call["site"]) in ("decompose", "execute", "merge")]
    assert found.composite.completion == pytest.approx(sum(call["completion_tokens"] for call in executing) / len(tasks))
    assert found.subtask.uncached is not None
    assert found.subtask.prompt is not None
    assert 0 < found.subtask.uncached <= found.subtask.prompt


def test_it_can_be_said_in_lines_and_as_json(run: tw.Run) -> None:
    now = run.status()
    assert now.economy is not None
    said = dict(economy.lines(now.economy))
    assert "calls" in said["a subtask"]
    assert "uncached" in said["a composite task"]
    assert json.loads(json.dumps(now.row()))["economy"]["hour"]["of"] == now.economy.hour.of


def test_a_run_without_a_closed_week_shows_dashes(run: tw.Run) -> None:
    with JournalReader(run.path / "journal.db") as journal:
        nothing = economy.economy(journal, 0, {}, None)
    assert {text for name, text in economy.lines(nothing) if name} == {"–"}


def test_a_week_of_an_older_journal_has_no_planned_hours(run: tw.Run) -> None:
    with JournalReader(run.path / "journal.db") as journal:
        week: ClosedWeek = journal.weeks()[-1]
        found = economy.economy(journal, 3, {name: fact for name, fact in week.facts.items() if name != "hours"}, week.at)
    assert found.hour.calls is None
    assert found.subtask.calls is not None


# ---------------------------------------------------------------- over a year
class Kept(Scripted):
    """Keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        return await super().complete(request)


@pytest.mark.parametrize("until", ["week:8", pytest.param("year", marks=pytest.mark.fire)])
def test_no_prompt_grows_beyond_its_budgets_over_a_year(tmp_path: Path, until: str) -> None:
    backbone, book = Kept(), PromptBook.load()
    year = tw.simulate("tiny", out=tmp_path / "r", until=until, backbone=backbone)
    assert year.finished
    for request in backbone.asked:
        prompt = book[request.prompt]
        free = sum(value_tokens(value) for name, value in request.inputs.items() if name not in prompt.budget)
        frame = tokens(prompt.text.partition("\n---\n")[2])
        assert sum(tokens(text) for _, text in request.messages) <= sum(prompt.budget.values()) + free + frame
    weeks: dict[int, list[int]] = defaultdict(list)
    with JournalReader(year.path / "journal.db") as journal:
        for call in journal.spent():
            if "/W" in call.site:
                weeks[int(call.site.partition("/W")[2][:2])].append(call.prompt_tokens)
    early = statistics.mean(size for week in range(3, 7) for size in weeks[week])
    late = statistics.mean(size for week in sorted(weeks)[-4:] for size in weeks[week])
    assert late / early <= 1.15
