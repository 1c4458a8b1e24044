"""What is known of an endpoint from having probed it: `Probed`, kept between runs in the user's cache folder.

Entry points: `recall`, `keep`; `style_for` says how such an endpoint is to be asked.  It asks nothing itself, and holds no key: only
the backbone's name, where it listens, and what was found.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taskweave.records import StyleName

Rung = Literal["json_schema", "json_object", "plain"]
FULL_NEEDS = 3_500  # tokens: where prompts are cut before that, the questions of the full style do not fit
FRESH = timedelta(days=7)  # a server is set up anew, a model exchanged: after that it is asked again


class Probed(BaseModel):
    """One look at an endpoint; None is not known.

    `context` is the longest prompt in tokens (UTF-8 bytes / 4) whose beginning was seen by the model, `limit` the shortest one of which it
    was not (None: of all that were tried it was), and `cut` how that one was met: True, cut without a word; False, refused; None, all
    of it was counted and yet overlooked.  `rung` is the highest form of structured answer that held, `structured` whether the first
    such question was answered well (None: none was asked; with False and no rung, no form held).  `tools`: whether a native tool call was
    made and well.  `seed_repeats` is None also where the
    answers do not vary at all.  `rates` are completion tokens a second over all that was in flight, by how much was: {"1": 40.0,
    "8": 120.0}.  `at` is UTC, ISO 8601.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str
    base_url: str | None
    at: str
    listed: bool | None = None
    context: int | None = None
    limit: int | None = None
    cut: bool | None = None
    usage: bool | None = None
    rung: Rung | None = None
    structured: bool | None = None
    tools: bool | None = None
    seed_repeats: bool | None = None
    omitted: tuple[str, ...] = ()
    rates: dict[str, float] = Field(default_factory=dict)
    style: StyleName = "full"

    def beside(self, earlier: Probed | None) -> Probed:
        """What this look found, and from an earlier one what this did not ask for."""
        if earlier is None:
            return self
        mine, before = self.model_dump(), earlier.model_dump()
        kept = {name: before[name] for name in ("listed", "usage", "tools", "seed_repeats") if mine[name] is None}
        return Probed(**mine | kept | {"rates": mine["rates"] or before["rates"]})

    def takes(self, length: int) -> bool | None:
        """Whether a prompt of so many tokens is seen whole; None where that is not known."""
        if self.context is not None and length <= self.context:
            return True
        return False if self.limit is not None and self.limit <= length else None


def style_for(*, rung: Rung | None, structured: bool | None, context: int | None, limit: int | None) -> StyleName:
    """How an endpoint is to be asked where nobody says it.

    Compact where no form of structured answer better than plain text holds, the model answered the one structured question badly, or
    prompts are known to be cut or refused before FULL_NEEDS tokens; else full.
    """
    weak = structured is False or (structured is not None and rung in (None, "plain"))
    return "compact" if weak or (limit is not None and (context or 0) < FULL_NEEDS) else "full"


def now() -> str:
    """The moment, as a record keeps it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def place_of(backbone: str, base_url: str | None) -> str | None:
    """Where a backbone listens: what was given, else what the environment says; None for the provider's own address."""
    return base_url or (os.environ.get("OPENAI_BASE_URL") or None if backbone.startswith("openai:") else None)


def recall(backbone: str, base_url: str | None) -> Probed | None:
    """What is known of this backbone at this address; None where nothing is, or it is too old."""
    base_url = place_of(backbone, base_url)
    try:
        found = Probed.model_validate_json(_file(backbone, base_url).read_text(encoding="utf-8"))
        fresh = datetime.now(UTC) - datetime.fromisoformat(found.at) < FRESH
    except (OSError, ValueError, ValidationError, TypeError):
        return None  # a cache: what cannot be read is asked anew
    return found if fresh and (found.backbone, found.base_url) == (backbone, base_url) else None


def keep(probed: Probed) -> Path | None:
    """Write it down; None where there is no place for it, which is no reason not to go on."""
    file = _file(probed.backbone, probed.base_url)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(probed.model_dump_json(indent=2) + "\n", encoding="utf-8")
        new.replace(file)
        return file
    return None


def _file(backbone: str, base_url: str | None) -> Path:
    import platformdirs

    name = hashlib.sha256(f"{backbone}\0{base_url or ''}".encode()).hexdigest()[:24]
    return Path(platformdirs.user_cache_path("taskweave")) / "probes" / f"{name}.json"
