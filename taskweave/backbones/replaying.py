"""Answers from another run's journal: `Replay(name, journal)`, for `--backbone replay:RUN`.

Strict: a request that was not asked there, word for word, is refused, and the nearest recorded one is shown.  It keeps the recorded
backbone's name, so that equal requests have equal keys and an equal run an equal digest.  It opens no connection and costs nothing.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from taskweave.backbones.structured import origin_of
from taskweave.engine.outcomes import completed
from taskweave.engine.reader import JournalReader, Recorded
from taskweave.errors import Refused
from taskweave.records import Completion, Request, StyleName, logical_form, text_digest

_SHOWN = 120  # characters of a line that differs


class Nearest(NamedTuple):
    """A recorded request beside the one that was asked: where it was made, and the first line in which they differ."""

    site: str
    recorded: str
    asked: str


class Replay:
    """A backbone that answers as a run was answered.  `name` is the recorded one's, `journal` that run's file."""

    origin: Literal["model", "scripted"]

    def __init__(self, name: str, journal: Path, style: StyleName = "full") -> None:
        """Reads the whole journal; `style` is how that run was asked.  Raises BadInput for a journal that cannot be read."""
        self.name, self.style, self.journal = name, style, journal
        self.origin = "scripted" if origin_of(name) == "scripted" else "model"
        self._answers: dict[str, list[Completion]] = defaultdict(list)
        with JournalReader(journal) as reader:
            marks: dict[int, str] = {number: text_digest(text) for number, text in reader.texts()}
            for one in reader.recorded():
                if one.value is not None:
                    self._answers[_logical(one, marks)].append(completed(json.loads(one.value))[0])
        self._given: dict[str, int] = defaultdict(int)

    async def complete(self, request: Request) -> Completion:
        """What was answered to this request; where a work asked it more than once, one answer after the other.  Raises Refused."""
        logical = request.logical()
        answers = self._answers.get(logical)
        if not answers:
            raise Refused(self._missed(request))
        number = min(self._given[logical], len(answers) - 1)
        self._given[logical] += 1
        return answers[number]

    def _missed(self, request: Request) -> str:
        said = f"{self.journal.parent} holds no answer to this request of the step {request.prompt!r}"
        near = self._nearest(request)
        if near is None:
            return f"{said}, nor any other of that step. Replay with the organization, prompts, seed, style and incidents of that run"
        if not near.recorded and not near.asked:
            return f"{said}; the nearest is at {near.site}: its words are equal, its schema, sampling or backbone differs"
        return f"{said}; the nearest is at {near.site}, which says {near.recorded!r} where this one says {near.asked!r}"

    def _nearest(self, request: Request) -> Nearest | None:
        """The recorded request of the same step that is most like this one: at the same site, else by its words."""
        with JournalReader(self.journal) as reader:
            same = [one for one in reader.recorded() if one.prompt == request.prompt]
            of_site = [one for one in same if one.seed == request.seed] or same[:50]
            if not of_site:
                return None
            asked = "\n".join(text for _, text in request.messages)
            said = {one: "\n".join(reader.text(number) for _, number in one.messages) for one in of_site}
        best = max(of_site, key=lambda one: difflib.SequenceMatcher(None, said[one], asked).quick_ratio())
        return Nearest(best.site, *_first_difference(said[best], asked))


def _logical(one: Recorded, marks: dict[int, str]) -> str:
    return logical_form(
        backbone=one.backbone,
        messages=[(role, marks[number]) for role, number in one.messages],
        temperature=one.sampling["temperature"],
        max_tokens=one.sampling["max_tokens"],
        schema=None if one.schema is None else marks[one.schema],
        seed=one.seed,
        lowered=one.sampling.get("lowered", 0),
    )


def _first_difference(recorded: str, asked: str) -> tuple[str, str]:
    """The first lines that differ; two empty ones where none does."""
    lines: Iterator[tuple[str, str]] = zip([*recorded.split("\n"), ""], [*asked.split("\n"), ""], strict=False)
    old, new = next(((old, new) for old, new in lines if old != new), ("", ""))
    at = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - _SHOWN // 2)
    return old[start : start + _SHOWN], new[start : start + _SHOWN]
