"""Runs in which nothing but chance differs: a stand-in whose answers are drawn anew from some week on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from taskweave.backbones.scripted import Scripted
from taskweave.records import Json, Request
from tests.simulated import Stub

_WRITER = Scripted()


def redrawn(week: int, draw: int) -> Mapping[str, Stub]:
    """Stubs that plan the weeks from `week` on as the stand-in would under another draw."""

    def answer(request: Request) -> Json:
        number = re.search(r"week (\d+)", str(request.inputs["unit"]["period"]))
        seed = request.seed + 7_919 * draw if number is not None and int(number[1]) >= week else request.seed
        answered: Json = json.loads(_WRITER.text(request.prompt, request.inputs, seed))
        return answered

    return {"formulate": answer, "partition_week": answer}
