"""The two dice of an answer: `draws` (seed alone: hours, dependencies, counts, roles) and `words` (seed and inputs: wording)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from random import Random

from taskweave.records import Json

_SHARED = ("organization", "plans", "roles", "role", "activities")


@dataclass(frozen=True, slots=True)
class Dice:
    draws: Random
    words: Random

    @classmethod
    def of(cls, seed: int, inputs: Mapping[str, Json]) -> Dice:
        # What all requests of a run share, or all of one author, is left out: it tells none of them apart.
        text = json.dumps({name: value for name, value in inputs.items() if name not in _SHARED}, sort_keys=True)
        digest = blake2b(f"{seed}:{text}".encode(), digest_size=8).digest()
        return cls(Random(seed), Random(int.from_bytes(digest, "big")))
