"""A server's schema of a tool's arguments, as an endpoint may be given it: `tamed`.  Arguments held against that: `checked`.

What a server writes is not trusted: names, depth and size are bounded, words for people are left out, and references are resolved.  Every
argument is required, as strict endpoints want it: one that may be left out may be null.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from taskweave.errors import ToolRefused
from taskweave.records import Json, canonical

MOST_DEPTH, MOST_NAMES, MOST_SCHEMA = 5, 30, 6_000  # levels, arguments of an object, characters of the whole
MOST_LOOKED = 60  # names of an object that are looked at, to find those that can be said
MOST_CHOICES, MOST_VARIANTS = 50, 4
MOST_TEXT, MOST_ITEMS, MOST_ARGUMENTS = 8_000, 200, 16_000  # characters of a text, items of a list, characters of all arguments
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_SCALARS = ("string", "integer", "number", "boolean", "null")
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
NULL: dict[str, Json] = {"type": "null"}


def tamed(schema: Json) -> dict[str, Json]:
    """The schema of an object with these arguments; raises ValueError for one that is too large, or asks for what cannot be said."""
    whole = schema if isinstance(schema, Mapping) else {}
    told = _object(whole, whole, MOST_DEPTH)
    if told is None:
        raise ValueError("it needs an argument that no schema here can say")
    if len(canonical(told)) > MOST_SCHEMA:
        raise ValueError(f"its arguments take more than {MOST_SCHEMA:,} characters to say")
    return told


def _node(schema: Json, whole: Mapping[str, Json], depth: int) -> dict[str, Json] | None:
    """One value's schema; None where nothing is said of it that could be asked for."""
    if not isinstance(schema, Mapping) or depth < 0:
        return None
    if isinstance(schema.get("$ref"), str):
        return _node(_referred(schema["$ref"], whole), whole, depth - 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(word), list):
            return _any_of(schema[word], whole, depth, all_of=word == "allOf")
    if "const" in schema:
        schema = {"enum": [schema["const"]]}
    if isinstance(schema.get("enum"), list):
        choices = [one for one in schema["enum"] if one is None or isinstance(one, bool | int | float | str)]
        return {"enum": choices[:MOST_CHOICES]} if choices and all(len(str(one)) <= 200 for one in choices) else None
    kind = schema.get("type")
    if isinstance(kind, list):
        return _any_of([{**schema, "type": one} for one in kind], whole, depth, all_of=False)
    if kind in _SCALARS:
        return {"type": kind, **_bounds(schema)}
    if kind == "array":
        items = _node(schema.get("items"), whole, depth - 1)
        return None if items is None else {"type": "array", "items": items, **_bounds(schema)}
    return _object(schema, whole, depth) if kind == "object" or "properties" in schema else None


def _bounds(schema: Mapping[str, Json]) -> dict[str, Json]:
    return {name: schema[name] for name in _BOUNDS if isinstance(schema.get(name), int | float) and not isinstance(schema[name], bool)}


def _any_of(variants: list[Json], whole: Mapping[str, Json], depth: int, *, all_of: bool) -> dict[str, Json] | None:
    if all_of and len(variants) != 1:
        return None
    told = [one for variant in variants[:MOST_VARIANTS] if (one := _node(variant, whole, depth - 1)) is not None]
    if not told:
        return None
    return told[0] if len(told) == 1 else {"anyOf": told}


def _object(schema: Mapping[str, Json], whole: Mapping[str, Json], depth: int) -> dict[str, Json] | None:
    given = schema.get("properties")
    # References make little text long: each name may lead to all of them again.
    properties: Mapping[str, Json] = dict(islice(given.items(), MOST_LOOKED)) if isinstance(given, Mapping) else {}
    wanted = schema.get("required")
    required = set(map(str, wanted)) if isinstance(wanted, list) else set()
    found: dict[str, Json] = {}
    for name, value in properties.items():
        told = _node(value, whole, depth - 1) if _NAME.fullmatch(name) and len(found) < MOST_NAMES else None
        if told is None and name in required:
            return None
        if told is not None:
            found[name] = told if name in required else _or_null(told)
    if required - properties.keys() or (not properties and schema is not whole):
        return None
    return {"type": "object", "properties": found, "required": list(found), "additionalProperties": False}


def _or_null(schema: dict[str, Json]) -> dict[str, Json]:
    variants: list[Json] = schema.get("anyOf", [schema])
    return {"anyOf": variants if NULL in variants else [*variants, NULL]}


def _referred(reference: str, whole: Mapping[str, Json]) -> Json:
    """What a reference within the schema names; None where it leads elsewhere."""
    place: Json = whole
    for part in reference.removeprefix("#/").split("/") if reference.startswith("#/") else [""]:
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


# ---------------------------------------------------------------- arguments
def checked(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments without those that are null; raises ToolRefused with what is wrong and where."""
    value: dict[str, Json] = _held("", schema, dict(arguments))
    if len(canonical(value)) > MOST_ARGUMENTS:
        raise ToolRefused(f"the arguments are longer than {MOST_ARGUMENTS:,} characters")
    return value


def _held(at: str, schema: Mapping[str, Json], value: Json) -> Json:
    if "anyOf" in schema:
        return _held_to_one(at, schema["anyOf"], value)
    if "enum" in schema:
        if not any(value == one and type(value) is type(one) for one in schema["enum"]):
            raise ToolRefused(f"{at}: must be one of {', '.join(map(str, schema['enum'][:12]))}")
        return value
    kind = schema["type"]
    if not _is(kind, value):
        raise ToolRefused(f"{at or 'arguments'}: must be of the type {kind}")
    if kind == "object":
        return _held_object(at, schema, value)
    size = value if kind in ("integer", "number") else len(value) if kind in ("string", "array") else 0
    if kind in ("string", "array"):
        most = MOST_TEXT if kind == "string" else MOST_ITEMS
        if size > most:
            raise ToolRefused(f"{at}: has more than {most:,} {'characters' if kind == 'string' else 'items'}")
    for bound in _BOUNDS:
        if bound in schema and (size < schema[bound] if bound.startswith("min") else size > schema[bound]):
            raise ToolRefused(f"{at}: {bound} is {schema[bound]}")
    return [_held(f"{at}.{n}", schema["items"], one) for n, one in enumerate(value)] if kind == "array" else value


def _held_to_one(at: str, variants: list[dict[str, Json]], value: Json) -> Json:
    refusals = []
    for variant in variants:
        try:
            return _held(at, variant, value)
        except ToolRefused as refused:
            refusals.append(str(refused))
    raise ToolRefused(refusals[0])


def _held_object(at: str, schema: Mapping[str, Json], value: Mapping[str, Json]) -> dict[str, Json]:
    properties: Mapping[str, dict[str, Json]] = schema["properties"]
    path = f"{at}." if at else ""
    if unknown := [name for name in value if name not in properties]:
        raise ToolRefused(f"{path}{unknown[0][:100]}: is no argument. It takes: {', '.join(properties) or 'nothing'}")
    found: dict[str, Json] = {}
    for name, wanted in properties.items():
        given = value.get(name)
        if given is None and NULL in wanted.get("anyOf", ()):
            continue
        if name not in value:
            raise ToolRefused(f"{path}{name}: is missing. It takes: {', '.join(properties)}")
        found[name] = _held(f"{path}{name}", wanted, given)
    return found


def _is(kind: str, value: Json) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])
