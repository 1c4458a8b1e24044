"""How long are a backbone's answers?  Entry points: `read_lengths`, `shipped_lengths`, `Lengths.text` (the file's content).

A file of measured lengths a step, which anyone can replace: `export --format lengths` writes one of a run.  It measures nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from taskweave.org import form
from taskweave.org.form import Field, Kind, read_file
from taskweave.records import StyleName


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLength:
    """One step's answers.

    `completion` is their mean in the provider's tokens; where `items` is given, of an answer whose one list holds so many, and others are
    longer or shorter in that proportion.  `text` is the mean of what can be read of those that were used, in UTF-8 bytes / 4: less than
    `completion` where a model thinks unseen, more where some answers were no use.  `again` is calls a question: 1.1 where each tenth had
    to be asked again.  `prompt_factor` is the step's own, where it was measured.  `per_execute` is how many such questions came with an
    execution, of questions about tools: how often somebody looks for one depends on the backbone.
    """

    completion: float
    text: float | None = None
    items: float | None = None
    again: float = 1.0
    prompt_factor: float | None = None
    prompt: float | None = None
    per_execute: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """How much an organization planned in its first `weeks`: hours of its composite tasks to the hours that its people had.

    What waits long is done late, and the less is planned anew: how much that is depends on the backbone's answers.  `prompts` marks the
    prompts that it was asked with.
    """

    organization: str
    weeks: int
    share: float
    prompts: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Lengths:
    """Lengths by step.  `prompt_factor` is a provider's tokens of a prompt to one of UTF-8 bytes / 4, schema included; where
    questions were asked again, also what that adds to a prompt.

    `planned`, what a step's prompts took (`prompt`) and `per_execute` are regarded when the same organization is estimated with the same
    prompts.
    """

    as_of: str
    measured_on: str
    prompt_factor: float
    steps: Mapping[str, StepLength]
    planned: Planned | None = None

    def text(self) -> str:
        """The file's content."""
        lines = [
            f"as_of: {self.as_of}",
            f"measured_on: {json.dumps(self.measured_on, ensure_ascii=False)}",
            f"prompt_factor: {self.prompt_factor:.4g}",
        ]
        if (planned := self.planned) is not None:
            name = json.dumps(planned.organization, ensure_ascii=False)
            lines.append(
                f"planned: {{organization: {name}, weeks: {planned.weeks}, share: {planned.share:.4g}, prompts: {planned.prompts}}}"
            )
        lines += ["steps:", *(f"  {json.dumps(name, ensure_ascii=False)}: {{{_inline(one)}}}" for name, one in self.steps.items())]
        return "\n".join(lines) + "\n"


def _inline(one: StepLength) -> str:
    values = asdict(one) | {"again": one.again if one.again != 1 else None}
    return ", ".join(f"{name}: {value:.5g}" for name, value in values.items() if value is not None)


_TOKENS = form.number(more_than=0, most=1_000_000)
_FACTOR = form.number(more_than=0, most=100)
_STEP = form.record(
    {
        "completion": Field(_TOKENS, "mean tokens of an answer, as the provider counts", required=True),
        "text": Field(_TOKENS, "mean UTF-8 bytes / 4 of what can be read of an answer"),
        "items": Field(form.number(more_than=0, most=10_000), "how many items the list of such an answer holds"),
        "again": Field(form.number(least=1, most=10), "calls a question"),
        "prompt_factor": Field(_FACTOR, "the step's own prompt_factor"),
        "prompt": Field(_TOKENS, "mean tokens of a prompt, as the provider counts"),
        "per_execute": Field(form.number(more_than=0, most=100), "questions an execution, of those about tools"),
    }
)
_PLANNED = form.record(
    {
        "organization": Field(form.NAME, "the organization's name", required=True),
        "weeks": Field(form.integer(1, 60), "how many weeks", required=True),
        "share": Field(form.number(more_than=0, most=10), "planned hours to hours that people had", required=True),
        "prompts": Field(form.NAME, "a mark of the prompts", required=True),
    }
)


def _file(step: Callable[[str], str]) -> Kind:
    return form.record(
        {
            "as_of": Field(form.DATE, "the day of the measurement, such as 2026-10-14", required=True),
            "measured_on": Field(form.TEXT, "what was measured: a backbone, an organization, how long", required=True),
            "prompt_factor": Field(_FACTOR, "a provider's tokens to one of UTF-8 bytes / 4", required=True),
            "planned": Field(_PLANNED, "how much an organization planned"),
            "steps": Field(form.mapping_of(step, _STEP, "a step", empty="is empty"), "lengths by step", required=True),
        }
    )


def read_lengths(path: Path) -> Lengths:
    """A file of lengths.  Raises FileInvalid with the line and the reason of every problem in it."""
    return _read(path, _known_step)


def _known_step(text: str) -> str:
    """The name of a question that some style asks; ValueError for another."""
    known = sorted({*shipped_lengths("full").steps, *shipped_lengths("compact").steps})
    if text not in known:
        raise ValueError(f"there is no step {form.said(text)}{form.nearest(text, known)}")
    return text


def _read(path: Path, step: Callable[[str], str]) -> Lengths:
    values = read_file(_file(step), path)
    return Lengths(
        as_of=values["as_of"].isoformat(),
        measured_on=values["measured_on"],
        prompt_factor=values["prompt_factor"],
        steps={name: StepLength(**one) for name, one in values["steps"].items()},
        planned=Planned(**values["planned"]) if "planned" in values else None,
    )


@lru_cache(maxsize=2)
def shipped_lengths(style: StyleName = "full") -> Lengths:
    """The lengths that come with this package for a style: no measurement, but what its prompts ask for."""
    return _read(Path(__file__).parent / ("lengths.yaml" if style == "full" else "lengths_compact.yaml"), form.clean_name)
