"""How long were a run's answers?  Entry points: `measure`, `write_lengths` (the file that estimates read).

Reads journal.db, and run.db for how much was planned, of a run that is finished or not.  Knows nothing of estimates.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from taskweave.backbones.lengths import Lengths, Planned, StepLength, read_lengths
from taskweave.backbones.probe import SITE as LOOK
from taskweave.backbones.stretched import USING, items
from taskweave.engine.reader import JournalReader, Taken
from taskweave.errors import BadInput, FileInvalid
from taskweave.pool.pool import Pool
from taskweave.prompts import PromptBook
from taskweave.records import text_digest, tokens
from taskweave.runs import RunFolder


@dataclass(slots=True)
class _Sums:
    """Of one step: its calls, and the last answer to each of its questions, which is the one that was used."""

    calls: list[Taken] = field(default_factory=list)
    used: list[Taken] = field(default_factory=list)

    def add(self, one: Taken) -> None:
        self.calls.append(one)
        if one.again:
            self.used.pop()
        self.used.append(one)

    def length(self, executions: int | None = None) -> StepLength:
        """`executions`: of a question about tools, how many executions there were."""
        listed = [number for one in self.used if (number := _items(one.text)) is not None]
        return StepLength(
            completion=max(_mean([one.completion_tokens for one in self.calls]), 0.5),
            text=max(_mean([tokens(one.text or "") for one in self.used]), 0.5),
            items=_mean(listed) if sum(listed) and len(listed) * 2 > len(self.used) else None,
            again=len(self.calls) / len(self.used),
            prompt_factor=_factor(self.calls),
            prompt=max(_mean([one.prompt_tokens for one in self.calls]), 0.5),
            per_execute=len(self.used) / executions if executions else None,
        )


def measure(folder: RunFolder) -> Lengths:
    """The lengths of a run's answers by step.  Raises BadInput where nothing was answered yet."""
    steps: defaultdict[str, _Sums] = defaultdict(_Sums)
    with JournalReader(folder.journal_path) as journal:
        for one in journal.taken():
            if one.site != LOOK:  # no question of a step
                steps[one.prompt].add(one)
        weeks, began = journal.weeks(), journal.session_began()
    if not steps:
        raise BadInput(f"{folder.path}: nothing was answered yet, so there is no length to measure. Let it run first.")
    assert began is not None, "an answer has a session in which it was asked for"
    executions = len(steps["execute"].used) if "execute" in steps else None
    config, seen = folder.config, f"{len(weeks)} week{'s' if len(weeks) != 1 else ''}"
    return Lengths(
        as_of=began[:10],
        measured_on=f"{config.segments[-1].backbone}, {config.organization}, seed {config.seed}, {seen}, style {config.style}",
        prompt_factor=_factor([one for sums in steps.values() for one in sums.calls]),
        steps={name: steps[name].length(executions if name in USING else None) for name in sorted(steps)},
        planned=_planned(folder),
    )


def write_lengths(lengths: Lengths, out: Path) -> Path:
    """Write the file, in one step.  Raises BadInput where something else lies there, or it cannot be written."""
    if out.is_dir():
        raise BadInput(f"{out} is a folder; name a file for the lengths, for example {out / 'lengths.yaml'}")
    if out.exists():
        try:
            read_lengths(out)
        except FileInvalid as trouble:
            raise BadInput(f"{out}: holds something else than lengths, and is left alone; name another file") from trouble
    beside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(lengths.text(), encoding="utf-8")
        beside.replace(out)
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror}); name another file") from error
    return out


def planned_share(pool: Pool, weeks: int) -> float | None:
    """Hours of the composite tasks planned in the first weeks to the hours that people had in them; None where they had none."""
    available = sum(row["available"] for row in pool.rows("load") if row["week"] <= weeks)
    planned = sum(row["planned_hours"] for row in pool.rows("tasks", kind="composite") if _week_of_id(row["id"]) <= weeks)
    return planned / available if available and planned else None


def _week_of_id(task: str) -> int:
    """Y1/Q2/M05/W19@owner/t3 -> 19"""
    return int(task.partition("@")[0].rpartition("/W")[2])


def _planned(folder: RunFolder) -> Planned | None:
    if not folder.run_db_path.exists():
        return None
    with Pool.open(folder.run_db_path) as pool, pool.snapshot():
        weeks = max(pool.weeks(), default=0)
        share = planned_share(pool, weeks)
    if share is None:
        return None
    return Planned(
        organization=folder.config.organization, weeks=weeks, share=share, prompts=prompts_mark(folder.prompts(), folder.config.without)
    )


def prompts_mark(book: PromptBook, without: Sequence[str] = ()) -> str:
    """What tells the prompts of a run from others; they say less where a part of the loop is left out."""
    return "p" + text_digest("".join([*(book.digest(prompt.id) for prompt in book), *sorted(without)]))[:12]


def _factor(calls: Sequence[Taken]) -> float:
    return sum(one.prompt_tokens for one in calls) / sum(one.sent for one in calls)


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)


def _items(text: str | None) -> int | None:
    try:
        return items(json.loads(text or ""))
    except ValueError:
        return None
