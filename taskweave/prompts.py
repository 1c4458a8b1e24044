"""What a step asks, word for word: the prompts of a run by id, rendered strictly and identified by digest.

`PromptBook.load(folder, ...)` reads `*.md`; a later folder lays its files over the earlier ones'.  `book.request(id, inputs, ...)` cuts
the inputs to the budgets of the prompt's head, renders, and gives the `Request`.  It knows nothing of what the steps mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from taskweave.cutting import cut, cut_list, fit
from taskweave.errors import Problem, PromptInvalid
from taskweave.prompt_files import Prompt, PromptFile, nearest
from taskweave.records import Json, Request, Sampling
from taskweave.shipped import shipped

LEAST = 12  # tokens to which an input is cut, at the most
LEAST_ANSWER = 256  # tokens
SAMPLES = "samples.json"  # inputs of each step, lean and full, from scripted runs of tiny and company_a

__all__ = ["Prompt", "PromptBook", "PromptInvalid", "cut", "cut_list"]


class PromptBook:
    """The prompts of a run, by id."""

    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        self._prompts = dict(sorted(prompts.items()))

    @classmethod
    def load(cls, *folders: Path) -> PromptBook:
        """The shipped prompts, or those of `folders`, later ones laid over earlier ones.

        A file in a later folder replaces the prompt of its name and must ask for the same inputs and the same answer.
        Raises PromptInvalid with all problems of all files.
        """
        prompts: dict[str, Prompt] = {}
        problems: list[Problem] = []
        for depth, folder in enumerate(folders or (shipped("prompts"),)):
            if not folder.is_dir():
                raise PromptInvalid(f"{folder}: no such folder of prompts")
            found: dict[str, Prompt] = {}
            for path in sorted(folder.glob("*.md")):
                if path.stem.lower() == "readme":
                    continue
                read = PromptFile(path)
                if depth:
                    _compare(read, prompts)
                problems += read.problems
                if read.prompt is not None:
                    found[read.prompt.id] = read.prompt
            prompts |= found
        if problems:
            raise PromptInvalid("\n".join(map(str, problems)))
        if not prompts:
            raise PromptInvalid(f"{', '.join(map(str, folders))}: no prompt files (*.md) there")
        return cls(prompts)

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self._prompts.values())

    def __getitem__(self, prompt_id: str) -> Prompt:
        """The prompt of that id.  Raises PromptInvalid naming the ids there are."""
        if (prompt := self._prompts.get(prompt_id)) is None:
            raise PromptInvalid(f"no prompt {prompt_id!r}{nearest(prompt_id, self._prompts)}; there are {', '.join(self._prompts)}")
        return prompt

    def digest(self, prompt_id: str) -> str:
        """sha256 of the file's normalized text."""
        return self[prompt_id].digest

    def label(self, prompt_id: str) -> str:
        """What provenance keeps of a prompt: its id, version and digest."""
        prompt = self[prompt_id]
        return f"{prompt.id}@{prompt.version}:{prompt.digest[:12]}"

    def try_out(self, shipped_folder: Path | None = None) -> None:
        """Render each prompt with samples of its inputs: what fails only then fails before a run, not within it.

        The samples lie in the folder of the shipped prompts of this style.  Raises PromptInvalid with the first problem of each
        prompt.  A prompt that no step of these samples asks with is not tried.
        """
        samples = json.loads(((shipped_folder or shipped("prompts")) / SAMPLES).read_text(encoding="utf-8"))
        common, problems = {"organization": samples["organization"]}, []
        for prompt in self:
            try:
                for inputs in samples["steps"].get(prompt.id, ()):
                    self.request(prompt.id, common | inputs, schema=None, backbone="")
            except PromptInvalid as trouble:
                problems.append(str(trouble))
        if problems:
            raise PromptInvalid("\n".join(problems))

    def request(
        self, prompt_id: str, inputs: Mapping[str, Json], *, schema: Mapping[str, Json] | None, backbone: str, halvings: int = 0
    ) -> Request:
        """The request that a step sends: inputs cut to the head's budgets, and the messages they render to.

        `halvings` of the budgets, and of the room for the answer, bring a prompt into a model that cannot take it whole.
        Raises PromptInvalid naming an input that is missing or that the prompt does not use.
        """
        prompt = self[prompt_id]
        if inputs.keys() != prompt.variables:
            raise PromptInvalid(f"{prompt.file}: {_mismatch(prompt.variables, inputs.keys())}")
        budget = prompt.budget
        if halvings:
            budget = {name: max(LEAST, most >> halvings) for name, most in budget.items()}
        cut_inputs = {name: fit(value, budget[name]) if name in budget else value for name, value in inputs.items()}
        return Request(
            prompt=prompt.id,
            version=prompt.version,
            inputs=cut_inputs,
            messages=prompt.render(cut_inputs),
            schema=schema,
            sampling=prompt.sampling if not halvings else _halved(prompt.sampling, halvings),
            backbone=backbone,
        )


def _halved(sampling: Sampling, halvings: int) -> Sampling:
    return Sampling(temperature=sampling.temperature, max_tokens=max(LEAST_ANSWER, sampling.max_tokens >> halvings))


def _mismatch(variables: frozenset[str], given: Set[str]) -> str:
    said = []
    missing, unused = variables - given, given - variables
    if missing:
        said.append(f"it uses {', '.join(map(repr, sorted(missing)))}, which this step is not given")
    if unused:
        said.append(f"it does not use {', '.join(map(repr, sorted(unused)))}, which this step is given")
    return f"{' and '.join(said)}; its variables are {', '.join(sorted(variables))}"


def _compare(read: PromptFile, base: Mapping[str, Prompt]) -> None:
    """Problems of a file that is laid over another."""
    under = base.get(read.stem)
    if under is None:
        read.wrong(None, f"no step asks with a prompt {read.stem!r}{nearest(read.stem, base)}; there are {', '.join(base)}")
        return
    prompt = read.prompt
    if prompt is None:
        return
    for name in sorted(prompt.variables - under.variables):
        read.wrong(read.line_of(name), f"undefined variable {name!r}{nearest(name, sorted(under.variables))}; {_given(under)}")
    for name in sorted(under.variables - prompt.variables):
        read.wrong(None, f"does not use {name!r}; use it, or say that it is left out on purpose with {{% set _ = {name} %}}")
    if prompt.schema != under.schema:
        read.wrong(None, f"schema is {prompt.schema!r}, but the step {prompt.id!r} reads a {under.schema!r}")


def _given(prompt: Prompt) -> str:
    return f"this step is given {', '.join(sorted(prompt.variables))}"
