"""How are the nodes of a YAML text read into values, with everything that is wrong told at once?

Entry point: `Reader`, one a file.  A value that cannot be read is None, and the problem is kept with its line.  It refuses to know what
an incident is.
"""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date

from taskweave.errors import BadInput, Problem
from taskweave.org.calendar import WorkCalendar
from taskweave.org.yamlfile import Listing, Mapping, Node, Scalar
from taskweave.records import Json
from taskweave.simulation.incidents.effects import SPAN
from taskweave.simulation.incidents.names import KINDS, Kind, Who

MOST_DIGITS = 6  # of a count
SHOWN = 40  # characters of a value that is wrong
Fields = dict[str, Node]


def nodes_of(value: Json) -> Node:
    """A JSON value as the nodes of a YAML text, without lines."""
    if isinstance(value, dict):
        return Mapping(0, tuple((Scalar(0, str(key)), nodes_of(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        return Listing(0, tuple(nodes_of(inner) for inner in value))
    return Scalar(0, "" if value is None else str(value), empty=value is None)


class Reader:
    """Reads nodes into values and keeps what is wrong with them."""

    def __init__(self, file: str, who: Who, calendar: WorkCalendar) -> None:
        self.file, self.who, self.calendar = file, who, calendar
        self.problems: list[Problem] = []

    def wrong(self, node: Node, what: str) -> None:
        self.problems.append(Problem(file=self.file, line=node.line or None, what=what))

    def fields(self, node: Node, legal: Sequence[str], what: str) -> Fields | None:
        """The values of a mapping by their keys, all of them legal ones."""
        if not isinstance(node, Mapping):
            self.wrong(node, f"{what} is a mapping with the keys {', '.join(legal)}")
            return None
        found: Fields = {}
        for key, value in node.entries:
            if key.text in found:
                self.wrong(key, f"{key.text!r} is given twice")
            elif key.text not in legal:
                self.wrong(key, f"{what} has no key {key.text!r}; {hint(key.text, legal)}")
            else:
                found[key.text] = value
        return found

    def text(self, fields: Fields, name: str) -> str | None:
        node = fields.get(name)
        if node is None or (isinstance(node, Scalar) and node.empty):
            return None
        if not isinstance(node, Scalar):
            self.wrong(node, f"{name} is a text")
            return None
        text = " ".join(node.text.split())
        if (unseen := next((char for char in text if unicodedata.category(char) in ("Cc", "Cs")), None)) is not None:
            self.wrong(node, f"{name} holds the character U+{ord(unseen):04X}, which no text may hold")
            return None
        return text

    def needed(self, node: Node, fields: Fields, name: str, example: str) -> str | None:
        """A text that has to be there."""
        before = len(self.problems)
        value = self.text(fields, name)
        if not value and len(self.problems) == before:
            self.wrong(node, f"{name} is missing: `{name}: {example}`")
        return value or None

    def choice(self, fields: Fields, name: str, legal: Sequence[str], default: str) -> str:
        value = self.text(fields, name)
        if value is None:
            return default
        if value.lower() in legal:
            return value.lower()
        self.wrong(fields[name], f"{name} is {value[:SHOWN]!r}; it is one of {', '.join(legal)}")
        return default

    def truth(self, fields: Fields, name: str) -> bool:
        return self.choice(fields, name, ("true", "false", "yes", "no"), "no") in ("true", "yes")

    def count(self, fields: Fields, name: str) -> int | None:
        text = self.text(fields, name)
        if text is None:
            return None
        if text.isdecimal() and len(text) <= MOST_DIGITS and int(text) > 0:
            return int(text)
        self.wrong(fields[name], f"{name} is {text[:SHOWN]!r}; it is a whole number above 0, of at most {MOST_DIGITS} digits")
        return None

    def number(self, fields: Fields, name: str, least: float = -1e9, most: float = 1e9) -> float | None:
        """A number within bounds, both included."""
        text = self.text(fields, name)
        if text is None:
            return None
        value = as_number(text)
        if value is not None and least <= value <= most:
            return value
        self.wrong(fields[name], f"{name} is {text[:SHOWN]!r}; it is a number from {least:g} to {most:g}")
        return None

    def weekly(self, fields: Fields, name: str, least: float, most: float) -> float | None:
        """A number a week, as in `0.02/week`."""
        text = self.text(fields, name)
        if text is None:
            return None
        number, slash, unit = text.partition("/")
        value = as_number(number.strip())
        if value is not None and slash and unit.strip() == "week" and least <= value <= most:
            return value
        self.wrong(fields[name], f"{name} is {text[:SHOWN]!r}; write a number from {least:g} to {most:g} a week, as in '0.02/week'")
        return None

    def span(self, node: Node | None) -> str | None:
        if node is None:
            return None
        if isinstance(node, Scalar) and (found := SPAN.fullmatch(node.text.strip())) and int(found[1]) > 0:
            return " ".join(node.text.split())
        self.wrong(node, f"{getattr(node, 'text', 'this')[:SHOWN]!r} is not a span of time; write '3 days', '4 weeks' or '2 months'")
        return None

    def day(self, fields: Fields, name: str) -> date | None:
        text = self.text(fields, name)
        if text is None:
            return None
        try:
            return date.fromisoformat(text)
        except ValueError:
            self.wrong(fields[name], f"{name} is {text[:SHOWN]!r}; it is a date, as in '2026-09-30'")
            return None

    def names(self, node: Node) -> list[Scalar] | None:
        """One text, or a list of texts."""
        items = node.items if isinstance(node, Listing) else (node,)
        if items and all(isinstance(item, Scalar) and item.text.strip() for item in items):
            return [item for item in items if isinstance(item, Scalar)]
        self.wrong(node, "a name is needed here, or a list of names")
        return None

    def known(self, node: Node, *kinds: Kind) -> str | None:
        """A name by which somebody is called."""
        wanted = ", ".join(kinds) or f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        if not isinstance(node, Scalar):
            self.wrong(node, f"a name of a {wanted} is needed here")
            return None
        if not self.who.named(node.text, *kinds):
            self.wrong(node, f"no {wanted} is called {node.text[:SHOWN]!r}{self.who.nearest(node.text, *kinds)}")
            return None
        return node.text.strip()

    def one_of(self, node: Node, fields: Fields, name: str, there: Sequence[str], what: str) -> str | None:
        """A name that the organization has, as it spells it; `any` is the first there is."""
        text = self.needed(node, fields, name, there[0] if there else "...")
        if text is None:
            return None
        spelled = {one.casefold(): one for one in there}
        if text.casefold() in spelled:
            return spelled[text.casefold()]
        self.wrong(fields[name], f"no {what} is called {text[:SHOWN]!r}; {hint(text, there)}")
        return None

    def checked(self, node: Node, check: Callable[[], object]) -> None:
        try:
            check()
        except BadInput as trouble:
            self.wrong(node, str(trouble))


def hint(text: str, legal: Sequence[str]) -> str:
    """The nearest legal name, or all of them."""
    close = difflib.get_close_matches(text, legal, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(legal) or 'none'}"


def as_number(text: str) -> float | None:
    """What a text says as a number, None where it says none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
