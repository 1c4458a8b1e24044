"""What a run was told, as config.json: strict, versioned, free of anything secret.

Entry points: `RunConfig`, `read_config`.  Does not know where it is kept, nor what an organization is.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taskweave.errors import BadInput
from taskweave.records import StyleName

VERSION = 1


class Segment(BaseModel):
    """From which week on the run works with which organization, prompts and backbone.  Paths are relative to the run folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    week: int = Field(default=0, ge=0)
    org: str = "org.yaml"
    prompts: str = "prompts"
    backbone: str
    draw: int = Field(default=0, ge=0)


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
    tags: dict[str, str] = Field(default_factory=dict)
    segments: tuple[Segment, ...] = Field(min_length=1, strict=False)

    def text(self) -> str:
        """The file's content: sorted keys, one value a line."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


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
