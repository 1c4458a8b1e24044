"""How the folder of a fork comes to be: the parent's inputs, what is changed in them, and a journal that offers what it was answered.

Entry points: `Change`, `fork_folder`.  The parent is only read.  What a fork is made for is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from taskweave.engine.forking import fork_journal
from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.records import Json
from taskweave.runs.config import VERSION, Parent, RunConfig, Segment
from taskweave.runs.folder import CONFIG, ENTITIES, MCP_SERVERS, PRICES, RunFolder, appear, sync, write
from taskweave.runs.inbox import Inbox, name_of, numbered
from taskweave.shipped import prompt_files


@dataclass(frozen=True, kw_only=True, slots=True)
class Answering:
    """What answers from the fork's week on: its identity, what its answers are, and how a later process has to name it."""

    identity: str
    origin: Literal["model", "scripted"]
    spec: str
    base_url: str | None
    given: str  # "name" or "object"


@dataclass(frozen=True, kw_only=True, slots=True)
class Amended:
    """The organization that holds from the fork's week on: its file's content, and who works there then."""

    text: str | bytes
    population_json: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a fork changes from week `week` on, whose first working day is `tick`.

    `incidents` are payloads, each with its tick; `drop` are ids; `prompts` are folders, of which later ones lie over earlier ones and all
    over the parent's; `draw` > 0 asks anew; None and nothing: as in the parent.
    """

    week: int
    tick: int
    incidents: Sequence[Mapping[str, Json]] = ()
    drop: Sequence[str] = ()
    prompts: Sequence[Path] = ()
    answering: Answering | None = None
    draw: int | None = None
    organization: Amended | None = None


def fork_folder(
    parent: RunFolder, path: Path, change: Change, *, before: Callable[[Journal], None] | None = None, **told: Any
) -> RunFolder:
    """Make the folder of a fork.  `told` are settings that change no request (until, limit, tags, ...), the parent's where not given.

    Raises what `appear` and `fork_journal` raise; nothing is left behind then.
    """
    made: list[RunConfig] = []

    def fill(folder: Path) -> None:
        fork_journal(parent.journal_path, folder / "journal.db", week=change.week, tick=change.tick, drop=change.drop)
        inbox = folder / "inbox"
        inbox.mkdir()
        added = _incidents(folder / "journal.db", Inbox(inbox), change)
        config = _config(parent, change, added, told)
        _copy(parent, folder, config)
        _prompts(parent, folder, config, change)
        if change.organization is not None:
            segment = config.segment_at(change.week)
            write(folder / segment.org, change.organization.text)
            write(folder / segment.population, change.organization.population_json)
        if before is not None:
            with Journal(folder / "journal.db", create=False) as journal:
                before(journal)
        write(folder / CONFIG, config.text())
        for directory in (inbox, folder):
            sync(directory)
        made.append(config)

    appear(path, fill)
    return RunFolder(path, made[0])


def copy_inputs(run: RunFolder, path: Path, *, until: str) -> RunFolder:
    """All that a run works from, in a folder elsewhere, without a journal."""
    config = run.config.model_copy(update={"until": until})
    (path / "inbox").mkdir(parents=True)
    _copy(run, path, config)
    _prompts(run, path, config)
    write(path / CONFIG, config.text())
    return RunFolder(path, config)


def _copy(run: RunFolder, folder: Path, config: RunConfig) -> None:
    """The files that no fork changes."""
    kept = {one.org for one in run.config.segments}  # one that a fork brings along is not there yet
    names = {name for one in config.segments if one.org in kept for name in (one.org, one.population)}
    names |= {config.routing} if config.routing else set()
    for name in sorted(names | {name for name in (PRICES, ENTITIES, MCP_SERVERS) if (run.path / name).is_file()}):
        write(folder / name, (run.path / name).read_bytes())


def _incidents(journal_path: Path, inbox: Inbox, change: Change) -> tuple[str, ...]:
    """Put the incidents into the fork's journal, under ids that nothing else has."""
    with JournalReader(journal_path) as reader:
        taken = {one.id for one in reader.injections()} | {one.name for one in reader.rejected()} | set(change.drop)
    added = []
    with Journal(journal_path, create=False) as journal:
        for payload in change.incidents:
            id = numbered(name_of(payload), taken.__contains__)
            taken.add(id)
            added.append(id)
            journal.schedule(id, int(payload["tick"]), dict(payload))
    for id in sorted(taken):
        inbox.claim(id)
    return tuple(added)


def _config(parent: RunFolder, change: Change, added: tuple[str, ...], told: Mapping[str, Any]) -> RunConfig:
    was = parent.config
    changes: dict[str, Any] = {
        "segments": _segments(was, change),
        "parent": Parent(
            run=parent.name,
            path=str(parent.path.absolute()),
            week=change.week,
            added=added,
            dropped=tuple(change.drop),
            prompts=bool(change.prompts),
            backbone=change.answering is not None,
            redraw=change.draw is not None,
            organization=change.organization is not None,
        ),
        "tags": {**was.tags, **(told.get("tags") or {})},
    }
    if change.answering is not None:
        now = change.answering
        changes |= {"backbone": now.spec, "backbone_given": now.given, "base_url": now.base_url}
    changes |= {name: value for name, value in told.items() if value is not None and name != "tags"}
    return RunConfig.model_validate({**{name: getattr(was, name) for name in RunConfig.model_fields}, **changes, "version": VERSION})


def _segments(was: RunConfig, change: Change) -> tuple[Segment, ...]:
    """The parent's, with what is changed from the week on, also in those that begin later; a fork that changes none keeps them."""
    now: dict[str, Any] = {}
    if change.answering is not None:
        now |= {"backbone": change.answering.identity, "origin": change.answering.origin, "given": None, "base_url": None}
    if change.prompts:
        now["prompts"] = _prompts_name(was, change)
    if change.draw is not None:
        now["draw"] = change.draw
    if change.organization is not None:
        now["org"] = numbered(f"org-week{change.week}", {one.org.removesuffix(".yaml") for one in was.segments}.__contains__) + ".yaml"
    if not now:
        return was.segments
    earlier = [one for one in was.segments if one.week < change.week]
    later = [one for one in was.segments if one.week >= change.week]
    if not later or later[0].week > change.week:
        later.insert(0, was.segment_at(change.week).model_copy(update={"week": change.week}))
    if change.answering is not None:
        told = {"given": was.backbone, "base_url": was.base_url}
        earlier = [one if one.given is not None else one.model_copy(update=told) for one in earlier]
    return tuple([*earlier, *(one.model_copy(update=now) for one in later)])


def _prompts_name(was: RunConfig, change: Change) -> str:
    names = {one.prompts for one in was.segments}
    return numbered(f"prompts-week{change.week}", names.__contains__)


def _prompts(parent: RunFolder, folder: Path, config: RunConfig, change: Change | None = None) -> None:
    """The prompts of each segment: the parent's, and those that lie over them from the week on."""
    for name in sorted({one.prompts for one in config.segments}):
        laid = [parent.path / name]
        if change is not None and name not in {one.prompts for one in parent.config.segments}:
            laid = [parent.path / parent.config.segment_at(change.week).prompts, *change.prompts]
        (folder / name).mkdir()
        for file in {file.name: file for directory in laid for file in prompt_files(directory)}.values():
            write(folder / name / file.name, file.read_bytes())
        sync(folder / name)
