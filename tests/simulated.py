"""Runs for tests: an organization in a few lines of YAML, simulated with the scripted backbone, and what its tables say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import taskweave.driving as driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.records import Request

Stub = Callable[[Request], Any]

WORKSHOP = """
name: Workshop
domain: Furniture repair
calendar: {start: 2026-01-05, hours: 8}
goals: {orders: {text: Repair 400 chairs, owner: Head}}
roles:
  Head: {leads: Repair}
  Joiner: {reports_to: Head, count: 2, hours: 3-5}
workload: {utilisation: 0.8, composite_hours: 12, variation: 0}
"""


def simulated(
    where: Path,
    organization: str = WORKSHOP,
    *,
    until: str = "week:4",
    stubs: Mapping[str, Stub] | None = None,
    incidents: Sequence[Mapping[str, Any]] = (),
    seed: int = 1,
    limit: int = 16,
    assign: Any = "match",
    population: Path | None = None,
    style: Any = None,
    without: Sequence[str] = (),
    servers: Mapping[str, str] | None = None,
) -> Run:
    """A finished run in `where`; `organization` is YAML text or a built-in name; incidents are given as their files would say them.

    `population` is a file with people to take instead of sampled ones.
    """
    org = driving.Organization(organization) if "\n" in organization else driving.Organization.load(organization)
    files = []
    for number, incident in enumerate(incidents):
        files.append(where.parent / f"{where.name}-incident-{number}.yaml")
        files[-1].write_text(json.dumps(incident), encoding="utf-8")
    folder, backbone = driving.begin(
        org,
        out=where,
        backbone="scripted" if stubs is None else Scripted(stubs),
        seed=seed,
        until=until,
        base_url=None,
        prompts=[],
        assign=assign,
        incidents=files,
        limit=limit,
        patience=60,
        tags={},
        style=style,
        without=without,
        servers=servers or {},
    )
    if population is not None:
        shutil.copy(population, where / "population.json")
    return Run(folder, driving.drive(folder, backbone))


def rows(run: Run, table: str, **where: Any) -> list[dict[str, Any]]:
    """Rows of a table in which these columns have these values."""
    return [row for row in run.table(table) if all(row[name] == value for name, value in where.items())]


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    """The events of one kind, in order."""
    return rows(run, "events", kind=kind)
