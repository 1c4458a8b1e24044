"""What does a file in the inbox hold?  One JSON object of bounded size and depth, whatever else lies there.

Entry points: `read_payload`, and `set_aside` for what is no use.  It refuses to know what the object means.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from pathlib import Path

from taskweave.errors import BadInput
from taskweave.records import Json, canonical

MOST_BYTES = 1_000_000  # of a file in the inbox
MOST_DEPTH = 20  # of its nesting
MOST_DIGITS = 18  # of a whole number in it, which SQLite can hold
MOST_SHOWN = 40  # characters of a value in it that is no use
MOST_SAID = 1000  # characters of why it cannot be used
_TOO_DEEP = f"the file is nested more than {MOST_DEPTH} deep"


def set_aside(file: Path, why: str, content: str | None = None) -> None:
    """Leave NAME.rejected with the reason in NAME.why beside it: the file itself, or its `content` where it has been taken."""
    with contextlib.suppress(OSError):
        file.with_suffix(".why").write_text(why + "\n", encoding="utf-8")
        if content is None:
            file.rename(file.with_suffix(".rejected"))
        else:
            file.with_suffix(".rejected").write_text(content, encoding="utf-8")


def _bytes_of(file: Path) -> bytes:
    """The content of a plain file of bounded size: a pipe, a device or a link would block the clock, or never end."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInput("only a plain file is taken from the inbox")
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadInput(f"the file is larger than {MOST_BYTES:,} bytes")
    return data


def _depth(value: Json) -> int:
    """How deep lists and objects are nested; at most one more than is allowed is looked at."""
    depth, level = 0, [value]
    while level and depth <= MOST_DEPTH:
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())]
        depth += bool(level)
    return depth


def read_payload(file: Path) -> dict[str, Json]:
    """A JSON object, with "tick" a whole number where it is named; BadInput with the reason otherwise."""
    try:
        file.name.encode()
    except UnicodeEncodeError as trouble:
        raise BadInput("the file's name is not UTF-8 text, and an injection is called by it; give it another") from trouble
    try:
        value = json.loads(_bytes_of(file).decode("utf-8-sig"), parse_constant=_no_constant, parse_int=_whole, parse_float=_finite)
        canonical(value).encode()
    except OSError as trouble:
        raise BadInput(f"the file cannot be read: {trouble.strerror}") from trouble
    except UnicodeDecodeError as trouble:
        raise BadInput(f"the file is not UTF-8 text: byte {trouble.start + 1} begins no character") from trouble
    except UnicodeEncodeError as trouble:
        raise BadInput(f"the file is not UTF-8 text: \\u{ord(trouble.object[trouble.start]):04x} is half a character") from trouble
    except json.JSONDecodeError as trouble:
        raise BadInput(f"the file is not JSON: {trouble.msg} at line {trouble.lineno}, column {trouble.colno}") from trouble
    except RecursionError as trouble:
        raise BadInput(_TOO_DEEP) from trouble
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
        raise BadInput(f"the file must hold one JSON object, not {kind}")
    if _depth(value) > MOST_DEPTH:
        raise BadInput(_TOO_DEEP)
    tick = value.get("tick", 0)
    if not isinstance(tick, int) or isinstance(tick, bool):
        raise BadInput(f"'tick' must be the number of a working day, not {json.dumps(tick, ensure_ascii=False)[:MOST_SHOWN]}")
    return value


def shown(why: str) -> str:
    return why if len(why) <= MOST_SAID else f"{why[:MOST_SAID]}… (and {len(why) - MOST_SAID} characters more)"


def _no_constant(name: str) -> Json:
    raise BadInput(f"the file is not JSON: {name} is no number there")


def _whole(digits: str) -> int:
    if len(digits.removeprefix("-")) > MOST_DIGITS:
        raise BadInput(f"the file holds a number of {len(digits.removeprefix('-')):,} digits; at most {MOST_DIGITS} are taken")
    return int(digits)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise BadInput(f"the file holds a number that is too large: {text[:MOST_SHOWN]}")
    return number
