"""How a text becomes a value: read the JSON, validate it, ask once more, and else fall back.

`ask(ctx, request, parse, fallback)` is the only way from a prompt to a value.  A model that answers badly is a finding and not a
crash: what cannot be repaired becomes a fallback with its reason.  It knows no backbone and no step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, NoReturn, Protocol, TypeVar

from pydantic import ValidationError

from taskweave.cutting import cut
from taskweave.records import Completion, Json, Origin, Quality, Request

T = TypeVar("T")
U = TypeVar("U")
_ERROR_TOKENS = 80
_ANSWER_TOKENS = 200  # of a bad answer, shown to the model that is asked again
_SHOWN_ERRORS = 3
_UNPAIRED = re.compile("[\ud800-\udfff\x00]")


class Asker(Protocol):
    """What `ask` needs of a work's context; `ordinal` and `latency` are those of the completion that returned last."""

    @property
    def site(self) -> str: ...
    @property
    def draw(self) -> int: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def latency(self) -> float: ...
    async def complete(self, request: Request) -> Completion: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRow:
    """One completion for the table `calls`.  Tokens are the provider's, or counted here where it reports none; latency is in seconds."""

    site: str
    ordinal: int
    draw: int
    prompt: str
    backbone: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    latency: float
    rung: str
    fallback: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered(Generic[T]):
    """A value, and how it came about: `reason` says what was wrong where quality is not ok, `changes` what code changed in the value."""

    value: T
    quality: Quality
    reason: str
    calls: tuple[CallRow, ...]
    origin: Origin
    changes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All that is to be recorded of how the value came about."""
        return (self.reason, *self.changes) if self.reason else self.changes

    def with_value(self, value: U, changes: Sequence[str] = ()) -> Answered[U]:
        """The same answer with another value made of it; a value that code had to change is a repaired one."""
        quality: Quality = "repaired" if changes and self.quality == "ok" else self.quality
        return Answered(
            value=value, quality=quality, reason=self.reason, calls=self.calls, origin=self.origin, changes=(*self.changes, *changes)
        )


class Unusable(ValueError):
    """An answer that holds no value; the message is what the model is told."""


async def ask(ctx: Asker, request: Request, parse: Callable[[Json], T], fallback: Callable[[], T]) -> Answered[T]:
    """The value that `parse` makes of the answer's JSON, after at most one more try, else `fallback()`.

    `parse` raises ValueError (as pydantic does) for what it will not take.
    """
    calls: list[CallRow] = []
    reasons: list[str] = []
    asked = request
    for last in (False, True):
        completion = await ctx.complete(asked)
        try:
            found, repaired = read_json(completion, request.sampling.max_tokens)
            value = parse(found)
        except ValueError as trouble:
            reasons.append(compact(trouble))
            calls.append(_row(ctx, asked, completion, fallback=last, reason=reasons[-1]))
            asked = _again(request, completion, reasons[-1])
            continue
        reason = reasons[-1] if reasons else repaired
        calls.append(_row(ctx, asked, completion, fallback=False, reason="" if reasons else reason))
        quality: Quality = "repaired" if reason else "ok"
        return Answered(value=value, quality=quality, reason=reason, calls=tuple(calls), origin=origin_of(request.backbone))
    reason = reasons[0] if reasons[0] == reasons[1] else f"{reasons[0]}; asked again: {reasons[1]}"
    return Answered(value=fallback(), quality="fallback", reason=reason, calls=tuple(calls), origin="fallback")


def origin_of(backbone: str) -> Origin:
    """What a result's text comes from, by the identity of the backbone that a request carries."""
    return "scripted" if backbone.partition(":")[0] == "scripted" else "model"


def _row(ctx: Asker, request: Request, completion: Completion, *, fallback: bool, reason: str) -> CallRow:
    prompt, answer = completion.tokens(request)
    return CallRow(
        site=ctx.site,
        ordinal=ctx.ordinal,
        draw=ctx.draw,
        prompt=request.prompt,
        backbone=request.backbone,
        prompt_tokens=prompt,
        completion_tokens=answer,
        cached_tokens=completion.cached_tokens or 0,
        latency=ctx.latency,
        rung="plain" if request.schema is None else "json_schema",
        fallback=fallback,
        reason=reason,
    )


def _again(request: Request, completion: Completion, error: str) -> Request:
    """The same request with the bad answer and what was wrong with it; roles alternate, as some chat templates demand."""
    said = cut(completion.text or "", _ANSWER_TOKENS).strip() or "(no answer)"
    return replace(request, messages=(*request.messages, ("assistant", said), ("user", _reask().format(error=error).strip())))


@lru_cache(maxsize=1)
def _reask() -> str:
    return (Path(__file__).parent / "reask.txt").read_text(encoding="utf-8")


def compact(trouble: ValueError) -> str:
    """An error in one short line: for pydantic's, the place and the complaint of the first few."""
    if not isinstance(trouble, ValidationError):
        return cut(" ".join(str(trouble).split()), _ERROR_TOKENS)
    errors = trouble.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in errors[:_SHOWN_ERRORS]]
    rest = len(errors) - len(said)
    return cut("; ".join(said) + (f"; … and {rest} more" if rest else ""), _ERROR_TOKENS)


# ---------------------------------------------------------------- from text to JSON
def read_json(completion: Completion, max_tokens: int) -> tuple[Json, str]:
    """The JSON object in an answer, and what had to be repaired or left out for it ('' where nothing had).

    Thinking before it, a code fence or prose around it are passed over.  Raises Unusable for a refusal, an empty answer, one that
    was cut off (whatever it still holds would be a silently shorter list), and text without an object.
    """
    if completion.refusal:
        raise Unusable(f"refused: {completion.refusal}")
    if completion.finish == "length":
        raise Unusable(f"the answer was cut off at {max_tokens} tokens; be shorter")
    if completion.finish == "overflow":
        raise Unusable("the prompt is longer than the model can take")
    if completion.finish == "content_filter":
        raise Unusable("withheld by the provider's content filter")
    if completion.text is None or not completion.text.strip():
        raise Unusable("the answer is empty")
    text = completion.text.strip()
    try:
        return _object(text), ""
    except (ValueError, RecursionError):
        return _object_within(text.rpartition("</think>")[2])


def _object_within(text: str) -> tuple[Json, str]:
    """The object that begins at the first brace."""
    before, brace, text = text.partition("{")
    if not brace or "<think>" in before:
        raise Unusable("there is no JSON object in the answer")
    text = brace + text
    try:
        _, end = _DECODER.raw_decode(text)
        found, rest = _object(text[:end]), text[end:]
        if before.count("[") > rest.count("]"):
            raise Unusable("the JSON stops before it is complete")
        return found, "of several JSON objects the first was taken" if _ANOTHER.search(rest) else ""
    except Unusable:
        raise
    except (ValueError, RecursionError):
        text = text[: text.rfind("}") + 1]
    if _is_open(text):
        raise Unusable("the JSON stops before it is complete")
    import json_repair

    try:
        return _checked(json_repair.loads(text)), "the JSON was malformed and could be repaired"
    except (ValueError, RecursionError):
        raise Unusable("the answer is not JSON") from None


_ANOTHER = re.compile(r'\{\s*"')  # not: "I hope {this} helps"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _object(text: str) -> Json:
    return _checked(_DECODER.decode(text), clean=text.isascii() and "\\u" not in text)


def _checked(value: Json, *, clean: bool = False) -> Json:
    """The value if it is an object; `clean` says that no string in it can hold what must not be there."""
    if not isinstance(value, dict) or not value:
        raise Unusable("the answer is not a JSON object")
    return value if clean else _clean(value)


def _clean(value: Json) -> Json:
    """Without half characters and NUL, which JSON can escape and a database cannot hold."""
    if isinstance(value, str):
        return _UNPAIRED.sub("", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(part) for key, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


def _is_open(text: str) -> bool:
    """Whether a text, from a brace to the last closing one, ends before that first brace is closed."""
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
