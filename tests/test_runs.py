"""The run folder: it appears whole, remembers what it was told, is held by one process, and hears others through its inbox."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.errors import BackboneOut, BadInput, DiskFull, RunRefused
from taskweave.runs import Holder, Inbox, Injection, RunConfig, RunFolder, Segment, default_path, list_runs, lock
from taskweave.runs import folder as folder_module

CONFIG = RunConfig(organization="Acme", segments=(Segment(backbone="scripted"),))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    place = tmp_path / "shipped prompts"
    place.mkdir()
    (place / "formulate.md").write_text("plan {{ unit }}")
    (place / "README.md").write_text("about them")
    return place


def make(path: Path | str, prompts: Path, **more: object) -> RunFolder:
    given: dict[str, object] = {"config": CONFIG, "organization_text": "name: Acme\n", "population_json": "{}", "prompts_dirs": [prompts]}
    return RunFolder.create(Path(path), **(given | more))  # type: ignore[arg-type]


# ---------------------------------------------------------------- coming to be
def test_a_run_folder_holds_what_the_run_was_told(prompts: Path) -> None:
    made = make("runs/acme-1", prompts, config=CONFIG.model_copy(update={"seed": 7, "tags": {"study": "pilot"}}))
    opened = RunFolder.open("acme-1")
    assert opened.config == made.config
    assert (opened.config.seed, opened.config.tags) == (7, {"study": "pilot"})
    assert (opened.path / "org.yaml").read_text() == "name: Acme\n"
    assert sorted(p.name for p in (opened.path / "prompts").iterdir()) == ["formulate.md"]
    assert opened.inbox.is_dir()
    assert opened.journal_path.is_file()


def test_later_prompt_folders_lie_over_earlier_ones(prompts: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "formulate.md").write_text("my plan")
    made = make("run", prompts, prompts_dirs=[prompts, mine])
    assert (made.path / "prompts" / "formulate.md").read_text() == "my plan"


def test_paths_with_spaces_and_other_scripts_are_paths(prompts: Path) -> None:
    made = make("länder und ö/日本 1", prompts)
    assert RunFolder.open("länder und ö/日本 1").config == made.config


def test_a_folder_that_exists_is_refused_and_the_message_names_what_to_type(prompts: Path) -> None:
    make("run", prompts)
    with pytest.raises(RunRefused, match="taskweave resume run"):
        make("run", prompts)
    Path("other").mkdir()
    with pytest.raises(RunRefused, match="not a run"):
        make("other", prompts)


@pytest.mark.parametrize("inside", ["run/again", "run/inbox/deep/again", "link/again"])
def test_a_folder_within_another_run_is_refused_and_nothing_is_made(prompts: Path, inside: str) -> None:
    make("run", prompts)
    Path("link").symlink_to("run", target_is_directory=True)
    before = sorted(Path("run").rglob("*"))
    with pytest.raises(RunRefused, match="lies within the run .*run, whose folder is its own. Choose another --out"):
        make(inside, prompts)
    assert sorted(Path("run").rglob("*")) == before


def test_a_config_of_another_program_above_a_folder_is_no_run(prompts: Path) -> None:
    Path("site").mkdir()
    Path("site/config.json").write_text("{}")
    assert make("site/runs/acme", prompts).path.is_dir()


def test_of_two_that_make_the_same_folder_one_is_refused(prompts: Path) -> None:
    came: list[object] = []

    def one() -> None:
        try:
            came.append(make("run", prompts))
        except RunRefused as refused:
            came.append(refused)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(x).__name__ for x in came) == ["RunFolder", "RunRefused", "RunRefused", "RunRefused"]
    assert [p.name for p in Path().iterdir() if p.name.startswith(".")] == []


def test_a_creation_that_fails_leaves_nothing(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder_module.os, "fsync", no_room)
    with pytest.raises(BackboneOut, match="disk is full") as full:
        make("runs/acme", prompts)
    assert full.value.exit_code == 75
    assert not Path("runs").exists()


def test_a_journal_that_finds_no_room_while_the_run_is_made_is_no_run_to_resume(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Journal:
        raise DiskFull("journal.db: database or disk is full; make room on that disk, then resume")

    monkeypatch.setattr(folder_module, "Journal", full)
    with pytest.raises(BackboneOut, match="r: the disk is full; the run was not begun") as caught:
        make("r", prompts)
    assert "resume" not in str(caught.value)
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "cannot be read"), ("", "not the"), ("{", "not the"), ("{}", "nobody"), ("[7]", "not the"), ('[{"id": "a"}]', "not the")],
)
def test_people_that_are_missing_or_none_are_named(prompts: Path, text: str | None, says: str) -> None:
    run = make("r", prompts)
    file = Path("r/population.json")
    file.unlink() if text is None else file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=f"r/population.json: .*{says}.*restore it from a copy"):
        run.population()


@pytest.mark.parametrize("patience", [float("inf"), float("nan")])
def test_patience_ends_some_day(prompts: Path, patience: float) -> None:
    with pytest.raises(BadInput, match="patience"):
        make("r", prompts).with_config(patience=patience)


def test_a_killed_creation_leaves_nothing_that_the_next_does_not_clean(prompts: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom tests import test_runs\nfrom taskweave.runs import folder\n"
        "folder.sync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"test_runs.make('run', Path({str(prompts)!r}))\n"
    )
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    killed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not Path("run").exists()
    assert len(list(tmp_path.glob(".taskweave-new-*"))) == 1
    with pytest.raises(RunRefused, match="no such run"):
        RunFolder.open("run")
    make("run", prompts)
    assert list(tmp_path.glob(".taskweave-new-*")) == []


def test_what_a_live_process_builds_is_left_to_it(prompts: Path, tmp_path: Path) -> None:
    building = tmp_path / f".taskweave-new-{Holder.me().host}-{os.getpid()}-0123abcd"
    building.mkdir()
    with lock.owned(building):
        make("one", prompts)
        assert building.is_dir()
    make("two", prompts)
    assert not building.exists()


def test_incidents_known_before_the_run_stand_in_its_journal(prompts: Path) -> None:
    injections = Injection.name([{"title": "Tax audit", "tick": 12}, {"title": "Tax Audit!"}])
    made = make("run", prompts, injections=injections)
    with JournalReader(made.journal_path) as journal:
        assert [(i.id, i.tick, i.payload["title"]) for i in journal.injections()] == [
            ("tax-audit-2", 0, "Tax Audit!"),
            ("tax-audit", 12, "Tax audit"),
        ]
    assert made.send({"title": "tax audit"}) == "tax-audit-3"


# ---------------------------------------------------------------- its config
def test_a_config_of_a_newer_taskweave_is_refused_with_what_to_do(prompts: Path) -> None:
    made = make("run", prompts)
    path = made.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99, "new": 1}))
    with pytest.raises(BadInput, match="format 99.*newer TaskWeave"):
        RunFolder.open("run")


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "not JSON"), ("[]", "a mapping"), ('{"organization": "A"}', "segments"), ("{\xff", "not JSON"), ('{"sed": 1}', "sed")],
)
def test_a_config_that_is_none_is_refused(prompts: Path, text: str, what: str) -> None:
    made = make("run", prompts)
    (made.path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=what):
        RunFolder.open("run")


def test_an_unknown_key_in_the_config_is_refused(prompts: Path) -> None:
    made = make("run", prompts)
    path = made.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sed": 2}))
    with pytest.raises(BadInput, match="sed"):
        RunFolder.open("run")


def test_what_resume_may_change_is_written_and_the_rest_is_refused(prompts: Path) -> None:
    made = make("run", prompts)
    changed = made.with_config(until="week:8", limit=2)
    assert (changed.config.until, changed.config.limit) == ("week:8", 2)
    assert RunFolder.open("run").config == changed.config
    with pytest.raises(RunRefused, match="seed"):
        made.with_config(seed=2)
    assert RunFolder.open("run").config.seed == 1


def test_a_changed_config_is_checked_like_a_read_one(prompts: Path) -> None:
    made = make("run", prompts)
    with pytest.raises(BadInput, match="limit"):
        made.with_config(limit=0)
    assert RunFolder.open("run").config.limit == 16


# ---------------------------------------------------------------- names
def test_an_unknown_run_is_refused_with_the_nearest_names(prompts: Path) -> None:
    make("runs/company-a-1", prompts)
    with pytest.raises(RunRefused, match="The nearest: company-a-1"):
        RunFolder.open("company-a-2")
    Path("empty").mkdir()
    with pytest.raises(RunRefused, match="taskweave run"):
        RunFolder.open("empty")


def test_the_default_folder_has_a_number_where_it_exists(prompts: Path) -> None:
    assert default_path("acme", 3) == Path("runs/acme-3")
    make("runs/acme-3", prompts)
    assert default_path("acme", 3) == Path("runs/acme-3-2")


def test_runs_are_listed_by_pattern_in_order(prompts: Path, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        make(f"runs/{name}", prompts)
    Path("runs/d").mkdir()
    assert [p.name for p in list_runs()] == ["a", "b", "c"]
    assert [p.name for p in list_runs("runs/[ab]")] == ["a", "b"]
    assert [p.name for p in list_runs(str(tmp_path / "runs" / "*"))] == ["a", "b", "c"]
    assert list_runs("nowhere/*") == []


@pytest.mark.parametrize(
    ("where", "pattern", "names"),
    [
        *((".", folder, ["a", "b"]) for folder in ("runs", "runs/", "./runs", "runs/.")),
        *(("runs", folder, ["a", "b"]) for folder in (".", "./", "", "../runs")),
        *((".", run, ["a"]) for run in ("runs/a", "runs/a/", "./runs/a", "runs/**/a")),
        ("runs/a", ".", ["a"]),
        (".", "./", []),
        (".", "x" * 5000, []),
    ],
)
def test_a_folders_name_lists_the_runs_in_it(
    prompts: Path, monkeypatch: pytest.MonkeyPatch, where: str, pattern: str, names: list[str]
) -> None:
    for name in ("b", "a"):
        make(f"runs/{name}", prompts)
    monkeypatch.chdir(where)
    assert [path.resolve().name for path in list_runs(pattern)] == names


def test_what_is_no_pattern_is_refused_with_one_that_is(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def glob(self: Path, pattern: str) -> None:  # which patterns it refuses differs from one Python to the next
        raise ValueError(f"Invalid pattern: {pattern!r}")

    monkeypatch.setattr(Path, "glob", glob)
    with pytest.raises(BadInput, match=r"'a\*\*': is no pattern of folders \(Invalid pattern.*Name for example"):
        list_runs("a**")


def test_what_is_to_be_typed_is_quoted(prompts: Path) -> None:
    folder = make("erster lauf", prompts)
    with pytest.raises(RunRefused, match="taskweave resume 'erster lauf'"):
        make("erster lauf", prompts)
    with folder.lock(), pytest.raises(RunRefused, match=r"taskweave status 'erster lauf'.*taskweave stop 'erster lauf'"), folder.lock():
        pass


# ---------------------------------------------------------------- the lock
def test_a_held_run_is_refused_and_the_holder_is_named(prompts: Path) -> None:
    made = make("run", prompts)
    with made.lock():
        assert made.holder() == made.holder()
        with pytest.raises(RunRefused, match=rf"process {os.getpid()} on .* since .*taskweave stop"), made.lock():
            pass
    assert made.holder() is None
    with made.lock():
        pass


def test_the_lock_goes_with_the_process_that_was_killed(prompts: Path) -> None:
    made = make("run", prompts)
    code = (
        "import time\nfrom taskweave.runs import RunFolder\n"
        "with RunFolder.open('run').lock():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        held_by = made.holder()
        assert held_by is not None
        assert held_by.pid == other.pid
        with pytest.raises(RunRefused, match=str(other.pid)), made.lock():
            pass
        other.kill()
    assert made.holder() is None
    with made.lock():
        pass


def test_looking_at_a_run_does_not_keep_it_from_starting(prompts: Path) -> None:
    made = make("run", prompts)
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            made.holder()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(50):
            with made.lock():
                pass
    finally:
        over.set()
        thread.join()


def test_where_a_file_system_has_no_locks_a_file_names_the_holder(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    made = make("run", prompts)
    monkeypatch.setattr(lock.fcntl, "flock", none)
    mark = made.path / "lock.held"
    with made.lock():
        assert mark.is_file()
        holder = made.holder()
        assert holder is not None
        assert holder.pid == os.getpid()
        with pytest.raises(RunRefused, match=f"delete .*{mark.name}"), made.lock():
            pass
    assert not mark.exists()
    gone = subprocess.run(["true"], check=False)
    assert gone.returncode == 0
    dead = 2**22 + 1  # above the largest process id
    mark.write_text(Holder(pid=dead, host=Holder.me().host, since="2026-01-05T09:00:00+00:00").text())
    assert made.holder() is None
    with made.lock():
        pass
    mark.write_text(Holder(pid=dead, host="elsewhere", since="2026-01-05T09:00:00+00:00").text())
    with pytest.raises(RunRefused, match="elsewhere"), made.lock():
        pass


# ---------------------------------------------------------------- the inbox
def test_an_incident_arrives_whole_under_a_name_made_of_its_title(prompts: Path) -> None:
    made = make("run", prompts)
    payload = {"title": "Régulator demands… proof!", "severity": "high"}
    assert made.send(payload) == "regulator-demands-proof"
    assert json.loads((made.inbox / "regulator-demands-proof.json").read_text()) == payload
    assert made.send(payload) == "regulator-demands-proof-2"
    assert Inbox(made.inbox).waiting() == ["regulator-demands-proof", "regulator-demands-proof-2"]


def test_an_id_is_never_given_twice_though_the_engine_empties_the_inbox(prompts: Path) -> None:
    made = make("run", prompts)
    with Journal(made.journal_path, create=False) as journal:
        ids = []
        for tick in range(3):
            ids.append(made.send({"title": "Strike"}))
            assert [i.id for i in journal.tick(tick, made.inbox)] == [ids[-1]]
    assert ids == ["strike", "strike-2", "strike-3"]
    assert made.send({"title": "Strike"}, known=["strike-4"]) == "strike-5"


def test_two_that_send_at_once_get_two_ids(prompts: Path) -> None:
    made = make("run", prompts)
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(made.send({"title": "Strike"}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 8
    assert Inbox(made.inbox).waiting() == sorted(ids)


def test_a_title_without_letters_still_has_a_name(prompts: Path) -> None:
    assert make("run", prompts).send({"title": "!!!"}) == "incident"


def test_an_inbox_that_is_missing_is_made_by_whoever_needs_it(prompts: Path) -> None:
    folder = make("r", prompts)
    for use in (Inbox(folder.inbox).begin, lambda: folder.send({"title": "New boss"}), lambda: Inbox(folder.inbox).control("stop")):
        shutil.rmtree(folder.inbox)
        use()
        assert folder.inbox.is_dir()


def test_an_inbox_that_cannot_be_written_is_refused_with_what_to_do(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make("r", prompts)
    with monkeypatch.context() as unwritable:  # a test may run as root, who may write everywhere
        unwritable.setattr(os, "access", lambda path, mode: Path(path) != folder.inbox)
        with pytest.raises(RunRefused, match=r"inbox: nothing can be put into it \(Permission denied\)"):
            Inbox(folder.inbox).begin()
    shutil.rmtree(folder.inbox)
    folder.inbox.write_text("")
    for use in (Inbox(folder.inbox).begin, lambda: folder.send({"title": "New boss"}), lambda: Inbox(folder.inbox).control("stop")):
        with pytest.raises(RunRefused, match="Make it a folder that you may write into"):
            use()


def test_the_last_control_counts(prompts: Path) -> None:
    inbox = Inbox(make("run", prompts).inbox)
    inbox.control("pause")
    assert inbox.paused()
    inbox.control("continue")
    assert not inbox.paused()
    assert [p.name for p in inbox.path.iterdir() if p.suffix in (".pause", ".continue", ".stop")] == ["asked.continue"]
    inbox.control("stop")
    inbox.begin()
    assert [p.name for p in inbox.path.iterdir() if p.suffix in (".pause", ".continue", ".stop")] == []
