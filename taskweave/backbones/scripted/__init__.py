"""The offline stand-in for a language model: answers every step from phrase banks, the same answer for the same request.

`Scripted().complete(request)` gives the JSON that the request's step asks for.  Hours, dependencies, counts and roles come from the
request's seed alone; wording from seed and inputs.  It opens no connection and keeps no state between requests; of a long run, it lets
a second process write the answers (`beside.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import JSONEncoder
from typing import Literal

from taskweave.backbones.scripted import closing, decompose, deliverables, merging, planning, small, tasks, tooling
from taskweave.backbones.scripted.beside import Beside
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.wording import listed
from taskweave.errors import BadInput
from taskweave.records import Completion, Json, Request

Answerer = Callable[[Mapping[str, Json], Dice], Json]

STEPS: Mapping[str, Answerer] = {
    "formulate": planning.formulate,
    "partition": planning.partition,
    "partition_week": tasks.partition_week,
    "decompose": decompose.decompose,
    "execute": deliverables.execute,
    "merge": merging.merge,
    "diagnose": closing.diagnose,
    "align": planning.align,
    "reconcile": planning.reconcile,
    "roll_up": closing.roll_up,
    "respond": tasks.respond,
}

TOOL = "execute_tool"  # no step: a question before one

# What each step reads; a request may hold more.
INPUTS: Mapping[str, frozenset[str]] = {
    "formulate": frozenset(
        listed("organization unit parent_plan parent_diagnosis last_diagnosis objectives readings incidents requests carried")
    ),
    "partition": frozenset(listed("organization unit plan recipients goals")),
    "partition_week": frozenset(listed("organization unit plan focus objectives incidents carried recent slots roles activities goals")),
    "decompose": frozenset(listed("task subtasks hours roles upstream activities")),
    "execute": frozenset(listed("organization date task role author dependencies evidence goals subtask")),
    "merge": frozenset(listed("organization date task goals partials references")),
    "diagnose": frozenset(listed("organization unit counts tasks results children readings incidents")),
    "align": frozenset(listed("organization unit plan diagnosis incidents readings")),
    "reconcile": frozenset(listed("organization unit plan siblings")),
    "roll_up": frozenset(listed("organization unit last_summary children")),
    "respond": frozenset(listed("organization unit plan incident open slots roles activities goals")),
}


_ENCODER = JSONEncoder(ensure_ascii=False, check_circular=False)


class Scripted:
    """A backbone that answers from phrase banks.  `stubs` replace the answer of a step, by prompt id."""

    name = "scripted"
    origin: Literal["model", "scripted"] = "scripted"

    def __init__(self, stubs: Mapping[str, Callable[[Request], Json]] | None = None) -> None:
        self._stubs = dict(stubs or {})
        self._beside = Beside()

    def answer(self, request: Request) -> Json:
        """The answer as a JSON value; BadInput where the request is of no known step or lacks an input."""
        stub = self._stubs.get(request.prompt)
        return stub(request) if stub is not None else self._written(request.prompt, request.inputs, request.seed)

    def text(self, prompt: str, inputs: Mapping[str, Json], seed: int) -> str:
        """The answer to a step's inputs as JSON text."""
        return _ENCODER.encode(self._written(prompt, inputs, seed))

    def _written(self, prompt: str, inputs: Mapping[str, Json], seed: int) -> Json:
        if prompt in STEPS and inputs.keys() >= INPUTS[prompt]:
            return STEPS[prompt](inputs, Dice.of(seed, inputs))
        if prompt == TOOL and inputs.keys() >= tooling.INPUTS:
            return tooling.choose(inputs, Dice.of(seed, inputs))
        needed = small.INPUTS.get(prompt, frozenset())
        whole_only = INPUTS.get(prompt, frozenset()) - needed
        if needed and inputs.keys() >= needed and not inputs.keys() & whole_only:  # a part of the step, asked by itself
            return small.QUESTIONS[prompt](inputs, Dice.of(seed, inputs))
        known = {*STEPS, *small.QUESTIONS, TOOL}
        if prompt not in known:
            raise BadInput(f"prompt {prompt!r}: the scripted backbone answers only {sorted(known)}; give Scripted a stub for it")
        missing = sorted((tooling.INPUTS if prompt == TOOL else INPUTS.get(prompt, needed)) - inputs.keys())
        raise BadInput(f"prompt {prompt!r}: the scripted backbone misses the inputs {missing}; it was given {sorted(inputs)}")

    async def complete(self, request: Request) -> Completion:
        # The other process knows neither stubs nor what a subclass does.
        alone = bool(self._stubs) or type(self) is not Scripted
        text = None if alone else await self._beside.answer(request)
        if text is None:
            text = _ENCODER.encode(self.answer(request))
        return Completion(text=text, model=self.name)

    async def close(self) -> None:
        """End what was started for long runs."""
        await self._beside.close()
