"""In which form is an answer journaled, and read back?  What has landed, what has ended without an answer.

Entry points: `Outcome`, `Landed`, `Ended`; `journaled` and `completed`, which are each other's reverse.  It reads and writes no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from taskweave.engine.promises import Ask
from taskweave.records import Completion, Json, Request, canonical

_FIELDS = ("text", "finish", "refusal", "prompt_tokens", "completion_tokens", "cached_tokens", "model", "fingerprint", "rung", "omitted")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an ask came to: its value as JSON text, and the tokens it took (reported, else by the rule bytes / 4)."""

    value: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Landed:
    """An outcome that has arrived and is not yet journaled; `attempt` is None for a look-up, which is answered here."""

    ask: Ask
    outcome: Outcome
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that closed without an outcome: `how` is one word, `why` the provider's words.

    retry: it took nothing; unknown: its answer may have been made, and billed; refused, fault: the run stopped.
    """

    attempt: int
    how: str
    why: str


def journaled(request: Request, completion: Completion, latency: float) -> Outcome:
    """A completion in the form that is journaled, with its tokens."""
    fields: dict[str, Json] = {name: value for name in _FIELDS if (value := getattr(completion, name)) not in (None, ())}
    fields["latency"] = round(latency, 4)
    return Outcome(storable(fields), *completion.tokens(request))


def storable(value: Json) -> str:
    """A value as JSON that can be stored as UTF-8.  A lone half of a surrogate pair, which some providers send, becomes U+FFFD."""
    text = canonical(value)
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def completed(value: Json) -> tuple[Completion, float]:
    """A journaled completion and its latency in seconds."""
    fields = {"text": None} | {name: value[name] for name in _FIELDS if name in value}
    return Completion(**(fields | {"omitted": tuple(fields.get("omitted", ()))})), float(value["latency"])
