"""The scripted backbone's second process: the same answers, whether it answers, ends, or cannot be had."""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskweave import prompt_files
from taskweave.backbones.scripted import Scripted, beside
from taskweave.errors import BadInput
from taskweave.prompts import PromptBook
from taskweave.records import Request
from tests.samples import INPUTS
from tests.simulated import simulated

BOOK = PromptBook.load()


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The other process starts with the first question; gives the numbers of the questions that it answered."""
    answered: list[int] = []
    told = beside.Beside.answer

    async def answer(self: beside.Beside, request: Request) -> str | None:
        text = await told(self, request)
        if text is not None:
            answered.append(self._asked)
        end = time.monotonic() + 60
        while self._asking is None and self._running is not None and not self._running.done() and time.monotonic() < end:
            await asyncio.sleep(0.01)  # a run as short as a test's would be over before the other process is ready
        return text

    monkeypatch.setattr(beside, "AFTER", 1)
    monkeypatch.setattr(beside, "_cores", lambda: 2)
    monkeypatch.setattr(beside.Beside, "answer", answer)
    return answered


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that asyncio starts."""
    made: list[Any] = []
    start = asyncio.create_subprocess_exec

    async def started(*words: Any, **more: Any) -> Any:
        made.append(await start(*words, **more))
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    return made


def test_a_run_is_the_same_wherever_its_answers_are_written(tmp_path: Path, early: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    helped = simulated(tmp_path / "helped", "tiny", until="week:6")
    assert len(early) > 50
    monkeypatch.setattr(beside, "_cores", lambda: 1)
    count = len(early)
    alone = simulated(tmp_path / "alone", "tiny", until="week:6")
    assert len(early) == count
    assert helped.digest() == alone.digest()


def test_a_process_that_is_killed_is_done_without(
    tmp_path: Path, early: list[int], made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = beside.Beside.answer

    async def answer(self: beside.Beside, request: Request) -> str | None:
        if len(early) >= 20 and made[0].returncode is None:
            made[0].kill()
        return await told(self, request)

    monkeypatch.setattr(beside.Beside, "answer", answer)
    killed = simulated(tmp_path / "killed", "tiny", until="week:6")
    assert 20 <= len(early) < 60
    monkeypatch.setattr(beside, "_cores", lambda: 1)
    assert killed.digest() == simulated(tmp_path / "alone", "tiny", until="week:6").digest()


def test_where_no_process_can_be_started_answers_are_written_here(
    tmp_path: Path, early: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*words: Any, **more: Any) -> Any:
        raise PermissionError("no processes here")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    assert list(simulated(tmp_path / "run", "tiny", until="week:1").table("results"))
    assert not early


def test_what_the_other_process_cannot_answer_is_refused_as_ever(early: list[int]) -> None:
    async def asked() -> None:
        scripted = Scripted()
        good = BOOK.request("merge", INPUTS["merge"], schema=None, backbone="scripted")
        while not early:
            await scripted.complete(good)
        try:
            with pytest.raises(BadInput, match="answers only"):
                await scripted.complete(replace(good, prompt="dance"))
            assert (await scripted.complete(good)).text
        finally:
            await scripted.close()

    asyncio.run(asked())


def test_the_other_process_ends_with_its_input() -> None:
    answers = io.BytesIO()
    beside.serve(io.BytesIO(b"half a head"[:5]), answers)
    assert answers.getvalue() == beside.READY


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_no_process_is_left_when_the_run_is_killed(tmp_path: Path) -> None:
    code = (
        "import taskweave.backbones.scripted.beside as b; b.AFTER = 1; b._cores = lambda: 2\n"
        "from tests.simulated import simulated; from pathlib import Path\n"
        f"simulated(Path({str(tmp_path / 'run')!r}), 'company_a', until='year')"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent.parent)
    try:
        others: list[int] = []
        end = time.monotonic() + 60
        while not others and time.monotonic() < end:
            time.sleep(0.05)
            others = [pid for pid in children(run.pid) if b"scripted.beside" in commandline(pid)]
        assert others, "it did not start"
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    end = time.monotonic() + 30
    while any(b"scripted.beside" in commandline(pid) for pid in others):
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(place.parent.name))
    return found


def commandline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_one_backbone_can_answer_several_runs(early: list[int]) -> None:
    scripted = Scripted()
    good = BOOK.request("merge", INPUTS["merge"], schema=None, backbone="scripted")

    async def asked() -> None:
        before = len(early)
        while len(early) == before:
            await scripted.complete(good)
        await scripted.close()

    asyncio.run(asked())
    asyncio.run(asked())


def test_a_process_that_hangs_is_given_up(early: list[int], made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "WAIT", 0.3)
    scripted = Scripted()
    good = BOOK.request("merge", INPUTS["merge"], schema=None, backbone="scripted")

    async def asked() -> None:
        while not early:
            await scripted.complete(good)
        made[0].send_signal(signal.SIGSTOP)
        assert (await scripted.complete(good)).text
        await scripted.close()
        assert made[0].returncode == -signal.SIGKILL

    asyncio.run(asked())


def test_what_another_module_prints_or_is_named_spoils_no_answer(tmp_path: Path, early: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello from far too early', flush=True)\n")
    (tmp_path / "json.py").write_text("raise SystemExit\n")
    (tmp_path / "taskweave").mkdir()
    (tmp_path / "taskweave" / "__init__.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    helped = simulated(tmp_path / "elsewhere", "tiny", until="week:2")
    assert early, "a folder of that name does not matter where one stands"
    early.clear()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "json.py").unlink()
    assert simulated(tmp_path / "printing", "tiny", until="week:2").digest() == helped.digest()
    assert not early, "what is not understood is done without"


def test_a_subclass_answers_itself(tmp_path: Path, early: list[int]) -> None:
    class Mine(Scripted):
        pass

    async def asked() -> None:
        mine = Mine()
        for _ in range(5):
            await mine.complete(BOOK.request("merge", INPUTS["merge"], schema=None, backbone="scripted"))

    asyncio.run(asked())
    assert not early


def test_two_threads_may_begin_runs_at_once(tmp_path: Path) -> None:
    prompt_files._compiled.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        for run in threads.map(lambda n: simulated(tmp_path / str(n), until="week:1"), range(4)):
            assert run.digest()


def test_a_bug_in_the_other_process_ends_it() -> None:
    broken = io.BytesIO(beside._HEAD.pack(3, 1) + b"???")
    with pytest.raises(pickle.UnpicklingError):
        beside.serve(broken, io.BytesIO())
