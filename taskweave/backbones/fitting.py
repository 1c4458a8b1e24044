"""What did a model mean that answered in another shape than the schema's?  Entry point: `fitted(value, schema)`.

It gives the readings of a value, the likeliest first, each with what was changed for it: a list where an object was asked, one thing
where a list was asked, a number written as text, a word in another case or one that is not offered.  Nothing is invented: what is
missing stays missing.  It knows no step and no backbone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from taskweave.backbones.legal import nearest
from taskweave.records import Json

_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?")
_DEEPEST = 40  # levels of a text that was given as something else
Schema = Mapping[str, Json]


class Reading(NamedTuple):
    """A value in the schema's shape as far as code can bring it there, and what was changed."""

    value: Json
    changes: tuple[str, ...]


def fitted(value: Json, schema: Schema) -> Iterator[Reading]:
    """The readings of `value` as an instance of `schema`, the likeliest first; each may still lack what is required."""
    if schema.get("type") != "object" or not isinstance(value, list):
        yield _reading(value, schema, [])
        return
    lists = [name for name, part in schema.get("properties", {}).items() if part.get("type") == "array"]
    if len(lists) == 1:
        yield _reading({lists[0]: value}, schema, ["a list was given where an object was asked for"])
    objects = [item for item in value if isinstance(item, dict)]
    said = "an object was given within a list" if len(value) == 1 else "of several objects in a list the last that fits was taken"
    for item in reversed(objects):
        yield _reading(item, schema, [said])


def _reading(value: Json, schema: Schema, changes: list[str]) -> Reading:
    return Reading(_fit(value, schema, "", changes), tuple(changes))


def _fit(value: Json, schema: Schema, place: str, changes: list[str]) -> Json:
    if "enum" in schema:
        return _offered(value, [str(name) for name in schema["enum"]], place, changes)
    match schema.get("type"):
        case "object":
            return _object(value, schema, place, changes)
        case "array":
            return _array(value, schema, place, changes)
        case "number" | "integer":
            return _number(value, place, changes)
        case "string":
            return _text(value, place, changes)
    return value


def _object(value: Json, schema: Schema, place: str, changes: list[str]) -> Json:
    parts: Mapping[str, Schema] = schema.get("properties", {})
    if isinstance(value, list) and len(value) == 1:
        changes.append(f"{place or 'answer'}: a list of one was given where an object was asked for")
        value = value[0]
    if not isinstance(value, dict):
        return value
    known = {_plain(name): name for name in parts}
    named: dict[str, Json] = {}
    given: Mapping[str, Json] = value
    for name, part in given.items():
        meant: str = name if name in parts else known.get(_plain(name), name)
        if meant != name and meant not in value:
            changes.append(f"{_at(place, meant)}: was written {name!r}")
            named[meant] = part
        else:
            named.setdefault(name, part)
    if len(named) == 1 and not (named.keys() & parts.keys()) and isinstance(inner := next(iter(named.values())), dict):
        changes.append(f"{place or 'answer'}: stood within {next(iter(named))!r}")
        return _object(inner, schema, place, changes)
    return {name: _fit(part, parts[name], _at(place, name), changes) if name in parts else part for name, part in named.items()}


def _array(value: Json, schema: Schema, place: str, changes: list[str]) -> Json:
    items: Schema = schema.get("items", {})
    if isinstance(value, dict):
        if items.get("type") == "object" and not (value.keys() & items.get("properties", {}).keys()):
            if value and all(isinstance(part, dict) for part in value.values()):  # {"s1": {...}, "s2": {...}}
                changes.append(f"{place}: an object of objects was given where a list was asked for")
                value = list(value.values())
        else:
            changes.append(f"{place}: one thing was given where a list was asked for")
            value = [value]
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        value = [value] if value != "" else []  # which the answers' own classes do as well
    if not isinstance(value, list):
        return value
    if "enum" in items:
        return value  # names that are not offered are the step's own business: it leaves them out, or routes them
    return [_fit(item, items, f"{place}.{number}", changes) for number, item in enumerate(value)]


def _offered(value: Json, legal: list[str], place: str, changes: list[str]) -> Json:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str | int | float) or isinstance(value, bool) or value in legal:
        return value
    chosen, note = nearest(str(value), legal)
    if note:
        changes.append(f"{place}: {note}")
    return chosen


def _number(value: Json, place: str, changes: list[str]) -> Json:
    if not isinstance(value, str):
        return value
    found = _NUMBER.search(value)
    number = float(found[0].replace(",", ".")) if found else math.nan
    if not math.isfinite(number):
        return value
    changes.append(f"{place}: {value!r} was taken as {number:g}")
    return number


def _text(value: Json, place: str, changes: list[str]) -> Json:
    if isinstance(value, str) or value is None:
        return value
    changes.append(f"{place}: {_kind(value)} was given where text was asked for")
    return "\n".join(_leaves(value, _DEEPEST))


def _leaves(value: Json, depth: int) -> Iterator[str]:
    """The texts in a value, each behind its name where it has one."""
    if isinstance(value, dict) and depth:
        for name, part in value.items():
            texts = list(_leaves(part, depth - 1))
            yield f"{name}: {texts[0]}" if len(texts) == 1 else "\n".join([f"{name}:", *texts])
    elif isinstance(value, list) and depth:
        for part in value:
            yield from _leaves(part, depth - 1)
    elif value is not None and not isinstance(value, dict | list):
        yield str(value)


def _kind(value: Json) -> str:
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a number"


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
