"""What will a step be asked, before any run?  Entry point: `first_request`.

Runs the organization's first weeks with the scripted backbone in a temporary folder and takes the first request of the step from its
journal, so that what is shown is what is sent.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from taskweave.driving import Organization, begin, drive
from taskweave.engine.reader import Call, JournalReader
from taskweave.errors import BadInput
from taskweave.given import prompt_folders
from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Population
from taskweave.prompts import PromptBook
from taskweave.records import StyleName
from taskweave.runs import RunFolder
from taskweave.shipped import shipped
from taskweave.simulation.incidents import load_incidents

# A quarter's closings are the last to ask something new; what a week does not ask, a month or a quarter may.
HORIZONS = ("week:1", "month:1", "quarter:1")
CHOOSING = "decompose_role"  # asked only where the backbone chooses the roles


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a request."""

    role: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """The first request of a step: where it is made, its messages and their tokens (UTF-8 bytes / 4)."""

    site: str
    messages: tuple[Message, ...]
    tokens: int


def first_request(org: Organization, step: str, *, prompts: Path | None, seed: int, style: StyleName = "full") -> Shown:
    """The first request that uses the step's prompt.  Raises BadInput for an unknown step, and for one that is never taken."""
    steps = [prompt.id for prompt in PromptBook.load(*prompt_folders([prompts] if prompts is not None else [], style))]
    if step not in steps:
        near = difflib.get_close_matches(step, steps, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"--step {step!r}: there is no such step.{hint} Steps are {', '.join(steps)}.")
    assign: Literal["match", "model"] = "model" if step == CHOOSING else "match"
    with tempfile.TemporaryDirectory(prefix="taskweave-") as place:
        for number, horizon in enumerate(HORIZONS):
            folder = _rehearse(org, Path(place) / str(number), horizon, [prompts] if prompts is not None else [], seed, style, assign)
            if (call := _first(folder, step)) is not None:
                messages = tuple(Message(role=role, text=text) for role, text in call.messages)
                tokens = sum(-(-len(message.text.encode()) // 4) for message in messages)
                return Shown(site=call.site, messages=messages, tokens=tokens)
    raise BadInput(f"--step {step!r}: {org.resolved.name} does not take this step in its first quarter, so no prompt of it is sent.")


def _rehearse(
    org: Organization,
    place: Path,
    until: str,
    prompts: Sequence[Path],
    seed: int,
    style: StyleName,
    assign: Literal["match", "model"],
) -> RunFolder:
    resolved = org.resolved
    file = shipped("orgs") / "starter" / "incidents.yaml"
    calendar = WorkCalendar(resolved.calendar)
    incidents = load_incidents(file, resolved, Population.sample(resolved, seed), calendar)
    # At a week's first tick an incident is heard by the opening, and nobody has to respond.
    second = next((week.first_day + 1 for week in calendar.weeks if week.day_count > 1), 0)
    folder, answering = begin(
        org,
        out=place,
        backbone="scripted",
        seed=seed,
        until=until,
        base_url=None,
        prompts=prompts,
        assign=assign,
        incidents=[],
        limit=16,
        patience=600.0,
        tags={},
        style=style,
        extra=[{**incident, "tick": second} for incident in incidents],
        reach=False,
    )
    drive(folder, answering)
    return folder


def _first(folder: RunFolder, step: str) -> Call | None:
    with JournalReader(folder.journal_path) as journal:
        if all(use.prompt != step for use in journal.prompts()):
            return None
        calls = (call for site in journal.sites() for call in journal.calls(site))
        return next((call for call in calls if call.prompt == step), None)
