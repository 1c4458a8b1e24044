"""The house has floors (DESIGN 1): a line imports only the lines above it.  This test reads the source and knows nothing else."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "taskweave"

# Room -> the rooms it may import besides itself.
WORDS = {"errors", "records", "shipped"}
FOUNDATIONS = {"org", "engine", "pool"}
PORTS = {"prompts", "runs", "backbones", "tools", "telemetry"}
LOOP = {"simulation"}
READERS = {"evaluation", "exports", "report", "conversations", "orgagent", "serving"}
DOOR = {
    *("__main__", "cli", "api", "answering", "beginning", "branching", "driving", "estimating", "given", "injecting", "interrupts"),
    *("loading", "looking", "reading", "rehearsal", ""),
}
MAY: dict[str, set[str]] = {
    **dict.fromkeys(WORDS, WORDS),
    **dict.fromkeys(FOUNDATIONS, WORDS),
    **dict.fromkeys(PORTS, WORDS | FOUNDATIONS | PORTS),
    **dict.fromkeys(LOOP, WORDS | FOUNDATIONS | PORTS),
    **dict.fromkeys(READERS, WORDS | FOUNDATIONS | PORTS | READERS),
    "experiments": WORDS | FOUNDATIONS | PORTS | LOOP | READERS,
    **dict.fromkeys(DOOR, WORDS | FOUNDATIONS | PORTS | LOOP | READERS | {"experiments"} | DOOR),
}
# A file beside the rooms that belongs to one of them.
PART_OF = {"cutting": "prompts", "prompt_files": "prompts"}
# Which files may import a heavy or telling package.
ONLY_IN = {
    "simpy": ("engine/clock.py", "simulation/"),
    "openai": ("backbones/openai.py",),
    "sqlmodel": ("pool/", "evaluation/"),
    "sqlalchemy": ("pool/", "evaluation/"),
    "pandas": ("reading.py",),
    "typer": ("cli/",),
    "opentelemetry": ("telemetry/spans.py", "telemetry/exporting.py"),
    "mcp": ("serving/stdio.py",),
}
WALL_CLOCK_IN = (
    "engine/gateway.py",
    "engine/journal.py",
    "backbones/",
    "runs/",
    "cli/",
    "reading.py",
    "report/status.py",
    "telemetry/spans.py",
)
WALL_CLOCK = {
    *(("time", name) for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns", "sleep")),
    *(("datetime", name) for name in ("now", "utcnow", "today")),
    ("date", "today"),
}
# What the global generator of `random` is reached by; `random.Random` is a generator of one's own.
OWN_GENERATOR = {"Random", "SystemRandom"}
JITTER_IN = ("engine/gateway.py",)  # spreads retries over wall-clock time; no draw of a simulation
NOT_FOR_THE_HELP = ("simpy", "openai", "networkx", "sqlmodel", "sqlalchemy", "faker", "pandas", "jinja2")

# A checker that is told to look away: from which rule, and the words after it.
LOOKS_AWAY = re.compile(r"# *(?:type: *ignore|noqa)(\[[a-z, -]+\]|: *[A-Z]+[0-9]+)?(.*)")

Place = tuple[str, int]


@cache
def parsed() -> tuple[tuple[str, ast.Module], ...]:
    files = sorted(PACKAGE.rglob("*.py"))
    return tuple((path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in files)


def sources() -> Iterator[tuple[str, ast.Module]]:
    return iter(parsed())


def room_of(file: str) -> str:
    first = file.split("/")[0].removesuffix(".py")
    first = "" if first == "__init__" else first
    return PART_OF.get(first, first)


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Absolute module names that a file imports, with their lines; `from a import b` gives a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide which room is meant"
            yield str(node.module), node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def rooms_imported(file: str, tree: ast.Module) -> Iterator[tuple[str, int]]:
    known = {room_of(name) for name, _ in sources()}
    for name, line in imports(tree):
        parts = name.split(".")
        if parts[0] == "taskweave" and len(parts) > 1 and (room := PART_OF.get(parts[1], parts[1])) in known:
            yield room, line


def broken_layers(files: Iterator[tuple[str, ast.Module]]) -> list[str]:
    return [
        f"{file}:{line}: {room_of(file) or 'taskweave'} may not import {room}"
        for file, tree in files
        for room, line in sorted(set(rooms_imported(file, tree)))
        if room != room_of(file) and room not in MAY[room_of(file)]
    ]


def misplaced_packages(files: Iterator[tuple[str, ast.Module]]) -> list[str]:
    return [
        f"{file}:{line}: {package} is imported in {' and '.join(ONLY_IN[package])} only"
        for file, tree in files
        for name, line in sorted(set(imports(tree)))
        if (package := name.split(".")[0]) in ONLY_IN and not file.startswith(ONLY_IN[package])
    ]


def wall_clock_reads(files: Iterator[tuple[str, ast.Module]]) -> list[str]:
    found = []
    for file, tree in files:
        if file.startswith(WALL_CLOCK_IN):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
                if (name, node.attr) in WALL_CLOCK:
                    found.append(f"{file}:{node.lineno}: {name}.{node.attr}")
            elif isinstance(node, ast.ImportFrom):
                found += [f"{file}:{node.lineno}: {a.name}" for a in node.names if (str(node.module), a.name) in WALL_CLOCK]
    return found


def global_draws(files: Iterator[tuple[str, ast.Module]]) -> list[str]:
    found = []
    for file, tree in files:
        if file in JITTER_IN:
            continue
        # `random` may also be the name of a generator of one's own: only the module is meant.
        module = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "random"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in module:
                if node.attr not in OWN_GENERATOR:
                    found.append(f"{file}:{node.lineno}: random.{node.attr}")
            elif isinstance(node, ast.ImportFrom) and node.module == "random":
                found += [f"{file}:{node.lineno}: random.{a.name}" for a in node.names if a.name not in OWN_GENERATOR]
    return found


def prints(files: Iterator[tuple[str, ast.Module]]) -> list[str]:
    return [
        f"{file}:{node.lineno}"
        for file, tree in files
        if not file.startswith("cli/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def unreasoned_ignores(text: str) -> list[int]:
    """Lines on which a checker is told to look away without a rule or a reason: `# noqa: N802 - the name that http.server calls`."""
    comments = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]
    found = [(token.start[0], LOOKS_AWAY.search(token.string)) for token in comments]
    return [line for line, ignore in found if ignore and not (ignore[1] and len(re.findall(r"[a-z]{2,}", ignore[2])) >= 3)]


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(file) for file, _ in sources()}
    assert rooms <= MAY.keys(), f"say in MAY what {sorted(rooms - MAY.keys())} may import"


def test_a_line_imports_only_the_lines_above_it() -> None:
    assert broken_layers(sources()) == []


def test_heavy_packages_are_imported_where_they_belong() -> None:
    assert misplaced_packages(sources()) == []


def test_only_the_door_prints() -> None:
    assert prints(sources()) == []


def test_nothing_draws_from_the_global_generator() -> None:
    assert global_draws(sources()) == []


def test_the_wall_clock_is_read_at_the_rim_only() -> None:
    assert wall_clock_reads(sources()) == []


@pytest.mark.parametrize(
    ("rule", "file", "line"),
    [
        (broken_layers, "org/x.py", "from taskweave.pool.pool import Pool"),
        (broken_layers, "engine/x.py", "import taskweave.org"),
        (broken_layers, "simulation/x.py", "from taskweave import report"),
        (broken_layers, "report/x.py", "from taskweave.simulation.year import simulate"),
        (broken_layers, "records.py", "from taskweave.prompts import PromptBook"),
        (misplaced_packages, "simulation/x.py", "import openai"),
        (misplaced_packages, "engine/engine.py", "from simpy.events import Event"),
        (misplaced_packages, "exports/x.py", "import sqlmodel"),
        (prints, "pool/x.py", "print(1)"),
        (global_draws, "org/x.py", "import random\nrandom.random()"),
        (global_draws, "org/x.py", "import random as r\nr.choice([1])"),
        (global_draws, "org/x.py", "from random import choice"),
        (wall_clock_reads, "simulation/x.py", "import time\ntime.time()"),
        (wall_clock_reads, "simulation/x.py", "from time import monotonic"),
        (wall_clock_reads, "pool/x.py", "import datetime\ndatetime.datetime.now()"),
    ],
)
def test_each_rule_sees_what_it_forbids(rule: object, file: str, line: str) -> None:
    assert callable(rule)
    assert rule(iter([(file, ast.parse(line))])) != []


def loaded_by(statement: str) -> list[str]:
    code = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return done.stdout.split()


@pytest.mark.parametrize("statement", ["import taskweave", "import taskweave.cli"])
def test_importing_the_door_loads_no_heavy_package(statement: str) -> None:
    assert sorted(set(loaded_by(statement)) & set(NOT_FOR_THE_HELP)) == []


def test_the_list_of_heavy_packages_is_looked_for_by_its_right_names() -> None:
    assert set(NOT_FOR_THE_HELP) <= set(loaded_by("import " + ", ".join(NOT_FOR_THE_HELP)))


def test_whoever_tells_a_checker_to_look_away_says_why() -> None:
    found = [f"{file}:{line}" for file, _ in sources() for line in unreasoned_ignores((PACKAGE / file).read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize("ignore", ["# type: ignore", "# type: ignore[misc]", "# noqa", "# noqa: N802", "# noqa - the name that it calls"])
def test_an_ignore_without_a_rule_and_a_reason_is_seen(ignore: str) -> None:
    assert unreasoned_ignores(f"x = 1\ny = 2  {ignore}\n") == [2]
    assert unreasoned_ignores(f"y = '{ignore}'\n") == [], "a text is no comment"


def test_an_ignore_with_a_reason_is_left_alone() -> None:
    for ignore in ("# type: ignore[misc]  # SimPy types it so", "# noqa: N802 - the name that http.server calls"):
        assert unreasoned_ignores(f"x = 1  {ignore}\n") == []


def test_files_stay_small() -> None:
    long = {file: len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) for file, _ in sources()}
    assert {file: lines for file, lines in long.items() if lines > 500} == {}


def test_a_module_says_in_at_most_eight_lines_what_for() -> None:
    docs = {file: (ast.get_docstring(tree) or "").splitlines() for file, tree in sources()}
    assert [file for file, doc in docs.items() if not 1 <= len(doc) <= 8 and file != "errors.py"] == []
