"""The small questions of one step (`--style compact`): what they cost, how they went, and what code had to fill in.

Entry point: `Questions`.  A copy of a prompt's example is no answer.  It knows no step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from taskweave.backbones.structured import Answered, CallRow
from taskweave.cutting import cut
from taskweave.engine.promises import Context as WorkContext
from taskweave.prompt_files import Prompt
from taskweave.records import BY_CODE, BY_CODE_SAID, Json, Mark, Origin, Quality, worst
from taskweave.simulation import small_answers as small
from taskweave.simulation.answers import Answer, Schema
from taskweave.simulation.setting import Setting
from taskweave.simulation.small_texts import is_copy, without_repeats

T = TypeVar("T")
A = TypeVar("A", bound=Answer)
Inputs = Mapping[str, Json]
MAIN = ("plan", "summary", "content", "description", "goal", "text")  # what an example's answer does not stand in for


class Questions:
    """The small questions of one step: what they cost, how they went, and what code had to fill in."""

    def __init__(self, setting: Setting, ctx: WorkContext, agent: str, inputs: Inputs) -> None:
        self.setting, self.inputs = setting, inputs
        self._ctx, self.agent = ctx, agent
        self._calls: list[CallRow] = []
        self._notes: list[str] = []
        self._quality: Quality = "ok"
        self._origin: Origin = setting.origin
        self._item: Quality = "ok"  # of what was asked since the last item
        self._items: list[Mark] = []

    async def ask(
        self,
        prompt: str,
        more: Inputs,
        schema: Schema,
        kind: type[A],
        fallback: Callable[[], T],
        *,
        names: str = "",
        place: str = "",
        check: Callable[[A], object] | None = None,
    ) -> A | T:
        """The answer to one question, or `fallback()` with a note.

        Its inputs are the step's `organization` and `date`, those that `names` lists, and `more`; `place` says which item it is about.
        `check` raises ValueError for what is no answer though it has the form of one.
        """
        inputs = {name: self.inputs[name] for name in ("organization", "date", *names.split())} | dict(more)
        example = example_of(self.setting.prompts[prompt])

        def parse(answer: Json) -> A:
            value = kind.model_validate(answer)
            copied = [name for name in MAIN if name in example and is_copy(str(getattr(value, name, "")), example[name])]
            if copied and "maxLength" in schema["properties"][copied[0]]:  # a name that was chosen may well be the example's
                raise ValueError(f"{copied[0]} is the example's; write your own about what is asked")
            if check is not None:
                check(value)
            return value

        answered: Answered[A | T] = await self.setting.one(self._ctx, prompt, inputs, schema, parse, fallback, self.agent)
        self._calls += answered.calls
        what = f"{prompt} {place}".rstrip()
        filled = f" {BY_CODE_SAID}" if answered.quality == "fallback" else ""
        self._notes += [f"{what}{filled}: {note}" for note in answered.notes]
        # A decision that code takes instead changes no word of the item that it is about.
        decided = answered.quality == "fallback" and any("enum" in part for part in schema["properties"].values())
        self._count("repaired" if decided else answered.quality)
        self._origin = self._origin if answered.origin == "fallback" else answered.origin
        return self._once(answered.value, what) if isinstance(answered.value, Answer) else answered.value

    def _once(self, value: A, what: str) -> A:
        """The answer without what its texts say again and again."""
        said = {name: text for name, text in value if isinstance(text, str)}
        shorter = {name: without_repeats(text) for name, text in said.items()}
        if repeated := [name for name in said if shorter[name] != said[name]]:
            self.changed(f"{what}: what {' and '.join(repeated)} said again was left out")
            return type(value).model_validate(shorter)
        return value

    def own_title(self, what: str, title: str, spare: str) -> str:
        """The title, or `spare` where it is the example's; `what` is the prompt, and which item it is about."""
        if title != example_of(self.setting.prompts[what.split()[0]]).get("title"):
            return title
        taken = cut(spare, small.TITLE // 4)
        self.changed(f"{what}: its title was the example's; {taken!r} was taken")
        return taken

    def changed(self, note: str) -> None:
        """Record what code had to change in an answer."""
        self._notes.append(note)
        self._count("repaired")

    def next_item(self) -> None:
        """What is asked from now on is about the next item."""
        self._item = "ok"

    def item(self, *, filled: bool) -> None:
        """An item of the list is there: by code, or as good as the worst of what was asked for it."""
        origin = self._origin
        self._items.append(BY_CODE if filled else Mark("repaired" if self._item == "fallback" else self._item, origin))

    def _count(self, quality: Quality) -> None:
        self._quality, self._item = worst(self._quality, quality), worst(self._item, quality)

    def answered(self, value: T) -> Answered[T]:
        """The step's value: as good as the worst of its pieces."""
        return Answered(
            value=value,
            quality=self._quality,
            reason=self._notes[0] if self._notes else "",
            calls=tuple(self._calls),
            origin="fallback" if self._quality == "fallback" else self._origin,
            changes=tuple(self._notes[1:]),
            items=tuple(self._items),
        )


def example_of(prompt: Prompt) -> Mapping[str, Json]:
    """The answer of a prompt's demonstration: what a weak model gives back instead of an own one.  Empty where there is none to read."""
    if prompt.digest not in _EXAMPLES:
        demonstrations = [text for role, text in prompt.demonstrations() if role == "assistant"]
        try:
            found = json.loads(demonstrations[-1])
        except (ValueError, IndexError):
            found = {}
        _EXAMPLES[prompt.digest] = found if isinstance(found, dict) else {}
    return _EXAMPLES[prompt.digest]


_EXAMPLES: dict[str, Mapping[str, Json]] = {}  # by digest: what is read of a file never changes
