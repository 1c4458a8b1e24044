"""Which run is it that "replay:RUN" answers from?  Entry points: `replay`, `lasting`.

It only finds the run and what it was told; how its journal answers is in `backbones/replaying.py`.
"""

from __future__ import annotations

from taskweave.backbones.replaying import Replay
from taskweave.errors import BadInput
from taskweave.runs.folder import RunFolder

KIND = "replay"


def replay(spec: str, *, base_url: str | None = None) -> Replay:
    """The answers of the run that "replay:RUN" names, under the name of the backbone that gave them.  Raises BadInput, RunRefused."""
    run = spec.partition(":")[2].strip()
    if base_url is not None:
        raise BadInput(f"the base URL {base_url!r} has no meaning for the backbone {spec!r}: nothing is asked; leave it out")
    if not run:
        raise BadInput("backbone 'replay' names no run; write for example 'replay:runs/company-a-1'")
    folder = RunFolder.open(run)
    return Replay(folder.config.segments[-1].backbone, folder.journal_path, folder.config.style)


def lasting(spec: str) -> str:
    """The same backbone as a later process, in another folder, has to name it."""
    return f"{KIND}:{RunFolder.open(spec.partition(':')[2].strip()).path.absolute()}"
