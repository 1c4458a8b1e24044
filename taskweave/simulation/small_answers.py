"""What a backbone may answer to a small question (`--style compact`), and the JSON schema of each: at most three fields, one decision.

A head in `prompts/compact/` names one of these classes, as those of the whole steps do (`answers.py`).  A text has a `maxLength`, since a
weak model otherwise goes on until it is cut off, which is a failure; the prompt's `max_tokens` leave room for it at two characters a
token.  The classes are kinder: they take a longer text, and leave what is no legal choice to the step's own rules.
"""

from __future__ import annotations

from functools import lru_cache

from pydantic import ConfigDict

from taskweave.simulation.answers import Answer, Note, Schema, Text, object_of, one_of

TITLE, SENTENCE, SENTENCES, PLAN, SUMMARY, CONTENT = 80, 160, 280, 600, 480, 900  # characters
LENGTHS: dict[str, tuple[int, int]] = {  # at least, at most
    "plan": (20, PLAN),
    "summary": (20, SUMMARY),
    "content": (60, CONTENT),
    "title": (4, TITLE),
    "background": (10, SENTENCE),
    "description": (20, SENTENCES),
    "goal": (10, 240),
    "text": (10, 240),
    "measure": (4, SENTENCE),
}


class PlanText(Answer):
    """formulate, align, reconcile, respond: the plan alone."""

    plan: Text


class ObjectiveText(Answer):
    """partition: the objective of one recipient."""

    text: Text
    measure: Note


class ServedGoal(Answer):
    """The name of the goal that something serves, or NONE."""

    goal: Text


class ChosenActivity(Answer):
    """The activity of a task."""

    activity: Text


class TaskText(Answer):
    """partition_week, respond_task: the words of one composite task."""

    title: Text
    background: Note
    description: Text


class ChosenRole(Answer):
    """decompose_role: whose work a subtask is."""

    role: Text


class SubtaskGoal(Answer):
    """decompose: the goal of one subtask."""

    goal: Text


class Upstream(Answer):
    """decompose_after: the id of the work that a subtask builds on, or NOTHING."""

    after: Text


class Document(Answer):
    """execute, merge: a text with its title."""

    title: Text
    content: Text


class SummaryText(Answer):
    """diagnose, roll_up: the summary alone."""

    summary: Text


class Asked(Answer):
    """reconcile_whom: the sibling of whom something is asked, or NOBODY."""

    to: Text


class RequestText(Answer):
    """reconcile_request: what is asked."""

    text: Text


class ChosenTool(Answer):
    """execute_tool: the tool that is used, or NO_TOOL."""

    tool: Text


class ToolArguments(Answer):
    """execute_tool_arguments: whatever arguments the tool has."""

    model_config = ConfigDict(frozen=True, extra="allow")


NONE, NOTHING, NOBODY = "none", "nothing", "nobody"


@lru_cache(maxsize=32)
def texts(*fields: str) -> Schema:
    """The schema of an answer of texts with these names, within LENGTHS."""
    return object_of({name: {"type": "string", "minLength": LENGTHS[name][0], "maxLength": LENGTHS[name][1]} for name in fields})


@lru_cache(maxsize=2048)
def choice(field: str, options: tuple[str, ...]) -> Schema:
    """The schema of one decision: one of `options`."""
    return object_of({field: one_of(options)})
