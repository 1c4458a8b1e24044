"""The README does what it says: its files are written, its commands typed in order, in one empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from taskweave.pool.pool import Pool
from tests.readme import BLOCKS, README, ROOT, lay_out, run

# What is not typed here, and why.
SKIPPED = {
    "python3 -m venv": "installs; .ci/run types these two",
    "export OPENAI_API_KEY": "is for a model",
    "--backbone openai:": "needs a model",
    "pip install '.[local]'": "installs; .ci/run does, and the long tests use it",
    "--backbone local": "needs what that installs",
}


def skip(line: str) -> str | None:
    return next((why for part, why in SKIPPED.items() if part in line), None)


def lines() -> list[str]:
    return [line for kind, _, text in BLOCKS if kind == "sh" for line in text.splitlines() if line.strip()]


def test_the_page_opens_with_two_commands_for_a_fresh_machine() -> None:
    first, second = lines()[:2]
    assert first == "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/taskweave run company_a"
    assert second == "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"


def test_its_commands_can_be_typed_one_after_the_other(tmp_path: Path) -> None:
    place = lay_out(tmp_path)
    typed = [line for line in lines() if skip(line) is None]
    assert len(typed) >= 12
    for line in typed:
        words = shlex.split(line)
        assert words[0] == "taskweave", f"say in SKIPPED why {line!r} is not typed"
        done = run([sys.executable, "-m", "taskweave", *words[1:]], place)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    # What the tour lets happen is heard in the middle of a week, and a plan is made anew.
    with Pool.open(place / "runs" / "lantern" / "run.db") as pool:
        (incident,) = pool.rows("incidents")
        (again,) = pool.rows("events", kind="replan")
        heard = [link.id for link in pool.trace(incident["id"]).downward if link.how == "heard"]
    assert incident["since"] == again["time"][:10] == "2026-02-11"
    assert again["subject"] in heard


def test_every_reason_to_skip_a_command_is_used() -> None:
    assert [part for part in SKIPPED if not any(part in line for line in lines())] == []


def test_its_organization_is_as_short_as_it_says(tmp_path: Path) -> None:
    text = (lay_out(tmp_path) / "lantern.yaml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    roles = yaml.safe_load(text)["roles"]
    assert sum(role.get("count", 1) for role in roles.values()) == 12


def test_each_file_that_it_names_is_there() -> None:
    named = re.findall(r"`((?:tests|taskweave|orgs|prompts|\.ci)/[\w./]*)`", README)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_its_exit_codes_are_those_of_the_errors() -> None:
    from taskweave import errors

    codes = {cls.exit_code for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.TaskWeaveError)}
    assert codes | {0} == {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}


def test_ci_types_the_same_commands(tmp_path: Path) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    parser = next(line for line in script.splitlines() if line.startswith("command_in_readme()"))
    for number, line in enumerate(lines()[:2], 1):
        read = subprocess.run(["bash", "-c", f"{parser}\ncommand_in_readme {number}"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert read.stdout.strip() == line


def test_it_names_every_room_and_every_file_beside_the_rooms() -> None:
    table = README.split("## The code")[1]
    named = set(re.findall(r"`(?:taskweave/)?([a-z_]+(?:\.py|/))`", table))
    package = ROOT / "taskweave"
    files = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    rooms = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    beside = {"orgs/", "prompts/", "tests/", "benchmarks/"}
    assert named == files | rooms | beside
