"""From an answer's text to the JSON values in it: `values(completion, max_tokens)`, the last first.

Thinking, fences and prose around them are passed over; what cannot be seen is taken out (`legible.py`).  Raises Unusable for a
refusal, an empty answer, and one that was cut off: whatever that still holds would be a silently shorter list.  It knows no schema.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple, NoReturn

from taskweave.backbones.legible import is_blank, legible
from taskweave.records import Completion, Json

_SUSPECT = re.compile(r"\\[ubfr]|[^\t\n\x20-\x7e]")  # without these all of a text can be seen: JSON escapes the rest, or holds it
_DEEPEST = 40  # levels of an answer
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_START = re.compile(r"""\{\s*["'}]|\[\s*[\[{"']""")  # not: "I hope {this} helps", nor a footnote's [1]
_MOST_VALUES = 50  # of which an answer may be made; what repeats itself without end is none
MALFORMED = "the JSON was malformed and could be repaired"


class Unusable(ValueError):
    """An answer that holds no value; the message is what the model is told.  `form`: asking for another form may help."""

    def __init__(self, why: str, *, form: bool = False) -> None:
        super().__init__(why)
        self.form = form


class Found(NamedTuple):
    """A JSON value in an answer, and what had to be repaired for it ('' where nothing had)."""

    value: Json
    repaired: str = ""


def values(completion: Completion, max_tokens: int) -> list[Found]:
    """The JSON objects and lists in an answer, the last first; at least one.  Raises Unusable."""
    if completion.refusal:
        raise Unusable(f"refused: {legible(completion.refusal)}")
    if completion.finish == "length":
        raise Unusable(f"the answer was cut off at {max_tokens} tokens; be shorter")
    if completion.finish == "overflow":
        raise Unusable("the prompt is longer than the model can take")
    if completion.finish == "content_filter":
        raise Unusable("withheld by the provider's content filter")
    if completion.text is None or is_blank(completion.text):
        raise Unusable("the answer is empty", form=True)
    text = completion.text.strip()
    try:
        found = [Found(_read(text))]
    except (ValueError, RecursionError):
        found = _within(_said(text))[::-1]
    usable = [one for one in found if one.value and not _too_deep(one.value)]
    if not usable:
        raise Unusable("the answer is not a JSON object", form=True)
    return usable if _SUSPECT.search(text) is None else [Found(_clean(one.value), one.repaired) for one in usable]


def _said(text: str) -> str:
    """The text without thinking: what follows its last end, up to where it begins anew."""
    said = text
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            said = text[tag.end() :]
    begun = _THOUGHT.search(said)
    return said[: begun.start()] if begun else said


def _within(text: str) -> list[Found]:
    """The objects and lists that stand in a text, in order; the first that is malformed is repaired and ends them."""
    found: list[Found] = []
    at = 0
    while (start := _START.search(text, at)) is not None and len(found) < _MOST_VALUES:
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            try:
                found.append(Found(_mended(text[start.start() :]), MALFORMED))
            except Unusable:
                if not found:
                    raise
            break
        found.append(Found(value))
    if not found:
        raise Unusable("there is no JSON object in the answer", form=True)
    return found


def _mended(text: str) -> Json:
    """What a malformed object or list means.  Raises Unusable for one that is not complete, and for what is beyond repair."""
    text = text[: max(text.rfind("}"), text.rfind("]")) + 1]
    if _is_open(text):
        raise Unusable("the JSON stops before it is complete", form=True)
    import json_repair

    try:
        value = json_repair.loads(text)
    except (ValueError, RecursionError):
        raise Unusable("the answer is not JSON", form=True) from None
    if not isinstance(value, dict | list) or not value:
        raise Unusable("the answer is not a JSON object", form=True)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _read(text: str) -> Json:
    """A text that is JSON and nothing else: an object, or a list."""
    value = _DECODER.decode(text)
    if not isinstance(value, dict | list):
        raise Unusable("the answer is not a JSON object", form=True)
    return value


def _too_deep(value: Json) -> bool:
    """Whether objects and lists are nested more than _DEEPEST levels."""
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        inner = (part.values() if isinstance(part, dict) else part if isinstance(part, list) else () for part in level)
        level, depth = [one for parts in inner for one in parts if isinstance(one, dict | list)], depth + 1
    return bool(level)


def _clean(value: Json) -> Json:
    """Without what cannot be seen."""
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(part) for key, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


def _is_open(text: str) -> bool:
    """Whether a text, from a bracket to the last closing one, ends before that first bracket is closed."""
    if not text:
        return True
    depth, quoted, escaped = 0, False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
    return depth > 0 or quoted
