"""What is written of a result: itself, what it was made from and where it comes from (Eq. 8).

Entry point: `result_rows`.  It refuses to know when: the deliverable is a promise.
"""

from __future__ import annotations

from collections.abc import Callable

from taskweave.pool.tables import Row
from taskweave.simulation.about import spans
from taskweave.simulation.dependencies import Use
from taskweave.simulation.execution import Deliverable
from taskweave.simulation.open_work import OpenTask


def result_rows(task: OpenTask, *, subtask: str | None, finished: str) -> Callable[[Deliverable], list[Row]]:
    """What makes the rows of a deliverable of this task; `subtask` is None for the merged one."""
    assert task.spec is not None
    identifier, owner = task.id, task.owner
    goals, cause, state = list(task.spec.goals), task.cause, task.state

    def make(deliverable: Deliverable) -> list[Row]:
        uses = list(deliverable.uses)
        if cause is not None:
            uses.append(Use(used=cause, kind="incident", how="explicit"))
        return [
            (
                "results",
                {
                    "id": deliverable.id,
                    "task": identifier,
                    "subtask": subtask,
                    "agent": deliverable.agent,
                    "artifact": deliverable.artifact,
                    "title": deliverable.title,
                    "content": deliverable.content,
                    "finished": finished,
                    "quality": deliverable.quality,
                    "origin": deliverable.origin,
                    **({"facts": spans(deliverable.content, deliverable.facts)} if deliverable.facts else {}),
                },
            ),
            *(("uses", {"result": deliverable.id, "used": use.used, "kind": use.kind, "how": use.how}) for use in uses),
            *(("tool_calls", {**call, "result": deliverable.id}) for call in deliverable.used.rows),
            (
                "provenance",
                {
                    "result": deliverable.id,
                    "state": state,
                    "goals": goals,
                    "prompt": deliverable.prompt,
                    "backbone": deliverable.backbone,
                    "agent": deliverable.agent,
                    "delegator": owner,
                    "calls": [f"{call.site}#{call.ordinal}" for call in deliverable.calls],
                },
            ),
        ]

    return make
