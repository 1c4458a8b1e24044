"""What is known of an endpoint from having probed it: `Probed`, kept between runs in the user's cache folder.

Entry points: `recall`, `keep`.  It asks nothing itself, and holds no key: only the backbone's name, where it listens, and what was found.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Rung = Literal["json_schema", "json_object", "plain"]
FRESH = timedelta(days=7)  # a server is set up anew, a model exchanged: after that it is asked again


class Probed(BaseModel):
    """One look at an endpoint; None is not known.

    `context` is the longest prompt in tokens (UTF-8 bytes / 4) whose beginning was seen by the model, `cut` whether a longer one was
    cut without a word.  `rung` is the highest form of structured answer that held (None: none did).  `rates` are completion tokens a second
    over all that was in flight, by how much was: {"1": 40.0, "8": 120.0}.  `at` is UTC, ISO 8601.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str
    base_url: str | None
    at: str
    listed: bool | None = None
    context: int | None = None
    cut: bool | None = None
    usage: bool | None = None
    rung: Rung | None = None
    seed_repeats: bool | None = None
    omitted: tuple[str, ...] = ()
    rates: dict[str, float] = Field(default_factory=dict)
    style: Literal["full", "compact"] = "full"


def recall(backbone: str, base_url: str | None) -> Probed | None:
    """What is known of this backbone at this address; None where nothing is, or it is too old."""
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
