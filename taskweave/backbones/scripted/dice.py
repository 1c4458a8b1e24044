"""The two dice of an answer: `draws` (seed alone: hours, dependencies, counts, roles) and `words` (seed and inputs: wording)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from random import Random

from taskweave.records import Json


@dataclass(frozen=True, slots=True)
class Dice:
    draws: Random
    words: Random

    @classmethod
    def of(cls, seed: int, inputs: Mapping[str, Json]) -> Dice:
        text = json.dumps(inputs, sort_keys=True)
        digest = blake2b(f"{seed}:{text}".encode(), digest_size=8).digest()
        return cls(Random(seed), Random(int.from_bytes(digest, "big")))
