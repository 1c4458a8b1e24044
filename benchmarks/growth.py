"""Does a run grow in proportion to its organization?  Organizations of 15, 100 and 1,000 agents, eight weeks each, in fresh processes.

`python -m benchmarks growth` measures it; `organization` makes the text of one.  The exponent is the slope of log(seconds or bytes)
over log(executed subtasks): 1 is proportional.  Nothing here decides anything.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.process import Measured, simulated

SIZES = (15, 100, 1_000)
UNTIL = "week:8"
BAR = 1.1
WIDTH = 11  # direct reports that a head has, about
MOST_HEADS = 15  # that report to the top; beyond, directors stand between


class Field(NamedTuple):
    """A department: the titles of its head, of the managers below where there are any, and of those who do the work."""

    department: str
    head: str
    manager: str
    workers: tuple[str, ...]


FIELDS = (
    Field(
        "Technology",
        "Chief Technology Officer",
        "Technology Manager",
        ("Backend Engineer", "Frontend Engineer", "DevOps Engineer", "QA Engineer", "Technical Support Engineer"),
    ),
    Field(
        "Marketing",
        "Chief Marketing Officer",
        "Marketing Manager",
        ("Marketing Specialist", "Content Writer", "UI/UX Designer", "Customer Success Manager"),
    ),
    Field("Product", "Chief Product Officer", "Strategy Manager", ("Product Manager", "Data Analyst", "Business Analyst", "HR")),
    Field(
        "Finance",
        "CFO",
        "Budget & Resource Allocation Manager",
        ("Accountant", "Fund Accountant", "Audit Support Officer", "Internal Auditor", "Procurement Assistant"),
    ),
    Field(
        "Operations",
        "Chief Operations Officer",
        "Logistics Manager",
        ("Shipping Coordinator", "Receiving Clerk", "Forklift Operator", "Packaging Design Engineer"),
    ),
    Field(
        "Production",
        "COO",
        "Production Manager",
        ("CNC Operator", "Assembly Worker", "Soldering Technician", "Robotics Technician", "Tool Setter"),
    ),
    Field(
        "Quality",
        "Chief Risk Officer",
        "Quality Manager",
        ("Final Inspector", "Visual Inspector", "Compliance Auditor", "Traceability Systems Specialist"),
    ),
    Field(
        "Administration",
        "Chief Administrative Officer",
        "HR & Admin Manager",
        ("HR Specialist", "Administrative Clerk", "Training Coordinator", "Digital Records Clerk", "Legal Compliance Officer"),
    ),
)


class Size(NamedTuple):
    """What one organization took."""

    agents: int
    took: Measured


class Exponents(NamedTuple):
    """Of wall-clock seconds, CPU seconds and peak memory, over executed subtasks and over agents."""

    wall: float
    cpu: float
    memory: float
    wall_by_agents: float
    cpu_by_agents: float
    memory_by_agents: float


# ---------------------------------------------------------------- the organizations
def organization(agents: int) -> str:
    """The YAML text of an organization of exactly so many agents, whose heads have some 8 to 15 direct reports each.

    A chief executive, department heads and workers; where there would be more than MOST_HEADS heads, managers stand between.  Raises
    ValueError where that makes no organization: below 5, and where a head would have more than about 15 managers.
    """
    heads = max(1, round((agents - 1) / (WIDTH + 1)))
    layers = 3 if heads <= MOST_HEADS else 4
    fields = FIELDS[: max(2, heads if layers == 3 else round(heads / WIDTH))]
    managers = 0 if layers == 3 else round((agents - 1 - len(fields)) / (WIDTH + 1))
    workers = agents - 1 - len(fields) - managers
    if workers < len(fields) or managers > MOST_HEADS * len(fields):
        raise ValueError(f"no organization of {agents} agents is made here: from 5 to about {MOST_HEADS * len(FIELDS) * (WIDTH + 1):,}")
    lines = [
        f"name: Growth {agents}",
        "domain: Devices and software",
        f"description: {agents} people make devices, the software for them, and what goes with both.",
        "calendar: {start: 2026-01-05, hours: 8}",
        "goals:",
        "  delivery: {text: Ship nine of ten orders on the agreed day, kpi: on_time, target: 90, by: 2026-11-27}",
        "  quality: {text: Halve what comes back for repair, by: 2026-09-25}",
        "environment:",
        f"  on_time: {{start: 71, unit: '%', noise: 0.5, raised_by: {{delivery: {1 / agents:.6f}}}}}",
        "roles:",
        "  Chief Executive Officer: {}",
    ]
    dealt = zip(fields, shares(managers, len(fields)), shares(workers, len(fields)), strict=True)
    for field, leading, working in dealt:
        lines.append(f"  {field.head}: {{reports_to: Chief Executive Officer, leads: {field.department}}}")
        if leading:
            lines.append(f"  {field.manager}: {{reports_to: {field.head}, count: {leading}}}")
        titles = field.workers[: max(1, min(len(field.workers), working))]
        for title, count in zip(titles, shares(working, len(titles)), strict=True):
            lines.append(f"  {title}: {{reports_to: {field.manager if leading else field.head}, count: {count}}}")
    return "\n".join(lines) + "\n"


def shares(count: int, parts: int) -> list[int]:
    """`count` in so many parts, as even as can be, the larger first."""
    return [count // parts + (place < count % parts) for place in range(parts)]


# ---------------------------------------------------------------- the fit
def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope b of log(value) = a + b log(size), by least squares; both are above 0, and sizes differ."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def exponents(sizes: Sequence[Size]) -> Exponents:
    """How what was measured grows with the subtasks, and with the agents."""
    of = [[one.took.wall for one in sizes], [one.took.cpu for one in sizes], [one.took.memory for one in sizes]]
    subtasks, agents = [one.took.subtasks for one in sizes], [one.agents for one in sizes]
    return Exponents(*(exponent(by, values) for by in (subtasks, agents) for values in of))


def measured(sizes: Sequence[int] = SIZES, until: str = UNTIL) -> list[Size]:
    """Run an organization of each size, one after the other."""
    found = []
    for agents in sizes:
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / f"growth-{agents}.yaml"
            file.write_text(organization(agents), encoding="utf-8")
            found.append(Size(agents, simulated(str(file), Path(place) / "run", until=until)))
    return found


def over(one: Size) -> str:
    """What the time was taken for."""
    took = one.took
    return f"{took.subtasks:,} executed subtasks, {took.cpu:.1f} s CPU, {1000 * took.cpu / took.subtasks:.2f} ms each"


def main(words: list[str]) -> None:
    """With `--text N` print that organization; else measure organizations of the sizes that are named, or of SIZES."""
    if words[:1] == ["--text"]:
        print(organization(int(words[1])), end="")
        return
    sizes = measured([int(word) for word in words] or SIZES)
    for one in sizes:
        print(f"{one.agents:>6,} agents  {one.took.wall:>7.1f} s wall  {one.took.memory / 1e6:>6.0f} MB  {over(one)}")
    if len(sizes) > 1:
        for name, value in exponents(sizes)._asdict().items():
            print(f"exponent of {name.replace('_', ' ')}: {value:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
