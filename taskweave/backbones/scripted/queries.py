"""SQL deliverables: a statement that counts what the text reports, what it returned, and a reading of it.

Every statement runs on SQLite over the one table of its case: `table(case)` gives its columns.
"""

from __future__ import annotations

import re
import textwrap

from taskweave.backbones.scripted import topics, wording
from taskweave.backbones.scripted.grammar import Draft, load, shortened, tidy

LONGEST = 196  # words


def table(case: topics.Case) -> dict[str, str]:
    """The table of a case's items, {table, key, date}; besides these it has the column `finding`."""
    name = _name(case.items)
    dated = {str(known["table"]): str(known["date"]) for known in load().tables["tables"]}
    return {"table": name, "key": f"{_name(case.item)}_id", "date": dated.get(name, "entered_on")}


def _name(phrase: str) -> str:
    return re.sub(r"[^a-z]+", "_", phrase.lower()).strip("_")


def know_table(draft: Draft, case: topics.Case) -> None:
    """The table of a case and what it holds, as they stand in a statement."""
    slots = draft.slots
    draft.know(
        **{f"t_{name}": text for name, text in table(case).items()},
        **{f"t_{name}": slots[name].replace(",", "") for name in ("n", "k", "k2", "rest", "rest2") if name in slots},
        **{f"t_{name}": slots[name].replace("'", "''") for name in ("flaw1", "flaw2") if name in slots},
    )


def content(draft: Draft, case: topics.Case, reading: str = "sql_reading") -> str:
    """A query and its reading, as the text of a deliverable."""
    slots, pick = draft.slots, draft.pick
    know_table(draft, case)
    draft.know(
        t_all=pick(("total", "counted", "all_rows", "n")),
        t_first=pick(("first_group", "affected", "hits", "group_1")),
        t_second=pick(("second_group", "others", "group_2")),
        t_period=pick(("recent", "period", "in_question", "marked")),
    )
    before, statement = draft.say("sql_question"), draft.say("sql_statement")
    if wording.words(before) + wording.words(statement) < 100:
        before = f"{before} {draft.say('sql_table')}"
    before = _comment(tidy(before))
    room = LONGEST - wording.words(before) - wording.words(statement) - 12  # a mark begins every line of comment
    after = _comment(tidy(shortened(draft.say(reading), room)))
    if wording.words(after) > room + 16:  # a long statement with a long payload: these two, and what it builds on
        after = _comment(tidy(f"{draft.slots['payload']}\n{draft.slots.get('sources', '')}"))
    return f"{before}\n{re.sub(r'[ ]+$', '', statement, flags=re.MULTILINE).rstrip()}\n{after}"


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for part in text.split("\n") if part for line in textwrap.wrap(part, 96))
