"""How is a YAML node read as a value, and what does an editor need to know of it?  Entry points: the makers of `Kind`s.

A kind reads a node into a plain value and notes every problem in a `Reading` (file, line, what, nearest right name); it carries the
JSON Schema of what it accepts, so that what is read and what is described are one table.  Refuses to know which fields there are.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import isfinite
from pathlib import Path

from taskweave.errors import FileInvalid, Problem
from taskweave.org import yamlfile
from taskweave.org.yamlfile import Node, Scalar, Unreadable
from taskweave.records import Json

NAME_LENGTH = 80
TEXT_LENGTH = 5000
SHOWN = 60
NEAR = 0.9  # of 2: half of the words and half of the letters
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
Where = tuple[str, ...]


# ------------------------------------------------------------ what was found
def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message on an unknown name: the nearest right one, else those there are."""
    known = {one.casefold(): one for one in names}
    close = difflib.get_close_matches(name.casefold(), list(known), n=1, cutoff=0.6)
    if close:
        return f"; did you mean {known[close[0]]!r}?"
    listed = ", ".join(map(repr, list(known.values())[:8]))
    return f"; there are {listed}{', …' if len(known) > 8 else ''}" if known else "; there are none"


def alike(name: str, names: Iterable[str], most: int = 2) -> list[str]:
    """The names nearest to one in their words and letters, or whose initials it is, at most so many; none where none is near."""
    words = set(name.casefold().split())

    def score(one: str) -> float:
        others = set(one.casefold().split())
        if len(others) > 1 and name.casefold() == "".join(word[0] for word in one.casefold().split()):
            return 2.0
        shared = 2 * len(words & others) / (len(words) + len(others))
        return shared + difflib.SequenceMatcher(None, name.casefold(), one.casefold()).ratio()

    scored = sorted((-score(one), one) for one in names)
    return [one for far, one in scored[:most] if far <= -NEAR]


@dataclass(slots=True)
class Reading:
    """The problems and warnings of one file, and the line on which each path stands."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: dict[Where, int] = field(default_factory=dict)

    def wrong(self, line: int | None, what: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(file=self.file, line=line, what=what))

    def wrong_at(self, path: Where, what: str) -> None:
        """Note a problem at the line of a path, or of the nearest part of it that the file has."""
        self.wrong(self.line(path), what)

    def warn_at(self, path: Where, what: str) -> None:
        """Note what is legal and probably not meant."""
        self.warnings.append(str(Problem(file=self.file, line=self.line(path), what=what)))

    def line(self, path: Where) -> int | None:
        """Where a path stands in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def said(text: str) -> str:
    """A text as it is quoted in a message: never longer than a line."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


# ------------------------------------------------------------ kinds
@dataclass(frozen=True, slots=True)
class Kind:
    """`read` gives the value, or None after it noted why there is none; `schema` describes what is accepted."""

    read: Callable[[Reading, Node, Where], Json]
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a record."""

    kind: Kind
    about: str
    required: bool = False


def read_file(kind: Kind, path: Path) -> Json:
    """The value of a whole file.  Raises FileInvalid with the line and the reason of every problem in it."""
    reading = Reading(str(path))
    try:
        value = kind.read(reading, yamlfile.compose(yamlfile.read_limited(path)), ())
    except Unreadable as why:
        raise FileInvalid([why.problem(reading.file)]) from None
    if reading.problems:
        raise FileInvalid(reading.problems)
    return value


def scalar(parse: Callable[[str], Json], schema: Mapping[str, Json], expected: str) -> Kind:
    """A text that `parse` understands, or refuses with a ValueError that says what is wrong with it."""

    def read(reading: Reading, node: Node, path: Where) -> Json:
        if not isinstance(node, Scalar):
            return reading.wrong(node.line, f"{_at(path)} must be {expected}, not {_shape(node)}")
        if node.empty:
            return reading.wrong(node.line, f"{_at(path)} has no value; write {expected} or leave the key out")
        try:
            return parse(node.text.strip())
        except ValueError as why:
            return reading.wrong(node.line, f"{_at(path)}: {why}")

    return Kind(read, schema)


def listing(item: Kind) -> Kind:
    """A list of items; one item may stand without brackets."""

    def read(reading: Reading, node: Node, path: Where) -> Json:
        if isinstance(node, yamlfile.Mapping):
            return reading.wrong(node.line, f"{_at(path)} must be a list, not {_shape(node)}")
        nodes = node.items if isinstance(node, yamlfile.Listing) else (node,)
        for number, one in enumerate(nodes):
            reading.lines[(*path, str(number))] = one.line
        found = [item.read(reading, one, path) for one in nodes]
        return tuple(value for value in found if value is not None)

    return Kind(read, {"anyOf": [{"type": "array", "items": dict(item.schema)}, dict(item.schema)]})


def record(fields: Mapping[str, Field], *, short: str | None = None, empty: bool = False, meant: Mapping[str, str] | None = None) -> Kind:
    """A mapping with these keys; `short` names the key that a lone text stands for, `empty` allows nothing at all.

    `meant` names the key for words that people use for it, small letters and in the plural.
    """

    def read(reading: Reading, node: Node, path: Where) -> Json:
        if isinstance(node, Scalar) and node.empty and empty:
            return {}
        if isinstance(node, Scalar) and not node.empty and short:
            entries: Iterable[tuple[Scalar, Node]] = [(Scalar(node.line, short), node)]
        elif isinstance(node, yamlfile.Mapping):
            entries = node.entries
        else:
            return reading.wrong(
                node.line, f"{_at(path)} must be a mapping with keys such as {', '.join(list(fields)[:3])}, not {_shape(node)}"
            )
        values: dict[str, Json] = {}
        seen: dict[str, int] = {}
        for key, value in entries:
            if _twice(reading, key, seen, path):
                continue
            if key.text not in fields:
                reading.wrong(key.line, f"unknown key {said(key.text)}{_inside(path)}{_hint(key.text, fields, meant or {})}")
                continue
            here = (*path, key.text)
            reading.lines[here] = key.line
            found = fields[key.text].kind.read(reading, value, here)
            if found is not None:
                values[key.text] = found
        for name, one in fields.items():
            if one.required and name not in seen:
                reading.wrong(node.line, f"{_at(path)} needs the key {name!r}: {one.about}")
        return values

    properties = {name: {**one.kind.schema, "description": one.about} for name, one in fields.items()}
    required = [name for name, one in fields.items() if one.required]
    schema: dict[str, Json] = {"type": "object", "properties": properties, "additionalProperties": False, "required": required}
    forms = [schema, *([fields[short].kind.schema] if short else []), *([{"type": "null"}] if empty else [])]
    return Kind(read, schema if len(forms) == 1 else {"anyOf": forms})


def _hint(key: str, fields: Mapping[str, Field], meant: Mapping[str, str]) -> str:
    word = key.casefold()
    for one in (word, f"{word}s", f"{word[:-1]}ies"):
        if one in meant:
            return f"; did you mean {meant[one]!r}?"
    return nearest(key, fields)


def mapping_of(key: Callable[[str], str], value: Kind, what: str, *, empty: str | None = None) -> Kind:
    """A mapping from names (`key` cleans or refuses one) to values of one kind, in file order; `empty` says why it may not be."""

    def read(reading: Reading, node: Node, path: Where) -> Json:
        if not isinstance(node, yamlfile.Mapping):
            return reading.wrong(node.line, f"{_at(path)} must be a mapping from {what} to its values, not {_shape(node)}")
        if empty and not node.entries:
            reading.wrong(node.line, f"{_at(path)} {empty}")
        values: dict[str, Json] = {}
        seen: dict[str, int] = {}
        for name, one in node.entries:
            try:
                cleaned = key(name.text)
            except ValueError as why:
                reading.wrong(name.line, f"{what} in {_at(path)}: {why}")
                continue
            if _twice(reading, Scalar(name.line, cleaned), seen, path):
                continue
            here = (*path, cleaned)
            reading.lines[here] = name.line
            found = value.read(reading, one, here)
            # A value that could not be read keeps its name, so that who refers to it is not blamed as well.
            values[cleaned] = {} if found is None else found
        return values

    return Kind(read, {"type": "object", "additionalProperties": dict(value.schema)})


def _twice(reading: Reading, key: Scalar, seen: dict[str, int], path: Where) -> bool:
    if key.text in seen:
        reading.wrong(key.line, f"{said(key.text)} is written twice{_inside(path)}; first on line {seen[key.text]}")
        return True
    seen[key.text] = key.line
    return False


def _at(path: Where) -> str:
    return "the file" if not path else ".".join(part if len(part) <= SHOWN else part[: SHOWN - 1] + "…" for part in path)


def _inside(path: Where) -> str:
    return f" in {_at(path)}" if path else ""


def _shape(node: Node) -> str:
    if isinstance(node, Scalar):
        return "nothing" if node.empty else f"the text {said(node.text)}"
    return "a list" if isinstance(node, yamlfile.Listing) else "a mapping"


# ------------------------------------------------------------ texts
def clean_name(text: str, most: int = NAME_LENGTH) -> str:
    """A name in its one form (NFC, single spaces); ValueError where it cannot be shown, found or fitted."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not name:
        raise ValueError("the name is empty")
    if len(name) > most:
        raise ValueError(f"the name {said(name)} has {len(name)} characters; at most {most} are possible")
    for char in name:
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn"):
            raise ValueError(f"the name {said(name)} holds the invisible character U+{ord(char):04X}")
    return name


def _text(text: str) -> str:
    if not text:
        raise ValueError("the text is empty")
    if len(text) > TEXT_LENGTH:
        raise ValueError(f"the text has {len(text):,} characters; at most {TEXT_LENGTH:,} are possible")
    return text


TEXT = scalar(_text, {"type": ["string", "number", "boolean"]}, "a text")
NAME = scalar(clean_name, {"type": ["string", "number", "boolean"]}, "a name")


# ------------------------------------------------------------ numbers
LARGEST = 1e15  # a year of changes by so much, and noise upon it, stays a number


def _number(text: str) -> float:
    if not re.fullmatch(NUMBER, text) or not isfinite(float(text)):
        raise ValueError(f"{said(text)} is not a number")
    return float(text)


def _bounded(value: float, text: str) -> float:
    if abs(value) > LARGEST:
        raise ValueError(f"{said(text)} is too large: figures go up to {LARGEST:g}")
    return value


def number(*, least: float | None = None, more_than: float | None = None, most: float | None = None) -> Kind:
    """A number within bounds."""

    def parse(text: str) -> float:
        value = _number(text)
        if more_than is not None and value <= more_than:
            raise ValueError(f"{said(text)} must be more than {more_than:g}")
        if least is not None and value < least:
            raise ValueError(f"{said(text)} must be at least {least:g}")
        if most is not None and value > most:
            raise ValueError(f"{said(text)} must be at most {most:g}")
        return _bounded(value, text)

    bounds = {"minimum": least, "exclusiveMinimum": more_than, "maximum": most}
    return scalar(parse, {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}}, "a number")


def integer(least: int, most: int) -> Kind:
    """A whole number within bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
            raise ValueError(f"{said(text)} is not a whole number")
        if not least <= int(text) <= most:
            raise ValueError(f"{said(text)} lies outside {least} to {most:,}")
        return int(text)

    return scalar(parse, {"type": "integer", "minimum": least, "maximum": most}, "a whole number")


def _switch(text: str) -> bool:
    if text.casefold() not in _SWITCHES:
        raise ValueError(f"{said(text)} is neither 'on' nor 'off'")
    return _SWITCHES[text.casefold()]


_SWITCHES = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
SWITCH = scalar(_switch, {"enum": ["on", "off", True, False]}, "'on' or 'off'")


def share(*, zero: bool) -> Kind:
    """A part of a whole, `30%` or `0.3`, as 0 to 1; `zero` says whether it may be none."""

    def parse(text: str) -> float:
        percent = text.endswith("%")
        value = _number(text.removesuffix("%").rstrip()) / (100 if percent else 1)
        if not 0 <= value <= 1 or (value == 0 and not zero):
            hint = f"; did you mean '{value:g}%'?" if not percent and 5 <= value <= 100 else ""
            raise ValueError(f"{said(text)} must be {'at least' if zero else 'more than'} 0% and at most 100%{hint}")
        return value

    low = {"minimum": 0} if zero else {"exclusiveMinimum": 0}
    forms = [{"type": "number", **low, "maximum": 1}, {"type": "string", "pattern": r"^[0-9.]+ *%$"}]
    return scalar(parse, {"anyOf": forms}, "a part such as '30%' or 0.3")


LEAST_HOURS = 0.25  # of a subtask: time is counted in quarters of an hour


def _hours(text: str) -> tuple[float, float]:
    found = re.fullmatch(rf"({NUMBER})(?: *[-\u2013] *({NUMBER}))?", text)
    if not found:
        raise ValueError(f"{said(text)} is not a range of hours such as '5-14', nor a number of them")
    low, high = _number(found[1]), _number(found[2] or found[1])
    if low < LEAST_HOURS or high < LEAST_HOURS:
        raise ValueError(f"{said(text)}: a subtask takes at least {LEAST_HOURS} hours, a quarter of an hour")
    if low > high:
        raise ValueError(f"{said(text)} is reversed; write '{high:g}-{low:g}'")
    if high > 400:
        raise ValueError(f"{said(text)}: a subtask takes at most 400 hours")
    return low, high


HOURS = scalar(_hours, {"anyOf": [{"type": "number", "minimum": LEAST_HOURS}, {"type": "string"}]}, "hours such as '5-14'")


def _weekly(text: str) -> float:
    found = re.fullmatch(rf"({NUMBER})(?: */ *week)?", text)
    if not found:
        raise ValueError(f"{said(text)} is not a change a week such as '+0.02/week'")
    return _bounded(_number(found[1]), text)


WEEKLY = scalar(_weekly, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "/ *week$"}]}, "a change such as '+0.02/week'")


# ------------------------------------------------------------ dates
def parse_date(text: str) -> date:
    """A date `2026-01-31`; ValueError where the calendar has none such."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(f"{said(text)} is not a date such as '2026-01-31'")
    try:
        found = date.fromisoformat(text)
    except ValueError as why:
        raise ValueError(f"{said(text)} is not a date: {why}") from None
    if not 1900 <= found.year <= 2200:
        raise ValueError(f"{said(text)} lies outside the years 1900 to 2200")
    return found


def _span(text: str) -> tuple[date, date]:
    first, _, last = text.partition("/")
    span = parse_date(first.strip()), parse_date((last or first).strip())
    if span[0] > span[1]:
        raise ValueError(f"{said(text)} ends before it starts; write '{span[1]}/{span[0]}'")
    return span


def _days(text: str) -> tuple[date, ...]:
    first, last = _span(text)
    if (last - first).days > 366:
        raise ValueError(f"{said(text)} is longer than a year")
    return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))


_DATE_SCHEMA = {"type": "string", "format": "date"}
_SPAN_SCHEMA = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}( */ *\d{4}-\d{2}-\d{2})?$"}
DATE = scalar(parse_date, _DATE_SCHEMA, "a date")
SPAN = scalar(_span, _SPAN_SCHEMA, "a date or a span such as '2026-08-03/2026-08-14'")
DAYS = scalar(_days, _SPAN_SCHEMA, "a date or a span such as '2026-12-24/2026-12-31'")
