"""What a run may take, in dollars, tokens and hours: never exceeded, over resumes too, and never in the way of the same trace."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taskweave as tw
from taskweave.backbones.pricing import price_of
from taskweave.engine.budget import Bound, Budget, Usage, reserve, rounded_up
from taskweave.engine.engine import Engine
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.promises import Ask
from taskweave.errors import BadInput, Transient
from taskweave.records import Completion, Request
from taskweave.runs import RunFolder
from taskweave.runs.resuming import cause_now, resume_command, stays_stopped
from tests.cli.door import refused, type_in
from tests.loopback import Loopback
from tests.simulated import WORKSHOP, simulated
from tests.workshop import QUICK, Answers, Ran, asks, drive, engine_in, question, trace_of, work

MINI = "openai:gpt-4o-mini"


def ask(site: str = "w", backbone: str = "answers") -> Ask:
    request = question("make", site)
    return Ask(site, site, 1, 0, "complete", request, estimate=reserve(request))


NEED = reserve(question("make", "w"))


def cost(backbone: str, prompt: float, completion: float) -> float:
    return prompt * 1e-3 + completion * 4e-3


# ---------------------------------------------------------------- the arithmetic
def test_a_call_holds_the_most_that_it_can_take_until_it_is_known_what_it_took() -> None:
    budget = Budget(tokens=2 * NEED + 10)
    first, second, third = ask(), ask("v"), ask("u")
    for one in (first, second):
        assert budget.short(one, 0.0) is None
        budget.hold(one)
    assert budget.short(third, 0.0) is not None
    budget.landed(first, 5, 5, 1.0)
    assert budget.spent.tokens == 10
    assert budget.short(third, 0.0) is None
    budget.lost(second)
    assert budget.spent.tokens == 10 + NEED, "what may have been billed stays"
    budget.hold(third)
    budget.release(third)
    assert budget.spent.tokens == 10 + NEED


def test_dollars_are_those_of_the_backbone_and_a_lost_call_costs_the_most_that_it_can_have_taken() -> None:
    budget = Budget(usd=10.0, cost=cost, used=[Usage("answers", 1000, 100, 0, 0, 0), Usage("answers", 0, 0, 2, 1000, 100)])
    assert budget.spent.usd == pytest.approx((1.0 + 0.4) + (1.0 + 0.4))
    short = Budget(usd=0.1, cost=cost).short(ask(), 0.0)
    assert short is not None
    most = (NEED - 100) * 1e-3 + 100 * 4e-3
    assert f"the next call can take up to ${most:.4g}" in short.cause
    assert short.bound == Bound(option="budget_usd", allowed=0.1, enough=rounded_up(most))


def test_what_costs_nothing_is_not_stopped_by_dollars() -> None:
    spent = Usage("paid", 1_000_000, 0, 0, 0, 0)
    free = Budget(usd=0.1, cost=lambda name, prompt, completion: prompt if name == "paid" else 0.0, used=[spent])
    assert free.short(ask(), 0.0) is None


@settings(deadline=None)
@given(
    allowed=st.integers(NEED - 5, 6 * NEED),
    moves=st.lists(st.tuples(st.sampled_from(["send", "landed", "lost", "release"]), st.integers(0, 40)), max_size=60),
)
def test_whatever_happens_no_more_is_spent_than_is_allowed(allowed: int, moves: list[tuple[str, int]]) -> None:
    budget, flying = Budget(tokens=allowed, usd=float(allowed), cost=lambda *taken: sum(taken[1:])), list[Ask]()
    for number, (move, size) in enumerate(moves):
        if move == "send":
            one = ask("w")
            one.key = str(number)
            if budget.short(one, 0.0) is None:
                budget.hold(one)
                flying.append(one)
        elif flying:
            one = flying.pop(size % len(flying))
            if move == "landed":
                budget.landed(one, size, size, 0.1)
            else:
                getattr(budget, move)(one)
        assert budget.spent.tokens <= allowed
        assert budget.spent.usd <= allowed


@pytest.mark.parametrize(("number", "above"), [(0.1, 0.1), (0.1001, 0.11), (12_345, 13_000), (7, 7), (0.00123, 0.0013)])
def test_what_would_be_enough_is_said_with_two_digits(number: float, above: float) -> None:
    assert rounded_up(number) == above


def test_a_bound_names_the_option_that_lets_the_run_go_on() -> None:
    bounds = [("budget_usd", 0.05, 0.1), ("budget_tokens", 1000, 2_000_000), ("budget_hours", 1.5, 3), ("max_fallback", 0.01, 0.2)]
    said = [resume_command(Path("r"), Bound(option=name, allowed=allowed, enough=enough)) for name, allowed, enough in bounds]
    options = ["--budget-usd 0.1", "--budget-tokens 2000000", "--budget-hours 3", "--max-fallback 20%"]
    assert said == [f"taskweave resume r {option}" for option in options]
    assert resume_command(Path("a b"), None) == "taskweave resume 'a b'"


# ---------------------------------------------------------------- the engine
class Counting(Answers):
    """Adds up what it answers, as a provider would bill it."""

    billed = 0

    async def complete(self, request: Request) -> Completion:
        answer = await super().complete(request)
        self.billed += sum(answer.tokens(request))
        return answer


def budget_in(folder: Path, **allowed: Any) -> Budget:
    """What a run of the workshop may still take."""
    path = folder / "journal.db"
    if not path.exists():
        return Budget(**allowed)
    with JournalReader(path) as journal:
        driven, slowest = journal.driven()
        return Budget(**allowed, used=journal.usage(), driven=driven, slowest=slowest)


def worked(folder: Path, answers: Answers, *, limit: int = 4, budget: dict[str, Any], **more: Any) -> Ran:
    return asyncio.run(work(folder, answers, limit=limit, budget=budget_in(folder, **budget), **more))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    asyncio.run(work(folder, Answers()))
    return trace_of(folder)


@pytest.mark.parametrize("limit", [1, 4, 32])
def test_a_run_stops_before_it_exceeds_its_tokens_and_with_more_goes_on_to_the_same_trace(
    tmp_path: Path, undisturbed: list[str], limit: int
) -> None:
    answers, allowed, sessions = Counting(latency=0.002, fail=0.1), 1_500, 0
    while True:
        ran = worked(tmp_path, answers, limit=limit, budget={"tokens": allowed})
        assert answers.billed <= allowed
        sessions += 1
        if ran.engine.stop is None:
            break
        assert (ran.engine.stop, ran.engine.stats.in_flight) == ("budget", 0)
        assert f"of the {allowed:,} tokens that are allowed are spent" in ran.engine.cause
        bound = ran.engine.bound
        assert bound is not None
        assert (bound.option, bound.allowed) == ("budget_tokens", allowed)
        assert answers.billed + NEED > allowed - 200, "it stopped because the next one does not fit, and not before"
        sent = len(answers.sent)
        assert worked(tmp_path, answers, limit=limit, budget={"tokens": allowed}).engine.stop == "budget"
        assert len(answers.sent) == sent, "without more it asks nothing"
        allowed = int(bound.enough)
    assert sessions > 2
    assert ran.digests == undisturbed


def test_lost_calls_are_counted_at_the_most_now_and_by_every_later_session(tmp_path: Path) -> None:
    def breaks(request: Request) -> None:
        if len(answers.sent) <= 2:
            raise Transient("the connection broke", billed=True)
        if len(answers.sent) <= 3:
            raise Transient("429")

    answers = Counting(trouble=breaks)
    first = worked(tmp_path, answers, limit=1, budget={"tokens": 1_100})
    assert first.engine.stop == "budget"
    assert "(2 lost calls counted at the most)" in first.engine.cause
    assert first.engine.stats.lost == 2
    with JournalReader(tmp_path / "journal.db") as journal:
        counts, used = journal.counts(), journal.usage()
        attempts = [attempt for site in journal.sites() for call in journal.calls(site) for attempt in call.attempts]
    assert counts.ended["unknown"] == counts.lost == sum(one.lost for one in used) == 2
    assert (counts.ended["retry"], counts.ended["outcome"]) == (1, len(attempts) - 3)
    assert counts.lost_tokens == sum(attempt.est for attempt in attempts if attempt.how == "unknown")
    assert counts.lost_tokens == sum(one.lost_prompt + one.lost_completion for one in used)
    assert answers.billed + counts.lost_tokens == budget_in(tmp_path, tokens=1).spent.tokens <= 1_100


def test_what_was_in_flight_when_a_run_was_killed_counts_at_the_most(tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    with Journal(tmp_path / "journal.db", create=True) as journal:
        journal.begin_session()
        journal.begin([ask("a"), ask("b")])
    assert budget_in(tmp_path, tokens=1).spent.tokens == 2 * NEED
    engine = engine_in(tmp_path, Answers(), budget=budget_in(tmp_path, tokens=3 * NEED - 1))
    engine.launch("w", asks())
    drive(engine)
    assert engine.stop == "budget"


def test_a_fork_has_paid_nothing_for_what_it_inherited(tmp_path: Path) -> None:
    asyncio.run(work(tmp_path, Answers(), weeks=1))
    assert budget_in(tmp_path, tokens=1).spent.tokens > 0
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.execute("UPDATE outcomes SET inherited = 1")
        db.execute("DELETE FROM attempts")
        db.execute("DELETE FROM ends")
    db.close()
    assert budget_in(tmp_path, tokens=1).spent.tokens == 0


def test_a_finished_run_needs_no_budget(tmp_path: Path) -> None:
    ran = asyncio.run(work(tmp_path, Answers(), weeks=1))
    again = worked(tmp_path, Answers(), budget={"tokens": 1}, weeks=1)
    assert (again.engine.stop, again.digests) == (None, ran.digests)


# ---------------------------------------------------------------- hours
def test_the_end_comes_so_early_that_what_is_in_flight_can_be_given_up_and_written_down() -> None:
    assert Budget(hours=2, driven=600.0).begin(100.0) == 100 + 2 * 3600 - 600 - 2
    assert Budget(hours=10 / 3600).begin(0.0) == pytest.approx(9.0)
    assert Budget(tokens=1).begin(0.0) is None


def test_at_the_deadline_what_is_in_flight_is_given_up_and_counts_as_lost(tmp_path: Path) -> None:
    answers = Answers(latency=300)
    ran = worked(tmp_path, answers, budget={"hours": 0.5 / 3600})
    assert ran.engine.stop == "budget"
    assert "hours that are allowed are over, and 4 calls in flight were given up" in ran.engine.cause
    assert ran.engine.stats.lost == 4
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().open == 4
    again = worked(tmp_path, answers, budget={"hours": 0.5 / 3600})
    assert (again.engine.stop, len(answers.sent)) == ("budget", 4)


def test_nothing_is_sent_that_could_hardly_land_in_time(tmp_path: Path) -> None:
    answers = Answers()
    engine = engine_in(tmp_path, answers, budget=Budget(hours=100 / 3600, driven=60.0, slowest=39.0))
    engine.launch("w", asks())
    drive(engine)
    assert (engine.stop, answers.sent) == ("budget", [])
    assert "hours that are allowed are over, and an answer has taken up to 39.0 s" in engine.cause
    assert engine.bound == Bound(option="budget_hours", allowed=100 / 3600, enough=rounded_up(200 / 3600))


def test_hours_are_summed_over_sessions_and_with_more_the_run_goes_on_to_the_same_trace(tmp_path: Path, undisturbed: list[str]) -> None:
    answers, allowed, sessions = Answers(latency=0.02), 0.4, 0
    while True:
        ran = worked(tmp_path, answers, budget={"hours": allowed / 3600})
        sessions += 1
        if ran.engine.stop is None:
            break
        assert ran.engine.stop == "budget"
        allowed *= 2
    assert sessions > 1
    assert ran.digests == undisturbed


def test_a_session_that_was_killed_counts_up_to_the_last_row_that_it_wrote(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.db", create=True).close()
    day = datetime(2026, 1, 5, 9, tzinfo=UTC)

    def at(seconds: float) -> str:
        return (day + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.executemany(
            "INSERT INTO sessions(seq, first_attempt, at) VALUES (?, 1, ?)", [(1, at(0)), (2, at(100)), (3, at(300)), (4, at(900))]
        )
        db.executemany("INSERT INTO attempts(id, key, est, at) VALUES (?, 'k', 1, ?)", [(1, at(5)), (2, at(110))])
        db.execute("INSERT INTO ends(attempt, how, why, at) VALUES (1, 'retry', '', ?)", (at(20),))
        db.execute("INSERT INTO ticks(tick, at) VALUES (1, ?)", (at(130),))
        db.execute("INSERT INTO stops(session, why, cause, week, at) VALUES (3, 'outage', '', 0, ?)", (at(360),))
    db.close()
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.driven() == (20 + 30 + 60 + 0, 0.0)


# ---------------------------------------------------------------- whole runs
def billed(server: Loopback) -> float:
    """Dollars, by what the server itself has counted."""
    price = price_of(MINI)
    assert price is not None
    return price.cost(server.used["prompt"], 0, server.used["completion"])


def test_dollars_are_never_exceeded_by_the_servers_own_count_and_a_resume_with_more_ends_with_the_same_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "tiny", "--until", "week:4", "--backbone", MINI, "--no-look"]
    with Loopback() as server:
        assert type_in(*words, "--out", "whole", "--base-url", server.url).exit_code == 0
        whole = billed(server)
    with Loopback() as server:
        done = type_in(*words, "--out", "r", "--base-url", server.url, "--budget-usd", "0.01")
        assert done.exit_code == 3, done.output
        assert 0.005 < billed(server) <= 0.01 < whole
        said = " ".join(str(done.stderr).split())
        assert "of the $0.01 that are allowed are spent, and the next call can take up to $" in said
        command = said.rpartition("Continue with: ")[2].split()
        assert command == ["taskweave", "resume", "r", "--budget-usd", "0.02"]
        now = json.loads(type_in("status", "r", "--json").stdout)
        assert (now["state"], now["lost"], now["next"]) == ("budget", 0, " ".join(command))
        assert now["budgets"]["budget_usd"] == [pytest.approx(billed(server)), 0.01]
        assert f"budget ${now['cost_uncached']:.4f} of $0.0100 taken" in " ".join(str(type_in("status", "r").stdout).split())
        sent = len(server.requests)
        assert type_in("resume", "r").exit_code == 3
        assert type_in("resume", "r", "--budget-usd", "0.0075").exit_code == 3
        assert type_in("resume", "r", "--budget-usd", "0.01", "--limit", "1").exit_code == 3
        assert len(server.requests) == sent, "without more nothing is asked"
        assert type_in(*command[1:]).exit_code == 3
        assert billed(server) <= 0.02
        assert type_in("resume", "r", "--budget-usd", "1").exit_code == 0
    assert tw.Run.open("r").digest() == tw.Run.open("whole").digest()


def test_a_model_without_a_price_refuses_dollars_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "routing.yaml").write_text("routes: [{step: merge, backbone: 'openai:unheard-of', base_url: 'http://127.0.0.1:9/v1'}]")
    (tmp_path / "mine.yaml").write_text("models: {unheard-of: {input: 1, output: 2}}")
    run = ["run", "tiny", "--until", "week:1", "--out", "r", "--base-url", "http://127.0.0.1:9/v1"]
    unpriced = (["--backbone", "openai:unheard-of"], ["--backbone", MINI, "--routing", "routing.yaml"])
    for words in unpriced:
        said = refused(*run, *words, "--budget-usd", "1")
        assert "no price is known of openai:unheard-of" in said
        assert "--prices FILE" in said
        assert "--budget-tokens" in said
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.yaml", "routing.yaml"]
    for words in unpriced:
        done = type_in(*run[:-3], f"r{len(words)}", *run[-2:], *words, "--budget-usd", "0.0001", "--prices", "mine.yaml", "--no-look")
        assert done.exit_code == 3, done.output


def test_a_resume_refuses_dollars_for_a_model_without_a_price_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Loopback() as server:
        given = ["run", "tiny", "--until", "week:1", "--out", "r", "--backbone", "openai:any", "--base-url", server.url, "--no-look"]
        assert type_in(*given, "--budget-tokens", "5000").exit_code == 3
        before = (tmp_path / "r" / "config.json").read_bytes()
        assert "no price is known of openai:any" in refused("resume", "r", "--budget-usd", "1")
        assert (tmp_path / "r" / "config.json").read_bytes() == before
        (tmp_path / "mine.yaml").write_text("models: {any: {input: 0.1, output: 0.1}}")
        assert type_in("resume", "r", "--budget-usd", "1", "--budget-tokens", "10000000", "--prices", "mine.yaml").exit_code == 0


def test_the_scripted_stand_in_costs_nothing_and_is_stopped_by_tokens_only(tmp_path: Path) -> None:
    run = tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "usd", until="week:1", budget_usd=1e-9)
    assert run.finished
    run = tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "tokens", until="week:1", budget_tokens=20_000)
    assert run.outcome is not None
    assert (run.outcome.stop, run.finished) == ("budget", False)
    assert run.status().budgets["budget_tokens"][0] <= 20_000
    ended = run.resume(budget_tokens=10**9)
    assert ended.digest() == simulated(tmp_path / "whole", until="week:1").digest()
    assert RunFolder.open(ended.path).config.budget_tokens == 10**9


def test_a_run_that_stays_stopped_speaks_of_what_is_allowed_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert type_in("run", "tiny", "--until", "week:1", "--out", "r", "--budget-tokens", "9000").exit_code == 3
    spent = tw.Run.open("r").status().budgets["budget_tokens"][0]
    done = type_in("resume", "r", "--budget-tokens", "100")
    assert done.exit_code == 3
    now = f"{spent:,} of the 100 tokens that are allowed now are spent. To let it go on, allow --budget-tokens 18000"
    assert now in " ".join(done.stderr.split())
    assert "9,000" not in done.stderr
    assert tw.Run.open("r").status().cause == now
    assert "of the 9,000 tokens that are allowed are spent" in type_in("resume", "r", "--budget-tokens", "9000").stderr
    assert type_in("resume", "r", "--budget-tokens", "100000000").exit_code == 0


@pytest.mark.parametrize(
    ("bound", "allowed", "says"),
    [
        (
            Bound(option="budget_usd", allowed=2, enough=4),
            0.5,
            "$0.25 of the $0.5 that are allowed now are spent. To let it go on, allow --budget-usd 4",
        ),
        (
            Bound(option="budget_hours", allowed=2, enough=4),
            1,
            "0.25 of the 1 hours that are allowed now are over. To let it go on, allow --budget-hours 4",
        ),
        (
            Bound(option="max_fallback", allowed=0.2, enough=0.4, asked=1000, counted=300),
            0.1,
            "300 of 1,000 answers were made by code, and 10 % are allowed now. To let it go on, allow --max-fallback 40%",
        ),
    ],
)
def test_every_bound_speaks_of_what_is_allowed_now(tmp_path: Path, bound: Bound, allowed: float, says: str) -> None:
    config = simulated(tmp_path / "run", until="week:1").config.model_copy(update={bound.option: allowed})
    assert cause_now("as then", bound, config, {bound.option: (0.25, allowed)}) == says
    assert cause_now("as then", bound, config.model_copy(update={bound.option: bound.allowed}), {}) == "as then"
    assert cause_now("as then", bound, config.model_copy(update={bound.option: 2 * bound.allowed}), {}) == "as then"


def test_a_replay_of_a_paid_run_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Loopback() as server:
        given = ["run", "tiny", "--until", "week:1", "--out", "r", "--backbone", "openai:any", "--base-url", server.url, "--no-look"]
        assert type_in(*given).exit_code == 0
    done = type_in("run", "tiny", "--until", "week:1", "--out", "again", "--backbone", "replay:r", "--budget-usd", "0.0001")
    assert done.exit_code == 0, done.output
    assert tw.Run.open("again").digest() == tw.Run.open("r").digest()


def test_a_fork_counts_its_own_calls_only_and_refuses_dollars_for_a_model_without_a_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Loopback() as server:
        words = ["run", "tiny", "--until", "week:2", "--out", "r", "--backbone", MINI, "--base-url", server.url, "--no-look"]
        assert type_in(*words).exit_code == 0
        before = billed(server)
        placebo = ["fork", "r", "--at", "week:2", "--no-look"]
        assert type_in(*placebo, "--out", "same", "--budget-usd", "0.000001").exit_code == 0
        assert billed(server) == before, "what is inherited has cost the fork nothing"
        done = type_in(*placebo, "--out", "anew", "--redraw", "1", "--budget-tokens", "9000")
        assert done.exit_code == 3, done.output
        budgets = json.loads(type_in("status", "anew", "--json").stdout)["budgets"]
        assert 0 < budgets["budget_tokens"][0] <= 9000
        other = [*placebo, "--out", "other", "--backbone", "openai:unheard-of", "--base-url", server.url, "--budget-usd", "1"]
        assert "no price is known of openai:unheard-of" in refused(*other)
        assert not (tmp_path / "other").exists()
    assert tw.Run.open("same").digest() == tw.Run.open("r").digest()


@pytest.mark.parametrize(
    "words",
    [("--budget-usd", "0"), ("--budget-usd", "-1"), ("--budget-usd", "nan"), ("--budget-tokens", "0"), ("--budget-hours", "inf")],
)
def test_a_budget_that_is_none_is_bad_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert words[0] in refused("run", "tiny", "--out", "r", *words)
    assert not list(tmp_path.iterdir())
    name = words[0].removeprefix("--").replace("-", "_")
    with pytest.raises(BadInput, match=name):
        tw.simulate("tiny", out=tmp_path / "r", **{name: float(words[1])})  # type: ignore[arg-type]


def test_a_paid_run_with_a_budget_is_begun_without_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave.backbones import pricing

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pricing, "is_private", lambda url: False)
    with Loopback() as server:
        words = ["run", "tiny", "--until", "week:1", "--backbone", MINI, "--base-url", server.url, "--no-look"]
        assert "or bound it, for example with --budget-usd 5" in refused(*words, "--out", "r")
        for option, enough in (("usd", "1"), ("tokens", "10000000"), ("hours", "1")):
            done = type_in(*words, "--out", option, f"--budget-{option}", enough)
            assert done.exit_code == 0, done.output
            assert "rehearsing" not in done.output


def test_the_look_before_a_run_keeps_to_its_budget_and_counts_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "tiny", "--until", "week:1", "--backbone", MINI]
    with Loopback() as server:
        done = type_in(*words, "--base-url", server.url, "--out", "r", "--budget-usd", "0.000001")
        assert done.exit_code == 3
        assert "The look ended early: not asked: $0 of the $1e-06 that are allowed are spent" in " ".join(done.stderr.split())
        assert server.requests == []
        assert type_in(*words, "--base-url", server.url, "--out", "s", "--budget-usd", "0.0008").exit_code == 3
        looked = sum("response_format" not in one or one["response_format"]["json_schema"]["name"] == "probe" for one in server.requests)
        assert looked > 0
        assert billed(server) <= 0.0008
    with JournalReader(tmp_path / "s" / "journal.db") as journal:
        assert sum(one.prompt for one in journal.usage()) == server.used["prompt"]


def test_a_stop_that_names_no_bound_stands_in_nobodys_way(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    assert not stays_stopped(None, run.config)
    assert not stays_stopped(Bound(option="budget_usd", allowed=1, enough=2), run.config), "a bound that is no more"
    engine: Engine = engine_in(tmp_path, Answers(), pacing=QUICK)
    engine.launch("w", asks())
    drive(engine)
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.stops()[-1].bound is None
