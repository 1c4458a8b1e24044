"""The paper's tuples that pass between works as frozen values, and what passes between a work and a backbone.

What is only written down is a row, and stands in `pool/declared.py`: S in `states`, τ in `tasks`, τ̂ in `subtasks`, r in `results`, ξ in
`provenance`.  While S and τ are open they change: `simulation/units.py` and `simulation/open_work.py` hold them.  Nothing here reads or
writes.  Greek letters of the paper stand in the docstrings, its words in the code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol

Priority = Literal["low", "normal", "high"]
Quality = Literal["ok", "repaired", "fallback"]
Origin = Literal["model", "scripted", "fallback"]
Level = Literal["year", "quarter", "month", "week"]
StyleName = Literal["full", "compact"]
MOST = {"budget_usd": 1e9, "budget_tokens": 10**15, "budget_hours": 1e6, "patience": 1e9}  # what a setting may be told; patience in seconds
Json = Any  # a value that json.dumps accepts

LEVELS: tuple[Level, ...] = ("year", "quarter", "month", "week")
STEPS: tuple[str, ...] = (
    *("formulate", "partition", "partition_week", "decompose", "execute", "merge"),
    *("diagnose", "align", "reconcile", "roll_up", "respond"),
)


@cache
def step_of(prompt: str) -> str:
    """The step whose question a prompt asks: `execute` and `execute_title` are of execute; a prompt of no step is one of its own."""
    steps = [step for step in STEPS if prompt == step or prompt.startswith(f"{step}_")]
    return max(steps, key=len, default=prompt)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a text that is written down comes from, and whether it had to be mended or made by code."""

    quality: Quality
    origin: Origin

    @property
    def mended(self) -> Mark:
        """The same, after code has changed something in the text."""
        return Mark("repaired", self.origin) if self.quality == "ok" else self

    def worse(self, other: Mark) -> Mark:
        """That of the two of which the quality is worse; this one of equals."""
        return other if worst(self.quality, other.quality) != self.quality else self

    def row(self) -> dict[str, Json]:
        """The columns that say it."""
        return {"quality": self.quality, "origin": self.origin}


BY_CODE = Mark("fallback", "fallback")
BY_CODE_SAID = "was filled by code"  # in the note of each thing that a backbone did not give


def worst(first: Quality, second: Quality) -> Quality:
    """The worse of two qualities."""
    return max(first, second, key=_QUALITIES.index)


_QUALITIES: tuple[Quality, ...] = ("ok", "repaired", "fallback")

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _canonical() -> Callable[[Json], str]:
    """What the encoder does, without making its inner part anew for each of the many small values."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return _ENCODER.encode
    chunks = make(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, True)
    return lambda value: "".join(chunks(value, 0))


_CANONICAL = _canonical()


def canonical(value: Json) -> str:
    """JSON with sorted keys and no spaces: the one form that is hashed."""
    return _CANONICAL(value)


def text_digest(text: str) -> str:
    """sha256 of a text, in hex: what stands for it in the keys of outcomes."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_text(text: str) -> bool:
    """Whether it can be written down: the bytes of a name or an argument that are no UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def tokens(text: str) -> int:
    """Tokens = ceil(UTF-8 bytes / 4), everywhere."""
    return -(-(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) // 4)


# A schema object, kept alive by standing here, its text and the text's digest: thousands of requests share one.
_SCHEMAS: dict[int, tuple[Mapping[str, Json], str, str]] = {}


# ---------------------------------------------------------------- work (Sec. 3.3)
@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSpec:
    """η: what a composite task asks for (Eq. 4)."""

    title: str
    background: str
    description: str
    activity: str
    priority: Priority
    goals: tuple[str, ...]
    constraints: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyQuery:
    """Ψ, Eq. 5: what must be resolved before a subtask is executed.

    `upstream` are ids of subtasks or tasks, `text` is searched in the pool, `filters` narrow that (role, department, kind) or say what
    comes first (goal), `sources` are any of pool, tools, environment.
    """

    upstream: tuple[str, ...] = ()
    text: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependency:
    """One prior result as an execution sees it, cut to an excerpt."""

    id: str
    title: str
    role: str
    author: str
    artifact: str
    excerpt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """Γ = Γ_int ∪ Γ_ext, Eq. 5: prior results, and evidence from tools and the environment."""

    results: tuple[Dependency, ...]
    evidence: tuple[str, ...]


# ---------------------------------------------------------------- asking a backbone
def logical_form(
    *,
    backbone: str,
    messages: Sequence[tuple[str, str]],
    temperature: float,
    max_tokens: int,
    schema: str | None,
    seed: int,
    lowered: int,
) -> str:
    """What an outcome depends on, in the form that is hashed into the journal's key.

    Digests stand for the messages' texts, (role, digest), and for the schema.
    """
    asked: dict[str, Json] = {
        "backbone": backbone,
        "messages": messages,
        "sampling": [temperature, max_tokens],
        "schema": schema,
        "seed": seed,
    }
    return canonical(asked | {"lowered": lowered} if lowered else asked)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How an answer is drawn: temperature, and the most tokens it may have."""

    temperature: float
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of a backbone.  `seed` is set by the engine from (run seed, site, draw).

    `inputs` are the JSON values that the template saw, after cutting; `messages` are what it rendered.
    `backbone` is the identity (kind and model) that the run records: never a URL or a key.  `lowered` is by how many rungs below the
    highest that the endpoint takes its form is to be asked for: 0, and more after an answer that was not in the form asked for.
    """

    prompt: str
    version: int
    inputs: Mapping[str, Json]
    messages: tuple[tuple[str, str], ...]  # (role, text)
    schema: Mapping[str, Json] | None
    sampling: Sampling
    backbone: str
    seed: int = 0
    lowered: int = 0

    def logical(self, texts: Sequence[str] | None = None) -> str:
        """The part that an outcome depends on, in the form that is hashed into the journal's key.

        Digests stand for the messages' texts and for the schema; `texts` are the former, where they are known already.
        """
        marks = texts if texts is not None else self.text_digests()
        return logical_form(
            backbone=self.backbone,
            messages=[(role, mark) for (role, _), mark in zip(self.messages, marks, strict=True)],
            temperature=self.sampling.temperature,
            max_tokens=self.sampling.max_tokens,
            schema=self.schema_digest(),
            seed=self.seed,
            lowered=self.lowered,
        )

    def tokens(self) -> int:
        """Tokens of what is sent, by the rule of the house: the messages, and the schema that goes with them."""
        schema = tokens(self._schema()[1]) if self.schema is not None else 0
        return schema + sum(tokens(text) for _, text in self.messages)

    def text_digests(self) -> tuple[str, ...]:
        """The digests of the messages' texts, in their order."""
        return tuple(text_digest(text) for _, text in self.messages)

    def schema_text(self) -> str:
        """The schema in canonical form, "null" where there is none."""
        return "null" if self.schema is None else self._schema()[1]

    def schema_digest(self) -> str | None:
        """The digest of the schema's text; None where there is no schema."""
        return None if self.schema is None else self._schema()[2]

    def _schema(self) -> tuple[Mapping[str, Json], str, str]:
        assert self.schema is not None
        known = _SCHEMAS.get(id(self.schema))
        if known is None or known[0] is not self.schema:
            if len(_SCHEMAS) >= 4096:
                _SCHEMAS.clear()
            text = canonical(self.schema)
            known = _SCHEMAS[id(self.schema)] = (self.schema, text, text_digest(text))
        return known


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a backbone answered.  Token counts are the provider's, or None where it reports no usage.

    `model` and `fingerprint` are what it says served it; `rung` is the form in which the answer was asked for (json_schema, json_object,
    plain; None: the highest that the request allows), `omitted` what of the request's sampling the endpoint did not take.
    """

    text: str | None
    finish: str = "stop"
    refusal: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    model: str | None = None
    fingerprint: str | None = None
    rung: str | None = None
    omitted: tuple[str, ...] = ()

    def tokens(self, request: Request) -> tuple[int, int]:
        """Those of the prompt and of the answer: what the provider counted, else by the rule of the house."""
        prompt, answer = self.prompt_tokens, self.completion_tokens
        return (
            request.tokens() if prompt is None else prompt,
            tokens(self.text or self.refusal or "") if answer is None else answer,
        )


class Backbone(Protocol):
    """What answers a request.  One method is the seam; recording, budget and pacing wrap it.

    It may say how many requests it takes at a time (`most_at_once`), and have `async def close()`.
    """

    name: str  # the identity that requests carry, e.g. "scripted" or "openai:gpt-4o-mini"
    origin: Literal["model", "scripted"]

    async def complete(self, request: Request) -> Completion:
        """Answer, or raise Transient (may be tried again) or Refused (cannot help)."""
        ...
