"""What a run may still take: dollars, tokens, hours.  Entry point: `Budget`, which the gateway asks before each send.

For every attempt in flight the most that it can take is held, and replaced by what it took when its answer is there; of one whose answer
never came that stays.  So nothing is sent that could exceed what is allowed, in this session or over all of them.
It knows no prices (`cost` does), and reads no clock: whoever asks says what time it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from taskweave.engine.promises import Ask
from taskweave.records import Request

REACHED = "budget"  # the word for a run that stopped because of it
Cost = Callable[[str, float, float], float]  # of (backbone, prompt tokens, completion tokens), in dollars; what was cached costs as much
_SHARE_KEPT, _MOST_KEPT = 0.1, 2.0  # of the hours, and in seconds: kept for giving up and writing that down
_QUICKEST = 0.05  # seconds in which nothing can be answered


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A bound that ended a run: the setting's name (`budget_usd`), what it allowed, and what would let the run go on.

    Of a bound on a share, also of how many answers until then (`asked`) and how many of them counted (`counted`).
    """

    option: str
    allowed: float
    enough: float
    asked: int = 0
    counted: int = 0


class Halt(Protocol):
    """Ends a run before its horizon: a word for why, the cause in words, and the bound that was reached, where one was."""

    def __call__(self, why: str, cause: str, bound: Bound | None = None) -> None: ...


class Usage(NamedTuple):
    """Tokens that a run's own calls of one backbone took; `lost` attempts took at most the last two."""

    backbone: str
    prompt: int
    completion: int
    lost: int
    lost_prompt: int
    lost_completion: int


class Short(NamedTuple):
    """Why a call must not be sent."""

    cause: str
    bound: Bound


class Taken(NamedTuple):
    """Dollars and tokens."""

    usd: float
    tokens: int


def reserve(request: Request) -> int:
    """The most tokens that a call can take, recorded with each attempt: no tokenizer makes more tokens of a text than it has bytes, and
    the answer is at most as long as the request allows.
    """
    asked = sum(len(role.encode()) + len(text.encode()) for role, text in request.messages)
    schema = 0 if request.schema is None else len(request.schema_text().encode())
    return asked + schema + request.sampling.max_tokens


class Budget:
    """`usd`, `tokens` and `hours` are what is allowed, None what is not bounded.

    `used` and `driven` (seconds) are of the sessions before this one, `slowest` the seconds that their slowest answer took.
    """

    def __init__(
        self,
        *,
        usd: float | None = None,
        tokens: int | None = None,
        hours: float | None = None,
        cost: Cost = lambda *_: 0.0,
        used: Iterable[Usage] = (),
        driven: float = 0.0,
        slowest: float = 0.0,
    ) -> None:
        self.usd, self.tokens, self.hours = usd, tokens, hours
        self._cost, self._driven, self._slowest = cost, driven, slowest
        self._held: dict[str, Taken] = {}
        self._began = 0.0
        self._spent = Taken(0.0, 0)
        self._lost = 0
        for one in used:
            self._take(self._taken(one.backbone, one.prompt, one.completion))
            self._take(self._taken(one.backbone, one.lost_prompt, one.lost_completion))
            self._lost += one.lost

    @property
    def spent(self) -> Taken:
        """By answers, and at the most by lost attempts; what is in flight is not in it."""
        return self._spent

    def begin(self, now: float) -> float | None:
        """A session begins; returns when everything must have ended (None: never)."""
        self._began = now
        return self._ends

    def short(self, ask: Ask, now: float) -> Short | None:
        """Why this ask must not be sent now; None where it may."""
        need = self._need(ask)
        usd, tokens = self._spent.usd, self._spent.tokens
        if self.usd is not None and need.usd > 0 and usd + sum(one.usd for one in self._held.values()) + need.usd > self.usd:
            said = f"${usd:.4g} of the ${self.usd:g} that are allowed are spent{self._with_lost}"
            return _short("budget_usd", self.usd, usd + need.usd, f"{said}, and the next call can take up to ${need.usd:.4g}")
        if self.tokens is not None and tokens + sum(one.tokens for one in self._held.values()) + need.tokens > self.tokens:
            said = f"{tokens:,} of the {self.tokens:,} tokens that are allowed are spent{self._with_lost}"
            return _short("budget_tokens", self.tokens, tokens + need.tokens, f"{said}, and the next call can take up to {need.tokens:,}")
        if self._ends is not None and now + max(self._slowest, _QUICKEST) > self._ends:
            return self.over(now, 0)
        return None

    def over(self, now: float, given_up: int) -> Short:
        """Why nothing is sent any more, `given_up` calls having been in flight at the end."""
        assert self.hours is not None
        over = self._driven + now - self._began
        said = f"{over / 3600:.3g} of the {self.hours:g} hours that are allowed are over"
        if self._slowest and not given_up:
            said += f", and an answer has taken up to {self._slowest:.1f} s"
        if given_up:
            said += f", and {given_up} call{'s' if given_up > 1 else ''} in flight {'were' if given_up > 1 else 'was'} given up"
        return _short("budget_hours", self.hours, (over + self._slowest) / 3600, said)

    def hold(self, ask: Ask) -> None:
        """An attempt is sent."""
        self._held[ask.key] = self._need(ask)

    def landed(self, ask: Ask, prompt: int, completion: int, seconds: float) -> None:
        """Its answer is there, and took so many tokens and seconds."""
        assert ask.request is not None
        del self._held[ask.key]
        self._take(self._taken(ask.request.backbone, prompt, completion))
        self._slowest = max(self._slowest, seconds)

    def lost(self, ask: Ask) -> None:
        """Its answer, if there is one, will never be seen."""
        self._take(self._held.pop(ask.key))
        self._lost += 1

    def release(self, ask: Ask) -> None:
        """It has taken nothing."""
        del self._held[ask.key]

    # ---------------------------------------------------------------- inside
    @property
    def _ends(self) -> float | None:
        if self.hours is None:
            return None
        seconds = 3600 * self.hours
        return self._began - self._driven + seconds - min(_MOST_KEPT, _SHARE_KEPT * seconds)

    @property
    def _with_lost(self) -> str:
        return f" ({self._lost:,} lost call{'s' if self._lost > 1 else ''} counted at the most)" if self._lost else ""

    def _need(self, ask: Ask) -> Taken:
        """The most that it can take, of which the ask's estimate is the sum."""
        assert ask.request is not None, "look-ups take nothing"
        longest = ask.request.sampling.max_tokens
        return self._taken(ask.request.backbone, ask.estimate - longest, longest)

    def _taken(self, backbone: str, prompt: int, completion: int) -> Taken:
        return Taken(0.0 if self.usd is None else self._cost(backbone, prompt, completion), prompt + completion)

    def _take(self, taken: Taken) -> None:
        self._spent = Taken(self._spent.usd + taken.usd, self._spent.tokens + taken.tokens)


def _short(option: str, allowed: float, needed: float, said: str) -> Short:
    enough = rounded_up(max(2 * allowed, needed))
    cause = f"{said}. To let it go on, allow --{option.replace('_', '-')} {enough:.12g}"
    return Short(cause, Bound(option=option, allowed=allowed, enough=enough))


def rounded_up(number: float) -> float:
    """The next number above, or this one, that two digits can say: 0.1234 -> 0.13."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / step - 1e-9) * step:.12g}")
