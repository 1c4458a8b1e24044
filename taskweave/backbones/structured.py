"""The ladder: how a prompt becomes a value.  Read the JSON, validate it, ask once more, and else fall back.

`ask(ctx, request, parse, fallback)` is the only way from a prompt to a value.  A model that answers badly is a finding and not a
crash: what cannot be repaired becomes a fallback with its reason.  What is asked next depends on answers alone, which are journaled:
never on what an endpoint has refused.  It knows no backbone and no step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from taskweave.backbones.fitting import fitted
from taskweave.backbones.reading import Unusable, values
from taskweave.cutting import cut
from taskweave.records import Completion, Json, Mark, Origin, Quality, Request

T = TypeVar("T")
U = TypeVar("U")
_ERROR_TOKENS = 80
_ANSWER_TOKENS = 200  # of a bad answer, shown to the model that is asked again
_SHOWN_ERRORS = 3
MOST_CUTS = 2  # a prompt that is longer than the model can take is cut to a half, then to a quarter
_LOWEST = 2  # rungs below the highest: json_schema, json_object, plain
_MORE_ROOM = 2  # an answer that was cut off may be so many times longer when it is asked for again


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
    """A value, and how it came about: `reason` says what was wrong where quality is not ok, `changes` what code changed in the value.

    `items` has a mark for each item of a value that is a list whose items were asked for one by one.
    """

    value: T
    quality: Quality
    reason: str
    calls: tuple[CallRow, ...]
    origin: Origin
    changes: tuple[str, ...] = ()
    items: tuple[Mark, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All that is to be recorded of how the value came about."""
        return (self.reason, *self.changes) if self.reason else self.changes

    def with_value(self, value: U, changes: Sequence[str] = ()) -> Answered[U]:
        """The same answer with another value made of it; a value that code had to change is a repaired one."""
        quality: Quality = "repaired" if changes and self.quality == "ok" else self.quality
        return Answered(
            value=value,
            quality=quality,
            reason=self.reason,
            calls=self.calls,
            origin=self.origin,
            changes=(*self.changes, *changes),
            items=self.items,
        )


async def ask(
    ctx: Asker,
    request: Request,
    parse: Callable[[Json], T],
    fallback: Callable[[], T],
    shrink: Callable[[int], Request] | None = None,
) -> Answered[T]:
    """The value that `parse` makes of the answer's JSON, after at most one more try, else `fallback()`.

    `parse` raises ValueError (as pydantic does) for what it will not take.  `shrink(n)` is the request cut to about 1 / 2**n of its
    budgets: it is asked instead where the model cannot take the prompt, at most MOST_CUTS times.
    """
    calls: list[CallRow] = []
    reasons: list[str] = []
    base = asked = request
    cuts = tries = 0
    while True:
        completion = await ctx.complete(asked)
        try:
            value, changed = _value(completion, asked, parse)
        except ValueError as trouble:
            reasons.append(compact(trouble))
            shorter = shrink(cuts + 1) if completion.finish == "overflow" and shrink is not None and cuts < MOST_CUTS else None
            if shorter is not None and shorter.messages != base.messages:
                calls.append(_row(ctx, asked, completion, fallback=False, reason=reasons[-1]))
                base, asked, cuts = shorter, shorter, cuts + 1
                continue
            tries += 1
            last = tries > 1 or completion.finish == "overflow"
            calls.append(_row(ctx, asked, completion, fallback=last, reason=reasons[-1]))
            if last:
                break
            asked = _again(base, asked, completion, trouble, reasons[-1])
            continue
        calls.append(_row(ctx, asked, completion, fallback=False, reason="" if reasons else "; ".join(changed)))
        reason = "; ".join([*dict.fromkeys(reasons), *changed])
        return Answered(
            value=value,
            quality="repaired" if reason else "ok",
            reason=reason,
            calls=tuple(calls),
            origin=origin_of(request.backbone),
        )
    return Answered(
        value=fallback(), quality="fallback", reason="; asked again: ".join(dict.fromkeys(reasons)), calls=tuple(calls), origin="fallback"
    )


def _value(completion: Completion, request: Request, parse: Callable[[Json], T]) -> tuple[T, tuple[str, ...]]:
    """The value in an answer, and what was changed for it: of several JSON values the last that fits.  Raises ValueError."""
    found = values(completion, request.sampling.max_tokens)
    several = ("of several JSON objects the last that fits was taken",) if len(found) > 1 else ()
    first: ValueError | None = None
    for one in found:
        repaired = (one.repaired,) if one.repaired else ()
        if isinstance(one.value, dict):
            try:
                return parse(one.value), (*repaired, *several)
            except ValueError as trouble:
                first = first or trouble
        for value, changes in fitted(one.value, request.schema or {}):
            if not isinstance(value, dict):
                continue
            try:
                return parse(value), (*repaired, *several, *map(_short, changes))
            except ValueError as trouble:
                first = first or trouble
    raise first or Unusable("the answer is not a JSON object", form=True)


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
        rung=completion.rung or ("plain" if request.schema is None else "json_schema"),
        fallback=fallback,
        reason=reason,
    )


def _again(base: Request, asked: Request, completion: Completion, trouble: ValueError, error: str) -> Request:
    """The same request with the bad answer and what was wrong with it; roles alternate, as some chat templates demand.

    It is asked for one rung lower where the answer had no form at all, with more room where it was cut off.
    """
    said = cut(completion.text or "", _ANSWER_TOKENS).strip() or "(no answer)"
    lower = isinstance(trouble, Unusable) and trouble.form and base.schema is not None
    sampling = base.sampling
    if completion.finish == "length":
        sampling = replace(sampling, max_tokens=_MORE_ROOM * sampling.max_tokens)
    return replace(
        base,
        messages=(*base.messages, ("assistant", said), ("user", _reask().format(error=error).strip())),
        sampling=sampling,
        lowered=min(asked.lowered + 1, _LOWEST) if lower else asked.lowered,
    )


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


def _short(change: str) -> str:
    return cut(change, _ERROR_TOKENS)
