"""Where the files of a run lie, and how they come to be there: all at once or not at all.

Entry points: `RunFolder.create`, `RunFolder.open`.  A folder is built hidden beside its place and renamed into it.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from taskweave.engine.journal import Journal
from taskweave.errors import BackboneOut, BadInput, DiskFull, RunRefused
from taskweave.records import Json
from taskweave.runs.config import RunConfig, Segment, read_config
from taskweave.runs.inbox import Inbox, name_of, numbered
from taskweave.runs.lock import Holder, abandoned, held, holder, owned
from taskweave.shipped import prompt_files

if TYPE_CHECKING:
    from taskweave.backbones.pricing import PriceList
    from taskweave.backbones.routing import Routes
    from taskweave.org.entities import Entities
    from taskweave.org.population import Population
    from taskweave.org.schema import Organization
    from taskweave.prompts import PromptBook

RUNS = Path("runs")  # where names of runs are looked for, under the folder one stands in
CONFIG = "config.json"
# What may change without changing a request.
RESUMABLE = frozenset({"until", "base_url", "limit", "patience", "max_fallback", "budget_usd", "budget_tokens", "budget_hours"})
PRICES = "prices.yaml"
MCP_SERVERS = "mcp_servers.json"
ENTITIES = "entities.json"  # there where the organization has any
_BUILDING = re.compile(r"\.taskweave-new-(?P<host>.+)-(?P<pid>\d+)-[0-9a-f]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Injection:
    """An incident known before the run starts: its id, the tick it is meant for, and what it says."""

    id: str
    tick: int
    payload: Mapping[str, Json]

    @staticmethod
    def name(payloads: Sequence[Mapping[str, Json]]) -> tuple[Injection, ...]:
        """Give ids to incidents, each of which names its tick (0 where it names none)."""
        named: dict[str, Injection] = {}
        for payload in payloads:
            id_ = numbered(name_of(payload), named.__contains__)
            named[id_] = Injection(id=id_, tick=int(payload.get("tick") or 0), payload=payload)
        return tuple(named.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenure:
    """From `week` on (1 is the first) the run is of this organization, whose file is `file`, and these people work there."""

    week: int
    file: str
    organization: Organization
    population: Population


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run on disk."""

    path: Path
    config: RunConfig

    # ------------------------------------------------------------ coming to be
    @staticmethod
    def create(
        path: Path,
        *,
        config: RunConfig,
        organization_text: str | bytes,
        prompts_dirs: Sequence[Path],
        population_json: str,
        entities_json: str | None = None,
        injections: Sequence[Injection] = (),
        routing_text: bytes | None = None,
        before: Callable[[Journal], None] | None = None,
        prices: bytes | None = None,
        mcp: Mapping[str, Json] | None = None,
    ) -> RunFolder:
        """Make the folder of a new run; later `prompts_dirs` lay over earlier ones, `routing_text` goes where the config says.

        `before` writes down what was asked before it; `prices` is the content of a person's own price file;
        `mcp` is what the MCP servers of the organization said of their tools.

        Raises as `appear` does.
        """

        def fill(building: Path) -> None:
            _fill(building, config, organization_text, prompts_dirs, population_json, injections, routing_text, before)
            if prices is not None:
                write(building / PRICES, prices)
            if mcp:
                write(building / MCP_SERVERS, json.dumps(mcp, indent=2, sort_keys=True, ensure_ascii=True) + "\n")
            if entities_json is not None:
                write(building / ENTITIES, entities_json)

        appear(path, fill)
        return RunFolder(path, config)

    @staticmethod
    def open(name: str | Path) -> RunFolder:
        """The run with this path, or with this name under runs/.  Raises RunRefused with the nearest names, BadInput for its config."""
        path = find(name)
        file = path / CONFIG
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{file}: cannot be read ({error}).") from error
        return RunFolder(path, read_config(text, str(file)))

    def with_config(self, **changes: Any) -> RunFolder:
        """The run with what `resume` may change, written in one step: what is in RESUMABLE."""
        if other := set(changes) - RESUMABLE:
            raise RunRefused(f"{self.path}: {sorted(other)} cannot change in a run; they would change what is asked. Start a new run.")
        config = read_config(json.dumps({**self.config.model_dump(mode="json"), **changes}), str(self.path / CONFIG))
        if config != self.config:
            beside = self.path / f".{CONFIG}.{os.getpid()}.part"
            write(beside, config.text())
            beside.replace(self.path / CONFIG)
            sync(self.path)
        return RunFolder(self.path, config)

    def keep_prices(self, content: bytes) -> None:
        """Keep another price file with the run, in one step: what it cost is reckoned by it from now on."""
        beside = self.path / f".{PRICES}.{os.getpid()}.part"
        write(beside, content)
        beside.replace(self.path / PRICES)
        sync(self.path)

    # ------------------------------------------------------------ what lies in it
    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def journal_path(self) -> Path:
        return self.path / "journal.db"

    @property
    def run_db_path(self) -> Path:
        return self.path / "run.db"

    @property
    def inbox(self) -> Path:
        return self.path / "inbox"

    def organization(self, segment: Segment | None = None) -> Organization:
        """The organization of a segment, of the first where none is named, as it was when that was made.

        One whose file gave no name keeps the one that the run was begun under, and all have the calendar of the first.
        """
        from taskweave.org.schema import load

        first = load(self.path / self.config.segments[0].org, called=self.config.organization)
        if segment is None or segment.org == self.config.segments[0].org:
            return first
        return load(self.path / segment.org, called=self.config.organization, like=first)

    def population(self, segment: Segment | None = None) -> Population:
        """The people of a segment, of the first where none is named, sampled once when that was made.

        Raises BadInput where the file is missing, or is not what was written.
        """
        from taskweave.org.population import Population

        file = self.path / (segment or self.config.segments[0]).population
        try:
            population = Population.from_json(file.read_text(encoding="utf-8"))
            if not population.agents:
                raise ValueError("nobody is in it")
        except OSError as error:
            raise BadInput(f"{file}: cannot be read ({error.strerror}). The people are in it; restore it from a copy.") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BadInput(
                f"{file}: these are not the people of a run ({type(error).__name__}: {error}). "
                "The file was changed by hand or damaged; restore it from a copy."
            ) from error
        return population

    def tenures(self) -> list[Tenure]:
        """Which organization holds from which week on, and who works there then, beside those who did earlier."""
        found: list[Tenure] = []
        for segment in self.config.segments:
            if found and found[-1].file == segment.org:
                continue
            people = self.population(segment)
            now = people.following(found[-1].population) if found else people
            found.append(Tenure(week=max(1, segment.week), file=segment.org, organization=self.organization(segment), population=now))
        return found

    def entities(self) -> Entities:
        """Customers, suppliers, products and systems, drawn once when the run began; none where its organization has none.

        Raises BadInput where the file is missing, or is not what was written.
        """
        from taskweave.org.entities import Entities

        file = self.path / ENTITIES
        if not file.exists() and not self.organization().entities:
            return Entities()
        try:
            return Entities.from_json(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadInput(
                f"{file}: cannot be read ({error.strerror}). The run's customers and such are in it; restore it from a copy."
            ) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BadInput(
                f"{file}: these are not the customers and such of a run ({type(error).__name__}: {error}). "
                "The file was changed by hand or damaged; restore it from a copy."
            ) from error

    def prices(self) -> PriceList | None:
        """The prices that a person gave the run; None where none were given.  Raises FileInvalid for a file that was damaged."""
        from taskweave.backbones.pricing import read_prices

        file = self.path / PRICES
        return read_prices(file) if file.is_file() else None

    def mcp_servers(self) -> dict[str, Json]:
        """What the run keeps of the servers that its organization names, if it names any.  Raises BadInput for a damaged file."""
        file = self.path / MCP_SERVERS
        if not file.is_file():
            return {}
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            for one in found.values():
                if not all(isinstance(one["folder"], str) and tool.keys() == {"name", "told", "takes"} for tool in one["tools"]):
                    raise ValueError("a tool lacks something")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{file}: cannot be read ({error}). The tools of its servers are in it; restore it from a copy.") from error
        return dict(found)

    def prompts(self, segment: Segment | None = None) -> PromptBook:
        """The prompts of a segment, of the first where none is named, as they were when it was made."""
        from taskweave.prompts import PromptBook

        return PromptBook.load(self.path / (segment or self.config.segments[0]).prompts)

    def routes(self) -> Routes | None:
        """Which backbone answers what; None where one answers all.  Raises RoutingInvalid for a file that is not what was written."""
        if self.config.routing is None:
            return None
        from taskweave.backbones.routing import read_routes

        file = self.path / self.config.routing
        try:
            text = file.read_bytes()
        except OSError as error:
            raise BadInput(f"{file}: cannot be read ({error.strerror}). The run's routes are in it; restore it from a copy.") from error
        return read_routes(text, str(file), self.organization())

    # ------------------------------------------------------------ other processes
    @contextlib.contextmanager
    def lock(self) -> Iterator[Holder]:
        """Hold the run while the block runs; RunRefused names who holds it already."""
        with held(self.path) as mine:
            yield mine

    def holder(self) -> Holder | None:
        """Who holds the run now."""
        return holder(self.path)

    def send(self, payload: Mapping[str, Json], *, known: Sequence[str] = ()) -> str:
        """Put an incident into the inbox; `known` are the ids that the journal holds.  Returns its id."""
        return Inbox(self.inbox).send(payload, taken=frozenset(known).__contains__)


def appear(path: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder of a run, which appears at `path` whole once `fill` has written all of it.

    Raises RunRefused where something lies at `path`, or it lies within another run, BadInput where one may not write there, BackboneOut
    (75) on a full disk.
    """
    refuse_place(path)
    above = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        building = path.parent / f".taskweave-new-{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        # Under a name that no sweep looks for until it is marked: between making a mark and taking it, it looks abandoned.
        unmarked = building.with_name(building.name.replace("-new-", "-begin-", 1))
        unmarked.mkdir()
        try:
            with owned(unmarked):
                unmarked.rename(building)
                fill(building)
                building.rename(path)
        except BaseException:
            for half in (unmarked, building):
                shutil.rmtree(half, ignore_errors=True)
            for folder in above:
                with contextlib.suppress(OSError):  # another run lies in it by now
                    folder.rmdir()
            raise
        sync(path.parent)
    except DiskFull as error:  # the journal says so of itself; there is nothing yet that could be resumed
        raise _full(path) from error
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _exists(path) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(path) from error
        raise BadInput(f"{path}: the run folder cannot be made ({error.strerror}). Choose another place with --out.") from error


def find(name: str | Path) -> Path:
    """The folder of a run, by path or by name under runs/."""
    for path in (Path(name), RUNS / name):
        if (path / CONFIG).is_file():
            return path
    path = Path(name)
    if path.exists():
        raise RunRefused(f"{path}: there is no run in it (no {CONFIG}). Start one with 'taskweave run ORG --out DIR'.")
    names = [p.name for p in list_runs()]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5) or names[:3]
    hint = f" The nearest: {', '.join(near)}." if near else ""
    raise RunRefused(f"{str(name)!r}: there is no such run, neither here nor under {RUNS}/.{hint} Start one with 'taskweave run ORG'.")


def refuse_place(path: Path) -> None:
    """RunRefused where no new run can be made: something lies at `path`, or it lies within another run."""
    if os.path.lexists(path):
        raise _exists(path)
    if (outer := _run_around(path)) is not None:
        raise RunRefused(f"{path}: lies within the run {outer}, whose folder is its own. Choose another --out.")


def list_runs(pattern: str | None = None) -> list[Path]:
    """The run folders that a glob pattern matches (runs/* where none is given), in order of their names.

    A folder's own name stands for the run in it, or for those that lie in it, and so does that of a run under runs/.
    Raises BadInput for what is no pattern.
    """
    try:
        if pattern is not None and (Path(pattern) / CONFIG).is_file():
            return [Path(pattern)]
        if pattern is not None and not Path(pattern).exists() and (RUNS / pattern / CONFIG).is_file():
            return [RUNS / pattern]
        root, rest = (RUNS, "*") if pattern is None else _split(pattern)
        return sorted(p for p in root.glob(rest) if (p / CONFIG).is_file() and not p.name.startswith("."))
    except OSError:
        return []
    except ValueError as error:
        raise BadInput(f"{pattern!r}: is no pattern of folders ({error}). Name for example 'runs/company*'.") from error


def default_path(organization_slug: str, seed: int) -> Path:
    """runs/<organization>-<seed>, with a number where that exists."""
    return RUNS / numbered(f"{organization_slug}-{seed}", lambda name: os.path.lexists(RUNS / name))


def _split(pattern: str) -> tuple[Path, str]:
    """A glob pattern as the folder it starts from and the rest: pathlib takes no absolute patterns."""
    path = Path(pattern)
    if path.is_dir():
        return path, "*"
    root = Path(path.anchor)
    return root, str(path.relative_to(root))


def _run_around(path: Path) -> Path | None:
    """The run in whose folder, or below it, a path lies."""
    for above in path.resolve().parents:
        # Many programs have a file of that name; one of the two beside it makes it a run.
        if (above / CONFIG).is_file() and any((above / name).is_file() for name in ("journal.db", "run.db")):
            return above
    return None


def _exists(path: Path) -> RunRefused:
    if (path / CONFIG).is_file():
        return RunRefused(
            f"{path}: there is a run already. Continue it with 'taskweave resume {quote(str(path))}', or choose another --out."
        )
    return RunRefused(f"{path}: something lies there already, and it is not a run. Choose another --out.")


def _full(path: Path) -> BackboneOut:
    return BackboneOut(f"{path}: the disk is full; the run was not begun. Free some space and type the command again.")


def _fill(
    folder: Path,
    config: RunConfig,
    organization_text: str | bytes,
    prompts_dirs: Sequence[Path],
    population_json: str,
    injections: Sequence[Injection],
    routing_text: bytes | None,
    before: Callable[[Journal], None] | None,
) -> None:
    segment = config.segments[0]
    prompts, inbox = folder / segment.prompts, folder / "inbox"
    prompts.mkdir()
    inbox.mkdir()
    write(folder / segment.org, organization_text)
    write(folder / "population.json", population_json)
    if config.routing is not None and routing_text is not None:
        write(folder / config.routing, routing_text)
    laid = {file.name: file for directory in prompts_dirs for file in prompt_files(directory)}
    for name, file in laid.items():
        write(prompts / name, file.read_bytes())
    journal = Journal(folder / "journal.db", create=True)
    try:
        for injection in injections:
            journal.schedule(injection.id, injection.tick, dict(injection.payload))
            Inbox(inbox).claim(injection.id)
        if before is not None:
            before(journal)
    finally:
        journal.close()
    write(folder / CONFIG, config.text())
    for directory in (prompts, inbox, folder):
        sync(directory)


def write(path: Path, content: str | bytes) -> None:
    with path.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Make renames in a folder last; some file systems have no such thing."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _sweep(folder: Path) -> None:
    """Remove what killed creations left behind; what a live process is building stays."""
    for leftover in folder.glob(".taskweave-new-*"):
        match = _BUILDING.fullmatch(leftover.name)
        if match and abandoned(leftover, host=match["host"], pid=int(match["pid"])):
            shutil.rmtree(leftover, ignore_errors=True)
