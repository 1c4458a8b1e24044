"""The scripted stand-in, made to write as much as another backbone: `Stretched(lengths)`, for estimates.

Structure, counts and choices of an answer stay, and what is done with tools; its free texts are repeated or cut until the answer has
the step's measured length, because longer answers make longer prompts afterwards.  It reports the tokens that the measured backbone
would: see `Lengths`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import replace
from typing import Any, Literal

from taskweave.backbones.lengths import Lengths
from taskweave.backbones.scripted import Scripted
from taskweave.records import Completion, Json, Request

USING = ("execute_tool", "execute_tool_arguments")  # what is done with a tool, done otherwise, would be something else
LONG = 12  # words: a shorter text is a title or a search text, and as long as it is meant to be
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ROUNDS = 3  # of correcting what JSON adds to a text

# A text within an answer: what holds it, and its key or place there.
Slot = tuple[MutableMapping[str, Any] | MutableSequence[Any], Any]


class Stretched:
    """A backbone with the stand-in's name, whose answers are as long as `lengths` says; of a step without lengths, as the stand-in's."""

    name = "scripted"
    origin: Literal["model", "scripted"] = "scripted"

    def __init__(self, lengths: Lengths) -> None:
        self._lengths = lengths
        self._scripted = Scripted()

    async def complete(self, request: Request) -> Completion:
        """The stand-in's answer in the measured length, with the usage that a provider would report."""
        written = await self._scripted.complete(request)
        step = self._lengths.steps.get(request.prompt)
        factor = self._lengths.prompt_factor if step is None or step.prompt_factor is None else step.prompt_factor
        prompt = round(request.tokens() * factor)
        if step is None or written.text is None:
            return replace(written, prompt_tokens=prompt)
        value: Json = json.loads(written.text)
        listed = items(value)
        part = listed / step.items if step.items is not None and listed is not None else 1.0
        length = round((step.text or step.completion) * part)
        text = written.text if request.prompt in USING else fitted(value, request.schema, length)
        return replace(written, text=text, prompt_tokens=prompt, completion_tokens=round(step.completion * part))

    async def close(self) -> None:
        """End what was started for long runs."""
        await self._scripted.close()


def items(answer: Json) -> int | None:
    """How many items an answer holds that is one list and nothing else; None for any other answer."""
    if isinstance(answer, dict) and len(answer) == 1:
        (only,) = answer.values()
        return len(only) if isinstance(only, list) else None
    return None


def fitted(answer: Json, schema: Mapping[str, Json] | None, length: int) -> str:
    """The answer as JSON text of about `length` tokens (UTF-8 bytes / 4); `schema` says which of its texts are choices and stay."""
    slots = list(free_texts({"answer": answer}, {"type": "object", "properties": {"answer": schema or {}}}))
    long = [slot for slot in slots if len(_at(slot).split()) >= LONG] or slots
    texts = [_at(slot) for slot in long]
    weight = sum(len(text.encode()) for text in texts)
    target, wanted = 4 * length, 4 * length
    for _ in range(_ROUNDS if weight else 0):
        rest = len(_json(answer).encode()) - sum(len(_at(slot).encode()) for slot in long)
        for slot, text in zip(long, texts, strict=True):
            share = max(0, wanted - rest) * len(text.encode()) / weight
            slot[0][slot[1]] = stretched(text, round(share))
        over = len(_json(answer).encode()) - target
        if abs(over) <= 4:
            break
        wanted -= over
    return _json(answer)


def stretched(text: str, size: int) -> str:
    """The text in about `size` bytes: its sentences said again, or the last ones left out, and the last one cut after a word.

    At least its first word stays.
    """
    if len(text.encode()) <= size:
        sentences = _SENTENCE.split(text.strip())
        said, number = [text.strip()], 0
        length = len(said[0].encode())
        while length < size:
            said.append(sentences[number % len(sentences)])
            length += 1 + len(said[-1].encode())
            number += 1
        text = " ".join(said)
    cut = text.encode()[: max(size, 0)].decode(errors="ignore")
    if len(cut) < len(text) and not text[len(cut)].isspace():
        cut = cut.rpartition(" ")[0]
    return cut.rstrip() or text.split(maxsplit=1)[0]


def free_texts(value: Json, schema: Mapping[str, Json]) -> Iterator[Slot]:
    """The texts of a value that its schema leaves free, in order."""
    parts: list[tuple[Any, Json, Mapping[str, Json]]] = []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        parts = [(key, part, known.get(key, {})) for key, part in value.items()]
    elif isinstance(value, list):
        parts = [(place, part, schema.get("items", {})) for place, part in enumerate(value)]
    for key, part, said in parts:
        if isinstance(part, str):
            if part.strip() and "enum" not in said:
                yield value, key
        else:
            yield from free_texts(part, said)


def _at(slot: Slot) -> str:
    return str(slot[0][slot[1]])


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
