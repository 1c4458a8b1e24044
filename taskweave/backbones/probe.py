"""What can an endpoint do?  A few small questions of its own, asked one after the other and bounded in time.

Entry points: `probe`, all that can be found out in about half a minute; `look`, what a run must know before it begins.  Both work with
any object that has `complete`.  They decide nothing and keep nothing: what was found, what was sent and what it took is the answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from taskweave.backbones import calling
from taskweave.backbones.calling import CALLED
from taskweave.backbones.dialect import RUNGS, TOOLS
from taskweave.backbones.probed import Probed, Rung, now, style_for
from taskweave.backbones.reach import Canary, Reach, reach, whole
from taskweave.backbones.reading import values
from taskweave.errors import Refused, Transient
from taskweave.records import Backbone, Completion, Json, Request, Sampling, StyleName, tokens

SITE = "look"  # where a run's journal keeps what was asked before it began
LENGTHS = (1_000, 2_000, 4_000, 8_000, 16_000)  # tokens of the prompts that look for the context
FLIGHTS = (1, 8, 16)  # so many requests at once, to measure how fast they are answered
SECONDS = 30.0
A_CALL = 15.0  # seconds that one question of a look may take
_RUNGS: tuple[Rung, ...] = get_args(Rung)
# By which share of the time each part must have ended.  The first answer may have to wait until a server has loaded the model.
_ENDS = {"answers": 0.5, "rung": 0.55, "tools": 0.6, "seed": 0.68, "context": 0.8, "rates": 1.0}
_REPEATED = 200  # tokens that the answer with the code word may take: some think aloud
_WRITTEN = 150
_PROMPT = 1_000
_NEAR = 500  # tokens: closer than that the context is not looked for
_BETWEEN = 2  # questions, at most, between what was seen and what was not


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """One question, and its answer or how it ended: retry, refused, or unknown (it may have been answered, and billed)."""

    request: Request
    completion: Completion | None
    seconds: float
    how: Literal["outcome", "retry", "refused", "unknown"] = "outcome"
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a look found and what it took.

    `trouble` is why nothing could be found, in the provider's words ("" where it answered).  `notes` say, by part (listed, rung, tools,
    seed, context, rates), what was seen beyond the record, or why it is not known.
    """

    probed: Probed
    sent: tuple[Sent, ...]
    seconds: float
    trouble: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Of what was answered: as the provider counts, else by the rule of the house."""
        return sum(one.completion.tokens(one.request)[0] for one in self.sent if one.completion is not None)

    @property
    def completion_tokens(self) -> int:
        """Likewise, of the answers."""
        return sum(one.completion.tokens(one.request)[1] for one in self.sent if one.completion is not None)


async def probe(backbone: Backbone, *, base_url: str | None, seconds: float = SECONDS) -> Found:
    """Everything that `Probed` has a place for, within about so many seconds; what was not finished by then says so.

    At most 40 calls and, where all goes well, about 57,000 prompt tokens: 31,000 to find the context, 25,000 to measure the pace.
    """
    asking = _Asking(backbone, base_url, seconds)
    await asking.listing()
    try:
        await asking.canary(0, asking.end("answers"))
    except (Transient, Refused) as trouble:
        return asking.found(str(trouble))
    for name, part in (
        *(("rung", asking.rungs), ("tools", asking.calls), ("seed", asking.seeds)),
        *(("context", asking.search), ("rates", asking.pace)),
    ):
        try:
            await part(asking.end(name))
        except (Transient, Refused) as trouble:
            asking.say(name, str(trouble))
    return asking.found()


async def look(backbone: Backbone, *, base_url: str | None, full: int, compact: int, style: StyleName | None) -> Found:
    """What a run must know: which form of structured answer holds, and whether a prompt of its style's longest is seen whole.

    `full` and `compact` are those lengths in tokens.  Mostly two calls, at most six of up to fifteen seconds each.  Any trouble, also one
    that may pass, ends it: the run that begins meets it again, and knows how to wait.
    """
    asking = _Asking(backbone, base_url, 0.0)
    try:
        await asking.listing()
        await asking.rungs(None)
        lengths = [compact] if style == "compact" or (style is None and asking.style() == "compact") else [full, compact]
        for length in lengths:
            if await asking.canary(length, None):
                break
        if not asking.repeats():
            await asking.canary(0, None)  # whether it can at all
    except (Transient, Refused) as trouble:
        return asking.found(str(trouble))
    return asking.found()


class _Late(Transient):
    """Nobody waited any longer."""


class _Asking:
    """One look: what was sent so far, and what is known from it."""

    def __init__(self, backbone: Backbone, base_url: str | None, seconds: float) -> None:
        self._backbone, self._base_url, self._seconds = backbone, base_url, seconds
        self._clock = time.monotonic
        self._began = self._clock()
        self._draw = Random(f"probe:{time.time_ns()}")
        self._sent: list[Sent] = []
        self._canaries: list[Canary] = []
        self._notes: dict[str, str] = {}
        self._models: list[str] = []
        self._listed: bool | None = None
        self._rung: Rung | None = None
        self._structured: bool | None = None
        self._tools: bool | None = None
        self._seed_repeats: bool | None = None
        self._rates: dict[str, float] = {}

    def end(self, part: str) -> float:
        """When a part must have ended."""
        return self._began + self._seconds * _ENDS[part]

    def say(self, part: str, what: str) -> None:
        self._notes[part] = f"{self._notes[part]}; {what}" if part in self._notes else what

    def style(self) -> StyleName:
        """As a backbone says of itself, else as suits what was found."""
        found = self._reach()
        own: StyleName | None = getattr(self._backbone, "style", None)
        return own or style_for(rung=self._rung, structured=self._structured, context=found.context, limit=found.limit)

    def repeats(self) -> bool:
        """Whether a code word was repeated."""
        return any(one.repeated for one in self._canaries)

    def found(self, trouble: str = "") -> Found:
        answers = [one.completion for one in self._sent if one.completion is not None]
        counted = [one.prompt_tokens is not None for one in answers if one.finish != "overflow"]
        known = self._reach()
        probed = Probed(
            backbone=self._backbone.name,
            base_url=self._base_url,
            at=now(),
            listed=self._listed,
            context=known.context,
            limit=known.limit,
            cut=known.cut,
            usage=all(counted) if counted else None,
            rung=self._rung,
            structured=self._structured,
            tools=self._tools,
            seed_repeats=self._seed_repeats,
            omitted=tuple(sorted({name for one in answers for name in one.omitted})),
            rates=self._rates,
            style=self.style(),
        )
        return Found(
            probed=probed,
            sent=tuple(self._sent),
            seconds=self._clock() - self._began,
            trouble=trouble,
            notes=self._notes,
            models=tuple(self._models),
        )

    # ---------------------------------------------------------------- asking
    async def ask(
        self,
        text: str,
        end: float | None,
        *,
        schema: Mapping[str, Json] | None = None,
        temperature: float = 0.0,
        most: int,
        seed: int = 1,
        lowered: int = 0,
    ) -> Completion:
        """One question, to be answered by `end`.  Raises Transient, also where the time is over, or Refused."""
        request = Request(
            prompt="probe",
            version=1,
            inputs={},
            messages=(("user", text),),
            schema=schema,
            sampling=Sampling(temperature=temperature, max_tokens=most),
            backbone=self._backbone.name,
            seed=seed,
            lowered=lowered,
        )
        began = self._clock()
        seconds = A_CALL if end is None else end - began
        if seconds <= 0:
            raise _Late("there was no time left for it")
        try:
            async with asyncio.timeout(seconds):
                completion = await self._backbone.complete(request)
        except TimeoutError:
            self._ended(request, began, "unknown", late := f"no answer within {seconds:.1f} s")
            raise _Late(late) from None
        except Transient as trouble:
            self._ended(request, began, "unknown" if trouble.billed else "retry", str(trouble))
            raise
        except Refused as trouble:
            self._ended(request, began, "refused", str(trouble))
            raise
        self._sent.append(Sent(request=request, completion=completion, seconds=self._clock() - began))
        return completion

    def _ended(self, request: Request, began: float, how: Literal["retry", "refused", "unknown"], why: str) -> None:
        self._sent.append(Sent(request=request, completion=None, seconds=self._clock() - began, how=how, why=why))

    # ---------------------------------------------------------------- the parts
    async def listing(self) -> None:
        """Whether the model is among those that the endpoint lists; an endpoint without a list is none the worse."""
        models = getattr(self._backbone, "models", None)
        if models is None:
            return
        try:
            listed = await models()
        except Transient as trouble:
            self.say("listed", str(trouble))
            return
        if listed is not None:
            self._models = list(listed)
            name = self._backbone.name.partition(":")[2]
            self._listed = name in listed or f"{name}:latest" in listed

    async def canary(self, length: int, end: float | None) -> bool:
        """Whether a prompt of about so many tokens (0: a short one) is seen whole.  One that is refused for its length is an answer."""
        texts = _texts()
        word = f"{self._draw.choice(texts['words'])}-{self._draw.randint(10, 99)}"
        front, question = texts["front"].format(word=word.upper()), texts["question"]
        # Exactly so long: what is seen whole, or is not, is compared with the prompts of a run.
        text = front + _entries(length, self._draw)[: max(4 * length - len(front + question), 0)] + question
        answered = any(one.completion is not None for one in self._sent)
        try:
            completion = await self.ask(text, end, most=_REPEATED)
        except Refused as trouble:
            if not (length and answered):
                raise
            self.say("context", f"{length:,} tokens were refused: {trouble}")
            seen = Canary(sent=length, over=True)
        else:
            said = (completion.text or "").casefold().replace(" ", "-")
            seen = Canary(sent=tokens(text), repeated=word in said, read=completion.prompt_tokens, over=completion.finish == "overflow")
        self._canaries.append(seen)
        return whole(seen, self._canaries)

    async def rungs(self, end: float | None) -> None:
        """The highest form of structured answer that holds: one small question, asked in the highest form first."""
        texts = _texts()
        for lowered, rung in enumerate(RUNGS):
            completion = await self.ask(texts["structured"], end, schema=texts["schema"], most=_REPEATED, lowered=lowered)
            form = completion.rung or rung
            good = _fits(completion)
            self._structured = good if self._structured is None else self._structured
            if good:
                self._rung = next((one for one in _RUNGS if one == form), None)
                if form == RUNGS[0] and not _held(completion):
                    self._rung = "plain"
                    self.say("rung", f"{form} is taken and then not held to: what the schema alone asks for was not in the answer")
                return
            self.say("rung", f"asked as {form}, the answer was {_shown(completion)}")
            if form == RUNGS[-1]:
                return

    async def calls(self, end: float) -> None:
        """Whether a tool is called natively: one small choice among two, or of none."""
        texts = _texts()
        schema = calling.choice(calling.Function(**one) for one in texts["functions"])
        completion = await self.ask(texts["calling"], end, schema=schema, most=_REPEATED)
        if completion.rung != TOOLS:
            self._tools = False
            self.say("tools", f"the endpoint takes no tools; a choice is asked for as {completion.rung or RUNGS[0]}")
            return
        self._tools = completion.finish == CALLED and _called(completion, texts["functions"])
        if not self._tools:
            self.say("tools", f"tools are taken, and the answer was {_shown(completion)}")

    async def seeds(self, end: float) -> None:
        """Whether one seed gives one answer, where another seed gives another."""
        text = _texts()["varied"]
        first, again, other = [await self.ask(text, end, temperature=1.0, most=60, seed=seed) for seed in (11, 11, 12)]
        if "seed" in first.omitted:
            self._seed_repeats = False
            self.say("seed", "the endpoint takes none")
        elif first.text == again.text == other.text:
            self.say("seed", "answers do not vary, so that it cannot be told")
        else:
            self._seed_repeats = first.text == again.text

    async def search(self, end: float) -> None:
        """The context: longer and longer prompts until one is not seen whole, then a few between."""
        if not self.repeats():
            told = any(one.read is not None for one in self._canaries)
            self.say(
                "context",
                "the model does not repeat a word even of a short prompt, "
                + ("so this is by the tokens that the server reports" if told else "and no usage tells what was read"),
            )
            if not told:
                return
        try:
            for length in LENGTHS:
                if not await self.canary(length, end):
                    break
            for _ in range(_BETWEEN):
                known = self._reach()
                if known.limit is None or known.limit - (known.context or 0) <= _NEAR:
                    return
                await self.canary(((known.context or 0) + known.limit) // 2, end)
        except Transient as trouble:
            self.say("context", f"the next prompt: {trouble}")

    async def pace(self, end: float) -> None:
        """Completion tokens a second with one, some and many requests in flight, each of a thousand tokens.

        Each has a third of the time that is left.  What is too slow ends it: more at once would be slower still.
        """
        number = 0
        for place, flight in enumerate(FLIGHTS):
            began = self._clock()
            until = began + (end - began) / (len(FLIGHTS) - place)
            prompts = [_entries(_PROMPT, Random(f"pace:{number + one}")) + _texts()["report"] for one in range(flight)]
            asked = [self.ask(text, until, temperature=0.7, most=_WRITTEN, seed=number + one) for one, text in enumerate(prompts)]
            number += flight
            ended = await asyncio.gather(*asked, return_exceptions=True)
            took = self._clock() - began
            answers = [one for one in ended if isinstance(one, Completion)]
            troubles = [one for one in ended if isinstance(one, BaseException)]
            if fault := next((one for one in troubles if not isinstance(one, Transient | Refused)), None):
                raise fault
            written = sum(self._written(one) for one in answers)
            if written and took > 0:
                self._rates[str(flight)] = round(written / took, 1)
            if troubles:
                self.say("rates", f"of {flight} at once {len(answers)} were answered ({troubles[0]}); more at once were not tried")
                return

    def _written(self, completion: Completion) -> int:
        return tokens(completion.text or "") if completion.completion_tokens is None else completion.completion_tokens

    def _reach(self) -> Reach:
        return reach(self._canaries)


class _Fit(BaseModel):
    """What the structured question asks for."""

    model_config = ConfigDict(strict=True)

    fits: Literal["yes", "no", "unclear"]
    boxes: int
    reason: str


def _fits(completion: Completion) -> bool:
    """Whether an answer is the object that was asked for, as it stands; thinking, a fence and words around it do no harm."""
    try:
        _Fit.model_validate(values(completion, _REPEATED)[0].value)
    except ValueError:
        return False
    return True


def _called(completion: Completion, functions: list[Json]) -> bool:
    """Whether an answer calls one of the functions with the arguments that it takes."""
    try:
        meant = calling.meant(values(completion, _REPEATED)[0].value)
    except ValueError:
        return False
    taken = {one["name"]: set(one["parameters"]["properties"]) for one in functions}
    return taken.get(meant.name) == meant.arguments.keys()


def _held(completion: Completion) -> bool:
    """Whether an answer has what only the schema asks for, and no word of the question."""
    value = values(completion, _REPEATED)[0].value
    return all(value.get(name) in part["enum"] for name, part in _texts()["schema"]["properties"].items() if name not in _Fit.model_fields)


def _shown(completion: Completion) -> str:
    if completion.refusal:
        return f"a refusal: {completion.refusal[:80]!r}"
    text = " ".join((completion.text or "").split())
    cut = "" if completion.finish == "stop" else f" ({completion.finish})"
    return (repr(text if len(text) <= 80 else text[:79] + "…") if text else "empty") + cut


def _entries(most: int, draw: Random) -> str:
    """About so many tokens of a warehouse's list."""
    texts, taken, number = _texts(), 0.0, 0
    lines: list[str] = []
    while taken < most:
        number += 1
        drawn = {name: draw.choice(texts[name]) for name in ("what", "where", "then")}
        lines.append(texts["entry"].format(number=number, count=draw.randint(2, 90), **drawn))
        taken += len(lines[-1].encode()) / 4
    return "".join(lines)


@lru_cache(maxsize=1)
def _texts() -> Json:
    return json.loads((Path(__file__).parent / "probe.json").read_text(encoding="utf-8"))
