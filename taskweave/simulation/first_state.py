"""S_0, under which the year is planned: the organization's goals and the first readings, without a call.

Entry points: `first_state`, `first_words`.  They refuse to book anything.
"""

from __future__ import annotations

from taskweave.backbones.structured import Answered
from taskweave.org.organization import Organization
from taskweave.records import Json
from taskweave.simulation import answers
from taskweave.simulation.stage import Stage
from taskweave.simulation.units import ROOT, Unit


def first_words(org: Organization) -> dict[str, Json]:
    """plan, diagnosis and owner of the state's row."""
    goals = "; ".join(goal.text for goal in org.goals.values())
    readings = "; ".join(f"{kpi} {spec.start:g} {spec.unit}".strip() for kpi, spec in org.environment.items())
    return {
        "plan": f"Goals of {org.name}: {goals}" if goals else org.description,
        "diagnosis": f"First readings: {readings}." if readings else None,
        "owner": org.root.title,
    }


def first_state(stage: Stage) -> Unit:
    """The unit above all others, of the organization as the stage has it."""
    words, origin = first_words(stage.setting.org), stage.setting.origin
    plan = answers.Formulation.by_code(plan=words["plan"], focus=(), risks=())
    given = stage.engine.given(Answered(value=plan, quality="ok", reason="", calls=(), origin=origin))
    root = Unit(id=ROOT, level="year", period="", owner="", parent=None, plan=given, plans={}, has_children=True)
    if words["diagnosis"] is not None:
        summary = answers.RollUp.by_code(summary=words["diagnosis"])
        root.diagnosis = stage.engine.given(Answered(value=summary, quality="ok", reason="", calls=(), origin=origin))
    return root
