"""The paper's tuples as frozen values, and what passes between a work and a backbone.

Nothing here computes, reads or writes.  Greek letters of the paper stand in the docstrings; `STYLE` names stand in the code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Priority = Literal["low", "normal", "high"]
Quality = Literal["ok", "repaired", "fallback"]
Origin = Literal["model", "scripted", "fallback"]
Level = Literal["year", "quarter", "month", "week"]
Json = Any  # a value that json.dumps accepts

LEVELS: tuple[Level, ...] = ("year", "quarter", "month", "week")


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(value: Json) -> str:
    """JSON with sorted keys and no spaces: the one form that is hashed."""
    return _CANONICAL.encode(value)


def text_digest(text: str) -> str:
    """sha256 of a text, in hex: what stands for it in keys, and what the journal keeps it under."""
    return hashlib.sha256(text.encode()).hexdigest()


# A schema object, kept alive by standing here, its text and the text's digest: thousands of requests share one.
_SCHEMAS: dict[int, tuple[Mapping[str, Json], str, str]] = {}


# ---------------------------------------------------------------- planning (Sec. 3.2)
@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningState:
    """S = (π, 𝒯, σ), Eq. 1: what a unit intends, has committed and has observed.  `parent` is p; the root's is None."""

    id: str
    level: Level
    period: str
    owner: str
    parent: str | None
    revision: int
    plan: str
    tasks: tuple[str, ...]
    diagnosis: str | None


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
class Task:
    """τ = (η, δ, ξ), Eq. 4; δ and ξ stand on its `Result` once there is one."""

    id: str
    state: str
    spec: TaskSpec


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
class Subtask:
    """τ̂ = (η̂, Ψ): one atomic goal and what it needs."""

    id: str
    task: str
    goal: str
    activity: str
    role: str
    hours: float
    needs: DependencyQuery


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """ξ: who made a result, from what, for which plan and goal, with which prompt (Eq. 7)."""

    result: str
    state: str
    goals: tuple[str, ...]
    prompt: str
    backbone: str
    agent: str
    delegator: str
    calls: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """r = (η̂, δ, ξ), Eq. 7, or the merged composite result, Eq. 8 (`subtask` is None)."""

    id: str
    task: str
    subtask: str | None
    agent: str
    artifact: str
    title: str
    content: str
    finished: str
    quality: Quality
    origin: Origin
    provenance: Provenance


# ---------------------------------------------------------------- asking a backbone
@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How an answer is drawn: temperature, and the most tokens it may have."""

    temperature: float
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of a backbone.  `seed` is set by the engine from (run seed, site, draw).

    `inputs` are the JSON values that the template saw, after cutting; `messages` are what it rendered.
    `backbone` is the identity (kind and model) that the run records: never a URL or a key.
    """

    prompt: str
    version: int
    inputs: Mapping[str, Json]
    messages: tuple[tuple[str, str], ...]  # (role, text)
    schema: Mapping[str, Json] | None
    sampling: Sampling
    backbone: str
    seed: int = 0

    def logical(self, texts: Sequence[str] | None = None) -> str:
        """The part that an outcome depends on, in the form that is hashed into the journal's key.

        Digests stand for the messages' texts and for the schema; `texts` are the former, where they are known already.
        """
        marks = texts if texts is not None else self.text_digests()
        return canonical(
            {
                "backbone": self.backbone,
                "messages": [[role, mark] for (role, _), mark in zip(self.messages, marks, strict=True)],
                "sampling": [self.sampling.temperature, self.sampling.max_tokens],
                "schema": self.schema_digest(),
                "seed": self.seed,
            }
        )

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
    """What a backbone answered.  Token counts are the provider's, or None where it reports no usage."""

    text: str | None
    finish: str = "stop"
    refusal: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    model: str | None = None
    fingerprint: str | None = None


class Backbone(Protocol):
    """What answers a request.  One method is the seam; recording, budget and pacing wrap it."""

    name: str  # the identity that requests carry, e.g. "scripted" or "openai:gpt-4o-mini"
    origin: Literal["model", "scripted"]

    async def complete(self, request: Request) -> Completion:
        """Answer, or raise Transient (may be tried again) or Refused (cannot help)."""
        ...
