"""SQL deliverables: real SELECT statements over a field's tables, with a comment that says what they answer and what they build on."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from datetime import date
from typing import Any

from taskweave.backbones.scripted import topics, wording
from taskweave.backbones.scripted.grammar import Draft, load, shortened, tidy

LONGEST = 196  # words


def schema(name: str) -> list[Mapping[str, Any]]:
    """The tables of a field: {table, key, dimension, second, measure, date, status, values, parent, parent_key, parent_label}."""
    schemas = load().tables["schemas"]
    return list(schemas.get(name) or schemas["office"])


def content(draft: Draft, name: str) -> str:
    """A query and its reading, as the text of a deliverable."""
    subject = f"{draft.slots['O']} {draft.slots['items']}"
    table = topics.ranked(draft.random, schema(name), lambda known: " ".join(map(str, known.values())).replace("_", " "), subject, "", ())[
        0
    ]
    since = wording.working_day(wording.parse_date(draft.slots["iso"]) or date(2026, 1, 5), -35 - 5 * int(draft.random.random() * 8))
    values = [str(value) for value in table["values"]]
    draft.know(**{f"t_{key}": str(value) for key, value in table.items() if key != "values"})
    draft.know(**{f"t_{key}_words": str(table[key]).replace("_", " ") for key in ("table", "dimension", "second", "measure")})
    draft.know(
        t_value=values[int(draft.random.random() * len(values))],
        t_value2=values[0],
        t_since=since.isoformat(),
        t_floor=str(3 + int(draft.random.random() * 9)),
        t_limit=str(10 + 5 * int(draft.random.random() * 4)),
        t_alias="t" if str(table["table"])[0] == "p" else str(table["table"])[0],
    )
    before = _comment(tidy(draft.say("sql_question")))
    statement = draft.say("sql_statement")
    room = LONGEST - wording.words(before) - wording.words(statement) - 12  # a mark begins every line of comment
    after = _comment(tidy(shortened(draft.say("sql_reading"), room)))
    return f"{before}\n{re.sub(r'[ ]+$', '', statement, flags=re.MULTILINE)}\n{after}"


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for part in text.split("\n") if part for line in textwrap.wrap(part, 96))
