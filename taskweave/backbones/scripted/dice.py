"""The two dice of an answer: `draws` (seed alone: hours, dependencies, counts, roles) and `words` (seed and inputs: wording)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from json import JSONEncoder
from random import Random

from taskweave.records import Json

_SHARED = ("organization", "plans", "roles", "role", "activities")


_ENCODER = JSONEncoder(sort_keys=True, check_circular=False)  # requests are JSON values: they hold no circles


@dataclass(slots=True)
class Dice:
    words: Random
    seed: int
    _draws: Random | None = None

    @property
    def draws(self) -> Random:
        """Made when first asked for: most steps word what others have drawn."""
        if self._draws is None:
            self._draws = Random(self.seed)
        return self._draws

    @classmethod
    def of(cls, seed: int, inputs: Mapping[str, Json]) -> Dice:
        # What all requests of a run share, or all of one author, is left out: it tells none of them apart.
        text = _ENCODER.encode({name: value for name, value in inputs.items() if name not in _SHARED})
        digest = blake2b(f"{seed}:{text}".encode(), digest_size=8).digest()
        return cls(Random(int.from_bytes(digest, "big")), seed)
