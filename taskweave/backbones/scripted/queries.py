"""SQL deliverables: a statement that counts what the text reports, what it returned, and a reading of it.

Every statement runs on SQLite over the one table of its case: `table(case)` gives its columns.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from taskweave.backbones.scripted import fields, wording
from taskweave.backbones.scripted.grammar import Draft, load, shortened, tidy

LONGEST, WIDTH = 196, 96  # words, and characters of a line of comment


def table(case: fields.Case) -> dict[str, str]:
    """The table of a case's items, {table, key, date}; besides these it has the column `finding`."""
    name = _name(case.items)
    dated = {str(known["table"]): str(known["date"]) for known in load().tables["tables"]}
    return {"table": name, "key": f"{_name(case.item)}_id", "date": dated.get(name, "entered_on")}


def _name(phrase: str) -> str:
    return re.sub(r"[^a-z]+", "_", phrase.lower()).strip("_")


def know_table(draft: Draft, case: fields.Case) -> None:
    """The table of a case and what it holds, as they stand in a statement."""
    slots = draft.slots
    for name in ("t_k2", "t_flaw2"):
        slots.pop(name, None)
    draft.know(
        **{f"t_{name}": text for name, text in table(case).items()},
        **{f"t_{name}": slots[name].replace(",", "") for name in ("n", "k", "k2", "rest") if name in slots},
        **{f"t_{name}": slots[name].replace("'", "''") for name in ("flaw1", "flaw2") if name in slots},
    )


def content(draft: Draft, case: fields.Case, reading: str = "sql_reading") -> str:
    """A query and its reading, as the text of a deliverable."""
    pick = draft.pick
    know_table(draft, case)
    draft.know(
        t_all=pick(("total", "counted", "all_rows", "n")),
        t_first=pick(("first_group", "affected", "hits", "group_1")),
        t_second=pick(("second_group", "others", "group_2")),
        t_period=pick(("recent", "period", "in_question", "marked")),
    )
    question, before, statement = draft.say("sql_question"), draft.say("sql_answer"), draft.say("sql_statement")
    if wording.words(question) + wording.words(statement) < 76:
        before = f"{question} {before}"
    if wording.words(before) + wording.words(statement) < 100:
        before = f"{before} {draft.say('sql_table')}"
    before = _comment(tidy(before))
    room = LONGEST - wording.words(before) - wording.words(statement) - 12  # a mark begins every line of comment
    after = _comment(tidy(shortened(draft.say(reading), room)))
    if wording.words(after) > room + 16:  # a long statement with a long payload: these two, and what it builds on
        least = ("payload", "builds", "sources") if reading == "sql_reading" else ("listed", "decision_line", "used")
        after = _comment(tidy("\n".join(draft.slots.get(name, "") for name in least)))
        if wording.words(after) > room + 10:
            before = _comment(tidy(draft.say("sql_answer")))
    statement = "\n".join(line.rstrip(" ") for line in statement.split("\n"))
    return f"{before}\n{statement.rstrip()}\n{after}"


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for part in text.split("\n") if part for line in _wrapped(part))


def _wrapped(text: str) -> Iterator[str]:
    """The text in lines of at most `WIDTH`, broken where `textwrap` breaks it, which is asked only where a hyphen might be the place."""
    while len(text) > WIDTH:
        end = text.rfind(" ", 0, WIDTH + 1)
        if end < 0 or "-" in text[end : WIDTH + 1]:
            yield from textwrap.wrap(text, WIDTH)
            return
        yield text[:end].rstrip(" ")
        text = text[end:].lstrip(" ")
    yield text.rstrip(" ")
