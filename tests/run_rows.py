"""Runs for tests of comparisons, written row by row: a folder with an organization and a run.db, and what `read` makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taskweave.experiments.rows import RunRows, read
from taskweave.pool.pool import Pool
from taskweave.pool.tables import Row
from taskweave.runs import RunConfig, RunFolder
from taskweave.runs.config import Segment

FIRM = """
name: Bright Ledger
domain: Software
calendar: {start: 2026-01-05, hours: 8}
goals: {grow: {text: 220 firms, kpi: firms, target: 220, owner: CTO}}
roles:
  CTO: {leads: Product}
  Engineer: {reports_to: CTO, count: 2, hours: 4-8}
environment: {firms: {start: 100, unit: firms}}
"""


def run_rows(
    where: Path, rows: Sequence[Row] = (), *, digests: Mapping[int, str] | None = None, organization: str = FIRM, **config: Any
) -> RunRows:
    """A run whose weeks have these digests (1 to 4, if not given); its rows are all written in the last."""
    where.mkdir(parents=True)
    (where / "org.yaml").write_text(organization, encoding="utf-8")
    name = organization.split("name: ")[1].splitlines()[0]
    told = RunConfig(organization=name, segments=(Segment(backbone="scripted"),), **config)
    weeks = {1: "a", 2: "b", 3: "c", 4: "d"} if digests is None else digests
    with Pool.create(where / "run.db") as pool:
        for week, digest in weeks.items():
            pool.write_week(week, digest, rows if week == max(weeks) else ())
        return read(RunFolder(where, told), pool)
