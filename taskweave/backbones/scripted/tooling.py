"""Which tool would this person use now, and with what?  Entry point: `choose`; its words and calls are in `phrases/tool*.yaml`.

Every second or third time somebody looks something up first; a call that changes something comes after, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, load
from taskweave.records import Json

Inputs = Mapping[str, Json]
INPUTS = frozenset(wording.listed("date author task subtask tools at_hand had colleagues"))
NONE = "none"
_IDLE = 0.15  # how often nobody needs a tool
_ANSWERED = 3  # how much rather than anything else somebody answers what was written to him or her
_TITLE = 60  # characters of a name
# What a line of what there is names: a slot of the calls.
_SEEN = {
    "table": re.compile(r"own table (\w+)\(subject, hours, noted\)"),
    "document": re.compile(r"document (.+\.docx) by "),
    "book": re.compile(r"document (.+\.xlsx) by "),
    "mail": re.compile(r"mail (\S+) from "),
    "post": re.compile(r"post (\S+) by "),
    "message": re.compile(r"message (\S+) in "),
    "meeting": re.compile(r"meeting (\S+) [0-9: -]+, by .+, asked: "),
    "own_meeting": re.compile(r"meeting (\S+) [0-9: -]+, your own: "),
    "ticket": re.compile(r"ticket (\S+): "),
    "page": re.compile(r"wiki page (.+) by .+, revision [0-9]+, "),
    "changed_page": re.compile(r"wiki page (.+) by .+, revision (?!1,)[0-9]+, "),
    "figure": re.compile(r"figure (\S+) "),
}


def choose(inputs: Inputs, dice: Dice) -> Json:
    """{call: {tool, arguments}}; the tool is "none" where there is nothing to do."""
    tables = load().tables
    had = {one["tool"] for one in inputs["had"]}
    looks = set(tables["tool_looks"].split())
    slots = _slots(inputs, dice)
    usable = [
        tool["name"]
        for tool in inputs["tools"]
        if tool["name"] in tables["tool_calls"]
        and tool["name"] not in had | (looks if had else set())
        and _names(tables["tool_calls"][tool["name"]]) <= slots.keys()
    ]
    if not usable or dice.words.random() < _IDLE:
        return {"call": {"tool": NONE, "arguments": {}}}
    usable += [name for name in usable for _ in range(_ANSWERED) if name.endswith(("_reply", "_reply_all", "_answer"))]
    name = usable[int(dice.words.random() * len(usable))]
    return {"call": {"tool": name, "arguments": _arguments(name, slots, dice)}}


def chosen(inputs: Inputs, dice: Dice) -> Json:
    """The tool alone, as the compact style asks for it."""
    nobody = {"task": {"title": inputs["subtask"]["goal"]}, "colleagues": []}
    return {"tool": choose({**inputs, **nobody}, dice)["call"]["tool"]}


def flat(inputs: Inputs, dice: Dice) -> Json:
    """The arguments of a tool alone, each list as one text: cells stand between "|", rows between ";"."""
    tool = inputs["tool"]
    made = _arguments(tool["name"], _slots(inputs, dice), dice)
    return {one["name"]: _flat(made[one["name"]], one["most"]) for one in tool["arguments"]}


def _flat(value: Json, most: int) -> Json:
    if isinstance(value, list):
        rows = value if any(isinstance(row, list) for row in value) else [value]
        value = "; ".join(" | ".join(map(str, row)) for row in rows)
    return wording.within(value, most) if isinstance(value, str) else value


def _arguments(name: str, slots: Mapping[str, Json], dice: Dice) -> dict[str, Json]:
    """What the tool of this name is called with; what is not known is left as the name of the work, which the tool may refuse."""
    draft = Draft(dice.words, {})
    draft.know(**{name: slots[name] for name in ("task", "goal", "author", "colleague")})
    call = load().tables["tool_calls"][name]
    made: dict[str, Json] = _filled(call, draft, {**dict.fromkeys(_names(call), slots["name"]), **slots})
    return made


def _slots(inputs: Inputs, dice: Dice) -> dict[str, Json]:
    """What this person knows and sees."""
    colleagues = [one["name"] for one in inputs["colleagues"]] or [str(inputs["author"]["name"])]
    today, task, author = str(inputs["date"]), str(inputs["task"]["title"]).rstrip(".")[:200], str(inputs["author"]["name"])
    goal = str(inputs["subtask"]["goal"]).rstrip(".")[:200]
    slots: dict[str, Json] = {
        "task": task,
        "goal": goal,
        "author": author,
        "colleague": colleagues[int(dice.words.random() * len(colleagues))],
        "name": _name(task),
        "date": today,
        "day": (date.fromisoformat(today) + timedelta(days=2)).isoformat(),
        "hours": inputs["subtask"].get("hours", 4),
        "statement": _statement(inputs, task, goal, author),
        "new_table": f"{re.sub('[^a-z]+', '_', goal.casefold())[:32].strip('_') or 'notes'}_{today[5:].replace('-', '')}",
    }
    for one in inputs.get("organization", {}).get("departments", ())[:1]:
        slots["department"] = one["name"]
    for slot, pattern in _SEEN.items():
        found = [match[1] for line in inputs["at_hand"] if (match := pattern.match(line))]
        if found:
            slots[slot] = found[int(dice.words.random() * len(found))]
        if slot == "ticket" and len(found) > 1:
            slots["other_ticket"] = next(other for other in found if other != slots[slot])
    own = [match[1] for line in inputs["at_hand"] if (match := re.match(rf"post (\S+) by {re.escape(author)}: ", line))]
    if own:
        slots["own_post"] = own[0]
    return slots


def _names(given: Json) -> set[str]:
    """The slots that a call's arguments name."""
    if isinstance(given, str):
        return set(re.findall(r"\{(\w+)\}", given))
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
    return {name for part in parts for name in _names(part)}


def _filled(given: Json, draft: Draft, slots: Mapping[str, Json]) -> Json:
    """A call's arguments with what is known in the place of slots, rules and lists."""
    if isinstance(given, dict):
        return {name: _filled(part, draft, slots) for name, part in given.items()}
    if isinstance(given, list):
        return [_filled(part, draft, slots) for part in given]
    if not isinstance(given, str):
        return given
    if given.startswith("=") and given[1:] in load().rules:
        return draft.say(given[1:])[: 200 if given == "=tool_subject" else 500]
    if given.startswith("?"):
        return draft.pick(load().tables[given[1:]])
    if whole := re.fullmatch(r"\{(\w+)\}", given):
        return slots[whole[1]]
    return given.format_map(slots)


def _name(text: str) -> str:
    """A text as a plain file's name."""
    words = re.sub(r"[^\w ()-]+", " ", text).split()
    return " ".join(words)[:_TITLE].strip(" -(") or "Notes"


def _statement(inputs: Inputs, task: str, goal: str, author: str) -> str:
    """A table for findings, and what goes into it once it is there."""
    tables = load().tables
    if not any("findings" in line for line in inputs["at_hand"]):
        return str(tables["tool_table"])
    slots = {"subject": task, "finding": goal, "author": author}
    return str(tables["tool_insert"].format(**{name: text.replace("'", "''") for name, text in slots.items()}))
