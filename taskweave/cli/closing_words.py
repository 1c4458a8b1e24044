"""What is said when a run ends: the table a manager would read, where the files are, what to type next.

Entry point: `after`, which prints for a person and returns what --json carries.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from taskweave.cli import output
from taskweave.cli.progress import priced

if TYPE_CHECKING:
    from taskweave.engine.stats import Pace
    from taskweave.pool.pool import Pool
    from taskweave.runs import RunFolder
    from taskweave.simulation.year import Outcome

AT_ONCE = 0.005  # seconds of an answer that nobody waits for: a stand-in in this process takes less


def after(folder: RunFolder, outcome: Outcome) -> dict[str, Any]:
    """Print the closing table of what has been written; the JSON object says the same."""
    from taskweave.pool.pool import Pool
    from taskweave.report import economy
    from taskweave.report.status import answers_told, status

    now = status(folder, deep="reported")
    summary: dict[str, Any] = {
        "run": str(folder.path),
        "stop": outcome.stop,
        "cause": outcome.cause,
        "week": outcome.week,
        "week_digest": outcome.digest,
        "executed": outcome.executed,
        "status": now.row(),
        "digest": None,
        "closing": None,
        "pace": None if outcome.pace is None else {**outcome.pace._asdict(), "bound": outcome.pace.bound},
    }
    if outcome.week == 0 or not folder.run_db_path.exists():
        return summary
    from taskweave.report.closing import closing, render

    with Pool.open(folder.run_db_path) as pool:
        if max(pool.weeks(), default=0) < outcome.week:
            return summary  # it was being rebuilt, and would look like a shorter run
        first, *later = folder.tenures()
        table = closing(pool, first.organization, first.population, answers_told(folder), now.without, later)
        # A year's digest takes as long as reading all of it: only a program that asked for everything gets it here.
        summary |= {"digest": pool.digest() if output.is_json_only() else None, "closing": plain(table)}
        example = example_result(pool)
    output.show(render(table))
    if now.economy is not None:
        output.show(economy.render(now.economy))
    output.line(f"{'cost':<10} {priced(now.cost, now.cost_uncached)}")
    if outcome.pace is not None and (said := paced(outcome.pace)) is not None:
        output.line(f"{'time':<10} {said}")
    for name, text in where(folder, example):
        output.line(f"{name:<10} {text}")
    return summary


def paced(pace: Pace) -> str | None:
    """What the run took beside what it had to; None where its answers came at once, and nothing was waited for."""
    if pace.latencies < pace.answers * AT_ONCE or not pace.answers:
        return None
    return (
        f"wall {pace.wall:,.1f} s for {pace.latencies:,.1f} s of answers at {pace.limit} at a time; "
        f"no less than {pace.bound:,.1f} s was possible (critical path {pace.critical_path:,.1f} s)"
    )


def plain(value: Any) -> Any:
    """Named tuples and what is in them, as JSON values."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def example_result(pool: Pool) -> str | None:
    """The last merged result, which has its task's id: it rests on the most."""
    done = [row["id"] for row in pool.rows("tasks", kind="composite", status="done")]
    return done[-1] if done else None


def where(folder: RunFolder, example: str | None) -> list[tuple[str, str]]:
    """Where the files are and what to type next."""
    run = shlex.quote(str(folder.path))
    lines = [
        ("files", f"{folder.path}: run.db (what happened), journal.db (what was asked), org.yaml, prompts"),
        ("next", f"taskweave export {run} --format jsonl --out data"),
    ]
    if example is not None:
        lines.append(("", f"taskweave trace {run} {shlex.quote(example)}"))
    return lines
