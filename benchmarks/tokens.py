"""How many calls and tokens does a year take, and what would it cost?

`python -m benchmarks.tokens [ORGANIZATION] [--until year] [--scripted] [--seed 1] [--limit 16] [--out RUN]` runs it against a server on
this machine whose answers are as long as the prompts ask for (`benchmarks.answering`), or with the scripted backbone, and prints each
figure with its denominator and the bar beside it.  Nothing here decides anything.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import taskweave as tw
from benchmarks.answering import Answering
from benchmarks.table import Row, dollars, fraction, render, whole
from taskweave.engine.reader import JournalReader, Spent
from taskweave.errors import TaskWeaveError
from taskweave.report.economy import Economy, cached_of, step_of

MODEL, PROMPT, CACHED, COMPLETION = "gpt-4o-mini", 0.15, 0.075, 0.60  # list prices in dollars a million tokens
PAPER = 17.84  # dollars of the paper's year
EARLY = 4  # the week that a later one is compared with: by then plans, results and searches are as large as they get
_WEEK = re.compile(r"/W(\d+)@")


class Step(NamedTuple):
    """The calls of one step, and their mean tokens."""

    step: str
    calls: int
    prompt: float
    cached: float
    completion: float


class Measured(NamedTuple):
    """What was run, the token rows of it, and its steps."""

    run: str
    rows: list[Row]
    steps: list[Step]


def rows(found: Economy, spent: Sequence[Spent], cached: Sequence[int], *, year: bool) -> list[Row]:
    """The token rows; `year`: whether it is one, which alone has bars for what it costs."""
    tasks, subtasks = f"{found.composite.of:,.0f} composite tasks done", f"{found.subtask.of:,.0f} executed subtasks"
    first, last = by_week(spent).get(EARLY), max(by_week(spent), default=0)
    growth = by_week(spent)[last] / first if first and last > EARLY else None
    full, less = cost(spent, [0] * len(spent)), cost(spent, cached)
    return [
        Row("an executed subtask: calls", found.subtask.calls, 2.5, subtasks, fraction),
        Row("an executed subtask: prompt tokens", found.subtask.prompt, 4_000, subtasks, whole),
        Row("an executed subtask: completion tokens", found.subtask.completion, 600, subtasks, whole),
        Row(f"an executed subtask: uncached prompt tokens ({found.cached})", found.subtask.uncached, 2_400, subtasks, whole),
        Row("a composite task, execution alone: calls", found.composite.calls, 5.6, tasks, fraction),
        Row("a composite task, execution alone: prompt tokens", found.composite.prompt, 10_000, tasks, whole),
        Row("a composite task, execution alone: completion tokens", found.composite.completion, 2_000, tasks, whole),
        Row("a planned hour: calls", found.hour.calls, None, f"{found.hour.of:,.0f} planned hours of these", fraction),
        Row("a planned hour: prompt tokens", found.hour.prompt, None, "", whole),
        Row("a planned hour: completion tokens", found.hour.completion, None, "", whole),
        Row(f"mean prompt tokens, week {last} / week {EARLY}", growth, 1.15, "calls at sites of these weeks", fraction),
        Row(f"all of it at {MODEL} list prices", full, PAPER / 4 if year else None, f"{len(spent):,} calls", dollars),
        Row("  with its price for cached tokens", less, PAPER / 10 if year else None, "aimed at: a tenth of the paper's", dollars),
    ]


def by_week(spent: Iterable[Spent]) -> dict[int, float]:
    """Mean prompt tokens of what was asked for units and tasks of each week."""
    found: dict[int, list[int]] = defaultdict(list)
    for one in spent:
        if week := _WEEK.search(one.site):
            found[int(week[1])].append(one.prompt_tokens)
    return {week: sum(tokens) / len(tokens) for week, tokens in sorted(found.items())}


def by_step(spent: Sequence[Spent], cached: Sequence[int]) -> list[Step]:
    """Means by the step that a site names: `partition` is that of all levels."""
    found: dict[str, list[tuple[Spent, int]]] = defaultdict(list)
    for one, tokens in zip(spent, cached, strict=True):
        found[step_of(one.site)].append((one, tokens))
    return [
        Step(
            step,
            len(calls),
            sum(one.prompt_tokens for one, _ in calls) / len(calls),
            sum(tokens for _, tokens in calls) / len(calls),
            sum(one.completion_tokens for one, _ in calls) / len(calls),
        )
        for step, calls in sorted(found.items())
    ]


def cost(spent: Sequence[Spent], cached: Sequence[int]) -> float:
    """Dollars by MODEL's list prices, where so many prompt tokens of each call are cached."""
    prompt = sum((one.prompt_tokens - tokens) * PROMPT + tokens * CACHED for one, tokens in zip(spent, cached, strict=True))
    return (prompt + sum(one.completion_tokens for one in spent) * COMPLETION) / 1e6


def run(given: argparse.Namespace, out: Path) -> tw.Run:
    """The simulation that is measured."""
    if given.scripted:
        return tw.simulate(given.organization, out=out, until=given.until, seed=given.seed, limit=given.limit)
    with Answering() as server:
        return tw.simulate(
            given.organization,
            out=out,
            backbone=f"openai:{MODEL}",
            base_url=server.url,
            until=given.until,
            seed=given.seed,
            limit=given.limit,
            style="full",
            look=False,
        )


def words(given: list[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=__doc__)
    parser.add_argument("organization", nargs="?", default="company_a")
    parser.add_argument("--until", default="year")
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--out", type=Path)
    return parser.parse_args(given)


def measure(given: argparse.Namespace, out: Path) -> Measured:
    """Run it into `out` and count.  Raises what `tw.simulate` raises, and RuntimeError where the run does not reach its end."""
    status = run(given, out).status()
    if status.state != "finished":
        raise RuntimeError(f"it did not reach its end: {status.state} {status.cause}")
    with JournalReader(out / "journal.db") as journal:
        spent = journal.spent()
        cached, _ = cached_of(spent, journal)
    found = [] if status.economy is None else rows(status.economy, spent, cached, year=given.until == "year")
    said = f"{status.organization}, seed {given.seed}, {status.week} of {status.weeks} weeks"
    return Measured(said, found, by_step(spent, cached))


def main(asked: list[str] | None = None) -> int:
    given = words(asked)
    started = time.perf_counter()
    with ExitStack() as closing:
        out = given.out or Path(closing.enter_context(tempfile.TemporaryDirectory())) / "run"
        try:
            measured = measure(given, out)
        except TaskWeaveError as error:
            print(error, file=sys.stderr)
            return error.exit_code
    print(f"{measured.run}, {'the scripted backbone' if given.scripted else 'answers as long as the prompts ask for'}")
    print("tokens are bytes / 4, schemas counted; the bars are those of a year of company_a")
    for line in render(measured.rows):
        print(line)
    print(f"{'step':<16}{'calls':>7}{'prompt':>9}{'cached':>9}{'completion':>12}   means")
    for step in measured.steps:
        print(f"{step.step:<16}{step.calls:>7,}{step.prompt:>9,.0f}{step.cached:>9,.0f}{step.completion:>12,.0f}")
    print(f"run and measured in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
