"""Rewrite prompts/compact/samples.json after the inputs of a small question changed:  python -m tests.compact_samples

Of each prompt the leanest and the fullest inputs of scripted runs of tiny and company_a, with an incident that must be answered at once.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import taskweave.driving as driving
from taskweave.backbones.scripted import Scripted
from taskweave.cutting import value_tokens
from taskweave.records import Json, Request
from taskweave.shipped import shipped, shipped_prompts

INCIDENT = {
    "title": "Messages are delayed",
    "category": "technology",
    "severity": "high",
    "description": "A supplier delivers messages up to three hours late.",
    "affects": "all",
    "tick": 8,
}


class Recording(Scripted):
    """Answers, and keeps the inputs of all that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Json:
        self.asked.append(request)
        return super().answer(request)


def asked(place: Path, organization: str, assign: Any, until: str = "month:1") -> list[Request]:
    """All requests of the first weeks of an organization in the compact style."""
    return _asked(place, driving.Organization.load(organization), assign, until)


def asked_for_tools(place: Path) -> list[Request]:
    """What agents of company_a are asked about their tools in the first two weeks, in the compact style."""
    file = shipped("orgs") / "company_a.yaml"
    with_tools = driving.Organization(f"{file.read_text(encoding='utf-8')}\ntools: on\n")
    return [request for request in _asked(place, with_tools, "match", "week:2") if request.prompt.startswith("execute_tool")]


def _asked(place: Path, organization: driving.Organization, assign: Any, until: str) -> list[Request]:
    backbone = Recording()
    folder, _ = driving.begin(
        organization,
        out=place,
        backbone=backbone,
        seed=1,
        until=until,
        base_url=None,
        prompts=[],
        assign=assign,
        incidents=[],
        limit=16,
        patience=60,
        tags={},
        extra=[INCIDENT],
        style="compact",
    )
    driving.drive(folder, backbone)
    return backbone.asked


def main() -> int:
    found: dict[str, list[Request]] = {}
    with tempfile.TemporaryDirectory() as place:
        for organization, assign in (("tiny", "model"), ("company_a", "match")):
            for request in asked(Path(place) / organization, organization, assign):
                found.setdefault(request.prompt, []).append(request)
        for request in asked_for_tools(Path(place) / "tools"):
            found.setdefault(request.prompt, []).append(request)
    organization = next(
        request.inputs["organization"] for request in found["formulate"] if request.inputs["organization"]["name"] == "Tiny"
    )
    lines = ["{", f'"organization": {json.dumps(organization, sort_keys=True)},', '"steps": {']
    for place_, (prompt, requests) in enumerate(sorted(found.items())):
        bare = [{name: value for name, value in request.inputs.items() if name != "organization"} for request in requests]
        ordered = sorted(bare, key=lambda inputs: (value_tokens(inputs), json.dumps(inputs, sort_keys=True)))
        shown = [json.dumps(inputs, sort_keys=True) for inputs in (ordered[0], ordered[-1])]
        lines += [f'"{prompt}": [', f"{shown[0]},", shown[1], "]," if place_ + 1 < len(found) else "]"]
    (shipped_prompts("compact") / "samples.json").write_text("\n".join([*lines, "}", "}"]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
