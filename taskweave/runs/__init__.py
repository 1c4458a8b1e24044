"""The run folder: what a run was told, where its files lie, who holds it, and how another process speaks to it.

Entry points: `RunFolder.create`, `RunFolder.open`, `list_runs`.  Knows nothing of what is inside journal.db and run.db.
"""

from __future__ import annotations

from taskweave.runs.config import RunConfig, Segment
from taskweave.runs.folder import Injection, RunFolder, default_path, list_runs
from taskweave.runs.inbox import Inbox
from taskweave.runs.lock import Holder

__all__ = ["Holder", "Inbox", "Injection", "RunConfig", "RunFolder", "Segment", "default_path", "list_runs"]
