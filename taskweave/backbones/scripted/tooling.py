"""Which tool would this person use now, and with what?  Entry point: `choose`; its words are in `phrases/tools.yaml`.

Every second or third time somebody looks something up first; a call that changes something comes after, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, load
from taskweave.records import Json

Inputs = Mapping[str, Json]
INPUTS = frozenset(wording.listed("date author task subtask tools at_hand had colleagues"))
NONE = "none"
_IDLE = 0.15  # how often nobody needs a tool
_TITLE = 60  # characters of a name


def choose(inputs: Inputs, dice: Dice) -> Json:
    """{call: {tool, arguments}}; the tool is "none" where there is nothing to do."""
    names = [tool["name"] for tool in inputs["tools"] if tool["name"] in _WRITERS]
    had = {one["tool"] for one in inputs["had"]}
    usable = [name for name in names if name not in had]
    if had:  # after a look: what changes something
        usable = [name for name in usable if not name.endswith(("_query", "_read", "_list"))]
    if not usable or dice.words.random() < _IDLE:
        return {"call": {"tool": NONE, "arguments": {}}}
    name = usable[int(dice.words.random() * len(usable))]
    return {"call": {"tool": name, "arguments": arguments(name, inputs, dice)}}


def chosen(inputs: Inputs, dice: Dice) -> Json:
    """The tool alone, as the compact style asks for it."""
    nobody = {"task": {"title": inputs["subtask"]["goal"]}, "colleagues": []}
    return {"tool": choose({**inputs, **nobody}, dice)["call"]["tool"]}


def flat(inputs: Inputs, dice: Dice) -> Json:
    """The arguments of a tool alone, each list as one text: cells stand between "|", rows between ";"."""
    tool = inputs["tool"]
    made = arguments(tool["name"], inputs, dice)
    return {one["name"]: _flat(made[one["name"]], one["most"]) for one in tool["arguments"]}


def _flat(value: Json, most: int) -> Json:
    if isinstance(value, list):
        value = "; ".join(" | ".join(row) if isinstance(row, list) else row for row in value) if _nested(value) else " | ".join(value)
    return wording.within(value, most) if isinstance(value, str) else value


def _nested(value: Json) -> bool:
    return any(isinstance(row, list) for row in value)


def arguments(name: str, inputs: Inputs, dice: Dice) -> dict[str, Json]:
    """What the tool of this name is called with."""
    colleagues = [one["name"] for one in inputs["colleagues"]] or [str(inputs["author"]["name"])]
    draft = Draft(dice.words, {})
    draft.know(
        task=str(inputs["task"]["title"]).rstrip("."),
        goal=str(inputs["subtask"]["goal"]).rstrip("."),
        author=str(inputs["author"]["name"]),
        colleague=colleagues[int(dice.words.random() * len(colleagues))],
    )
    made: dict[str, Json] = _WRITERS[name](draft, inputs)
    return made


def _name(text: str) -> str:
    """A text as a plain file's name."""
    words = re.sub(r"[^\w ()-]+", " ", text).split()
    return " ".join(words)[:_TITLE].strip(" -(") or "Notes"


def _query(draft: Draft, _: Inputs) -> Json:
    return {"statement": draft.pick(load().tables["tool_queries"])}


def _analysis(draft: Draft, _: Inputs) -> Json:
    return {"statement": draft.pick(load().tables["tool_analyses"])}


def _sql_write(draft: Draft, inputs: Inputs) -> Json:
    tables = load().tables
    if not any("findings" in line for line in inputs["at_hand"]):
        return {"statement": tables["tool_table"]}
    slots = {"subject": draft.slots["task"], "finding": draft.slots["goal"], "author": draft.slots["author"]}
    return {"statement": tables["tool_insert"].format(**{name: text.replace("'", "''") for name, text in slots.items()})}


def _document(draft: Draft, _: Inputs) -> Json:
    return {"name": _name(draft.slots["task"]), "title": draft.slots["task"][:200], "text": draft.say("tool_document")}


def _sheet(draft: Draft, _: Inputs) -> Json:
    tables = load().tables
    rows = [[draft.slots["goal"][:200], draft.slots["author"], draft.pick(tables["tool_states"])]]
    return {"name": _name(draft.slots["task"]), "columns": tables["tool_columns"], "rows": rows}


def _mail(draft: Draft, _: Inputs) -> Json:
    return {"to": [draft.slots["colleague"]], "subject": draft.say("tool_subject")[:200], "text": draft.say("tool_mail")}


def _ticket(draft: Draft, _: Inputs) -> Json:
    title = draft.slots["task"][:200]
    return {"title": title, "text": draft.say("tool_ticket"), "assignee": draft.slots["colleague"], "priority": "normal"}


_WRITERS: Mapping[str, Callable[[Draft, Inputs], Json]] = {
    "sql_query": _query,
    "duckdb_query": _analysis,
    "sql_write": _sql_write,
    "document_write": _document,
    "sheet_write": _sheet,
    "mail_send": _mail,
    "mail_read": lambda draft, inputs: {},
    "document_list": lambda draft, inputs: {},
    "feed_post": lambda draft, inputs: {"text": draft.say("tool_post")[:500], "in_reply_to": ""},
    "feed_read": lambda draft, inputs: {},
    "chat_post": lambda draft, inputs: {"channel": "general", "text": draft.say("tool_message")},
    "ticket_open": _ticket,
    "wiki_write": lambda draft, inputs: {"title": _name(draft.slots["task"]), "text": draft.say("tool_page")},
    "wiki_list": lambda draft, inputs: {},
}
