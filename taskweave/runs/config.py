"""What a run was told, as config.json: strict, versioned, free of anything secret.

Entry points: `RunConfig`, `read_config`.  Does not know where it is kept, nor what an organization is.
"""

from __future__ import annotations

import json
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taskweave.errors import BadInput
from taskweave.records import StyleName, is_text

VERSION = 3  # 1 had no parent, no budgets and no parts left out; 2 had one organization

Part = Literal["diagnose", "align", "reconcile", "roll_up", "retrieval"]
PARTS: tuple[Part, ...] = get_args(Part)  # of the paper's loop that can be left out, to see what they do


class Segment(BaseModel):
    """From which week on (0: the beginning) the run works with which organization, prompts and backbone.

    Paths are relative to the run folder.  `backbone` is the name that requests carry and `origin` what its answers are; `given` and
    `base_url` are how it was asked for where that differs from the run's own; `draw` > 0 asks anew what a parent was answered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    week: int = Field(default=0, ge=0)
    org: str = "org.yaml"
    prompts: str = "prompts"
    backbone: str
    origin: Literal["model", "scripted"] = "model"
    given: str | None = None
    base_url: str | None = None
    draw: int = Field(default=0, ge=0)

    @property
    def population(self) -> str:
        """The file of those who work in its organization: population.json for org.yaml, population-week20.json for org-week20.yaml."""
        return f"population{self.org.removeprefix('org').removesuffix('.yaml')}.json"


class Parent(BaseModel):
    """Where a fork comes from, and what it changed: from `week` on, with these incidents added and those dropped, by their ids."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    run: str
    path: str
    week: int = Field(ge=1)
    added: tuple[str, ...] = Field(default=(), strict=False)
    dropped: tuple[str, ...] = Field(default=(), strict=False)
    prompts: bool = False
    backbone: bool = False
    redraw: bool = False
    organization: bool = False

    @property
    def changed(self) -> tuple[str, ...]:
        """What it changed, in words; nothing of a fork that is its parent again."""
        told = [f"incident {id} added" for id in self.added] + [f"incident {id} left out" for id in self.dropped]
        flags = {"another organization": self.organization, "other prompts": self.prompts}
        flags |= {"another backbone": self.backbone, "answers drawn anew": self.redraw}
        return (*told, *(word for word, given in flags.items() if given))

    @property
    def is_control(self) -> bool:
        """Whether nothing but chance differs: a redrawn run in which nothing else was changed."""
        return self.redraw and not (self.added or self.dropped or self.prompts or self.backbone or self.organization)


class RunConfig(BaseModel):
    """Everything that `run` was given, so that `resume` need not be told again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: int = VERSION
    organization: str
    seed: int = 1
    until: str = "year"
    backbone: str = "scripted"
    backbone_given: Literal["name", "object"] = "name"  # an object cannot be made again from its name
    base_url: str | None = None
    limit: int = Field(default=16, ge=1)
    assign: Literal["match", "model"] = "match"
    patience: float = Field(default=600.0, ge=0, allow_inf_nan=False)
    style: StyleName = "full"
    routing: str | None = None  # the file in the run folder
    max_fallback: float | None = Field(default=None, ge=0, le=1)
    budget_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    budget_tokens: int | None = Field(default=None, gt=0)
    budget_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    without: tuple[Part, ...] = Field(default=(), strict=False)
    servers: dict[str, str] = Field(default_factory=dict)  # those that the command line named: "smtp", "mastodon"
    parent: Parent | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    segments: tuple[Segment, ...] = Field(min_length=1, strict=False)

    def segment_at(self, week: int) -> Segment:
        """The one that holds in a week: the last that has begun by then."""
        return next(one for one in reversed(self.segments) if one.week <= week)

    def text(self) -> str:
        """The file's content: sorted keys, one value a line.  Raises BadInput for a name whose bytes are no text."""
        text = json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        if (odd := next((line.strip() for line in text.split("\n") if not is_text(line)), None)) is not None:
            raise BadInput(
                f"a run cannot write down {odd!r}: it is no text in UTF-8. Rename what is called so, or go on in another folder."
            )
        return text


def read_config(text: str, file: str) -> RunConfig:
    """Parse config.json; `file` is only named in errors.

    Raises BadInput for what is not JSON, for unknown or missing keys, and for the format of a newer TaskWeave.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{file}: not JSON ({error}). The file was changed by hand or damaged; restore it from a copy.") from error
    if not isinstance(value, dict):
        raise BadInput(f"{file}: a mapping is needed here, this is {type(value).__name__}.")
    version = value.get("version")
    if isinstance(version, int) and version > VERSION:
        raise BadInput(
            f"{file}: the run was written in format {version}; this TaskWeave reads formats up to {VERSION}. Install a newer TaskWeave."
        )
    try:
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        what = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'config'}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors())
        raise BadInput(f"{file}: {what}") from error
