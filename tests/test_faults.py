"""What a network and a provider do to a run: it waits and ends with the trace of the undisturbed run, or stops at once and says why."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taskweave as tw
from taskweave.backbones.openai import OpenAI
from taskweave.engine import engine as engine_module
from taskweave.engine.journal import JournalReader
from taskweave.errors import Refused, Transient
from taskweave.records import Completion, Request
from tests.cli.door import shell, type_in
from tests.loopback import Loopback, unreachable
from tests.simulated import WORKSHOP
from tests.workshop import QUICK, Answers, work

MODEL = "openai:any"
Fault = int | str | None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries of whole runs wait as short as those of the workshop."""
    monkeypatch.setattr(engine_module, "Pacing", lambda: QUICK)


def simulated(where: Path, url: str, **more: Any) -> tw.Run:
    org = tw.Organization(WORKSHOP)
    backbone = OpenAI("any", url, timeout=1.0)
    return tw.simulate(org, out=where, until="week:1", backbone=backbone, limit=4, style="full", look=False, **more)


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the run that nothing disturbed."""
    with Loopback() as server:
        return simulated(tmp_path_factory.mktemp("undisturbed") / "run", server.url).digest()


def ended(run: tw.Run) -> dict[str, int]:
    """How its attempts ended."""
    with JournalReader(run.folder.journal_path) as journal:
        return journal.counts().ended


# ---------------------------------------------------------------- what passes
@pytest.mark.parametrize(
    ("faults", "retry_after", "lost"),
    [
        ([429] * 6, None, 0),
        ([429] * 3, "0.2", 0),
        ([500, 502, 503, 504, 529, 408], None, 0),
        (["drop", None, None, "made", "drop"], None, 3),
        (["garbage", "html", "empty"], None, 3),
        (["hang", 429, "hang"], None, 2),
    ],
    ids=["429", "Retry-After", "5xx", "dropped", "no completion", "read timeout"],
)
def test_a_run_waits_out_a_fault_and_ends_with_the_trace_of_the_undisturbed_one(
    tmp_path: Path, digest: str, faults: list[Fault], retry_after: str | None, lost: int
) -> None:
    began = time.monotonic()
    with Loopback(faults=faults, retry_after=retry_after) as server:
        run = simulated(tmp_path / "run", server.url)
        took, now = time.monotonic() - began, run.status()
        assert (run.finished, run.digest()) == (True, digest)
        assert server.used["answers"] <= now.calls + now.lost
    assert now.lost >= lost
    assert ended(run).get("unknown", 0) == now.lost
    assert sum(ended(run).values()) >= now.calls + len([one for one in faults if one is not None])
    assert now.lost_tokens > 0 or not lost
    assert retry_after is None or took >= float(retry_after)


def test_an_endpoint_that_takes_no_connection_for_a_while_is_waited_for_and_nothing_is_lost(tmp_path: Path, digest: str) -> None:
    with contextlib.ExitStack() as servers:

        def opens() -> None:
            time.sleep(1.2)
            closed.close()
            servers.enter_context(Loopback(port=port))

        closed = contextlib.ExitStack()
        url = closed.enter_context(unreachable())
        port = int(url.rpartition(":")[2].partition("/")[0])
        opening = threading.Thread(target=opens)
        opening.start()
        run = simulated(tmp_path / "run", url)
        opening.join()
    assert (run.finished, run.digest()) == (True, digest)
    assert ended(run) == {"outcome": run.status().calls, "retry": ended(run)["retry"]}
    with JournalReader(run.folder.journal_path) as journal:
        said = [
            attempt.why for site in journal.sites() for call in journal.calls(site) for attempt in call.attempts if attempt.how == "retry"
        ]
    assert any("within 0.5 s" in why for why in said), "a connection that does not come about in time"


class Failing(Loopback):
    """Answers so many requests, and then none for some seconds."""

    def __init__(self, *, well: int, seconds: float, **more: Any) -> None:
        super().__init__(**more)
        self.well, self.seconds, self.since = well, seconds, 0.0

    def enter(self, request: dict[str, Any], key: str) -> int | str | bytes | None:
        fault = super().enter(request, key)
        if len(self.requests) <= self.well:
            return fault
        self.since = self.since or time.monotonic()
        return 503 if time.monotonic() - self.since < self.seconds else fault


def test_an_outage_shorter_than_patience_changes_nothing_and_is_said_while_it_lasts(tmp_path: Path, digest: str) -> None:
    seen: list[Any] = []
    with Failing(well=10, seconds=2.5) as server:
        run = simulated(tmp_path / "run", server.url, observe=seen.append)
        assert (run.finished, run.digest()) == (True, digest)
        assert server.used["answers"] == run.status().calls
    outages = [progress.outage for progress in seen if progress.outage is not None]
    assert "503: trouble 503" in outages[-1].trouble
    assert outages[-1].seconds > 1
    assert outages[-1].left < 599
    assert seen[-1].outage is None


def test_a_server_that_goes_away_and_comes_back_is_waited_for(tmp_path: Path, digest: str) -> None:
    with contextlib.ExitStack() as servers:
        first = Loopback(latency=0.02)
        first.__enter__()
        port = int(first.url.rpartition(":")[2].partition("/")[0])

        def restarts() -> None:
            while len(first.requests) < 8:
                time.sleep(0.01)
            first.__exit__()
            time.sleep(1)
            servers.enter_context(Loopback(port=port))

        restarting = threading.Thread(target=restarts)
        restarting.start()
        run = simulated(tmp_path / "run", first.url)
        restarting.join()
    assert (run.finished, run.digest()) == (True, digest)


# ---------------------------------------------------------------- what does not
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("key", "said 401: Incorrect API key provided: …. (check OPENAI_API_KEY)"),
        ("quota", "said 429: You exceeded your current quota. (no quota)"),
        (404, "said 404: trouble 404 (check the model 'any' and the base URL)"),
    ],
)
def test_what_cannot_pass_stops_at_once_with_the_providers_words_and_the_command_that_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    words = ["run", "tiny", "--until", "week:1", "--out", "r", "--backbone", MODEL, "--no-look", "--limit", "2", "--base-url"]
    with Loopback(faults=[None, None, fault]) as server:
        done = type_in(*words, server.url)
        assert done.exit_code == 75, done.output
        told = " ".join(str(done.stderr).split())
        assert f"{said}. Continue with: taskweave resume r" in told
        assert len(server.requests) <= 5
        assert type_in("resume", "r").exit_code == 0


def test_an_outage_longer_than_patience_drains_and_ends_with_75(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "tiny", "--until", "week:1", "--out", "r", "--backbone", MODEL, "--no-look", "--patience", "0.5", "--base-url"]
    with Failing(well=5, seconds=1e9) as server:
        done = type_in(*words, server.url)
        assert done.exit_code == 75, done.output
        assert "outage after week 0: no answer for" in done.stderr
        assert "said 503: trouble 503. Continue with: taskweave resume r" in " ".join(done.stderr.split())
        now = json.loads(type_in("status", "r", "--json").stdout)
        assert (now["state"], now["calls"], now["lost"], now["trouble"]) == ("outage", 5, 0, None)
        server.seconds = 0
        assert type_in("resume", "r").exit_code == 0


# ---------------------------------------------------------------- the progress line and the status
def test_while_nothing_is_answered_the_line_and_the_status_say_since_when_and_what_the_provider_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskweave.cli import progress

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(progress.EVERY, "plain", 0.05)
    shown: list[str] = []
    with Failing(well=10, seconds=1e9) as server:

        def looks() -> None:
            while not server.since or time.monotonic() - server.since < 2.5:
                time.sleep(0.05)
            shown.extend(shell("status", "r", *more).stdout.decode() for more in (["--json"], []))
            server.seconds = 0

        looking = threading.Thread(target=looks)
        looking.start()
        done = type_in("run", "tiny", "--until", "week:1", "--out", "r", "--backbone", MODEL, "--no-look", "--base-url", server.url)
        looking.join()
    assert done.exit_code == 0
    lines = [line for line in done.stderr.splitlines() if "no answer for" in line]
    assert lines
    assert all("stops in 9 min" in line and "said 503: trouble 503" in line for line in lines)
    seconds, said, left = json.loads(shown[0])["trouble"]
    assert seconds >= 2
    assert "said 503: trouble 503" in said
    assert 0 < left < 599
    assert "trouble no answer for" in " ".join(shown[1].split())
    assert json.loads(type_in("status", "r", "--json").stdout)["trouble"] is None


# ---------------------------------------------------------------- any schedule
class Dealt(Answers):
    """Meets what is dealt, one a request, before it answers well; `made` counts answers, also those that nobody gets."""

    def __init__(self, deal: Iterator[str]) -> None:
        super().__init__(latency=0.001)
        self.deal, self.made = deal, 0

    async def complete(self, request: Request) -> Completion:
        fault = next(self.deal, "well")
        if fault == "refused":
            raise Refused("401 wrong key")
        if fault in ("429", "503"):
            raise Transient(fault, 0.002 if fault == "429" else 0.0)
        answer = await super().complete(request)
        self.made += 1
        if fault == "broke":
            raise Transient("the connection broke", billed=True)
        if fault == "slow":
            await asyncio.sleep(0.02)
        return answer


class Shop(Loopback):
    """Answers what the workshop asks."""

    def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
        splits = "You split" in request["messages"][0]["content"]
        numbers = {"type": "array", "items": {"type": "integer", "minimum": 5, "maximum": 50}, "minItems": 1, "maxItems": 3}
        schema = numbers if splits else {"type": "string"}
        return super().completion({**request, "response_format": {"json_schema": {"schema": schema}}}, fault)


def through(make: Callable[[], Any], made: Callable[[], int], weeks: int = 2) -> list[str]:
    """The trace of a run that is resumed until it ends; no answer that was made is missing from its books."""
    with tempfile.TemporaryDirectory() as place:
        while True:
            ran = asyncio.run(closed(Path(place), make(), weeks))
            with JournalReader(Path(place) / "journal.db") as journal:
                counts = journal.counts()
            assert counts.open == 0
            assert made() <= counts.outcomes.get("complete", 0) + counts.lost
            if ran.engine.stop is None:
                return ran.digests
            assert ran.engine.stop == "refused"


async def closed(place: Path, backbone: Any, weeks: int) -> Any:
    try:
        return await work(place, backbone, weeks=weeks, lines=3)
    finally:
        if hasattr(backbone, "close"):
            await backbone.close()


@pytest.fixture(scope="module")
def traces() -> dict[str, list[str]]:
    """Without a fault, of each kind of backbone."""
    with Shop() as server:
        over_http = through(lambda: OpenAI("any", server.url), lambda: 0)
    return {"here": through(lambda: Dealt(iter(())), lambda: 0), "http": over_http}


@settings(max_examples=25, deadline=None)
@given(deal=st.lists(st.sampled_from(["well", "429", "503", "broke", "slow", "refused"]), max_size=60))
def test_whatever_happens_to_the_answers_the_trace_is_that_of_no_fault_at_all(traces: dict[str, list[str]], deal: list[str]) -> None:
    answers = Dealt(iter(deal))
    assert through(lambda: answers, lambda: answers.made) == traces["here"]


@settings(max_examples=8, deadline=None)
@given(deal=st.lists(st.sampled_from([None, 429, 500, 503, "drop", "made", "garbage", "html", "empty", "key", "quota"]), max_size=40))
def test_so_it_is_over_http(traces: dict[str, list[str]], deal: list[Fault]) -> None:
    with Shop(faults=deal) as server:
        assert through(lambda: OpenAI("any", server.url), lambda: server.used["answers"]) == traces["http"]
