"""TaskWeave simulates an organization for a year with language-model agents.

    import taskweave as tw
    run = tw.simulate("company_a", until="week:8")
    run.tasks().df()

Importing it loads nothing; each name loads its room when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskweave.api import Organization, Run, Table, diff, runs, simulate
    from taskweave.errors import (
        BackboneOut,
        BadInput,
        BudgetReached,
        Divergence,
        EngineFault,
        IncidentInvalid,
        Interrupted,
        OrganizationInvalid,
        PromptInvalid,
        RunRefused,
        Stopped,
        TaskWeaveError,
    )

_FROM_API = ("Organization", "Run", "Table", "diff", "runs", "simulate")
_FROM_ERRORS = (
    "BackboneOut",
    "BadInput",
    "BudgetReached",
    "Divergence",
    "EngineFault",
    "IncidentInvalid",
    "Interrupted",
    "OrganizationInvalid",
    "PromptInvalid",
    "RunRefused",
    "Stopped",
    "TaskWeaveError",
)

__all__ = [
    "BackboneOut",
    "BadInput",
    "BudgetReached",
    "Divergence",
    "EngineFault",
    "IncidentInvalid",
    "Interrupted",
    "Organization",
    "OrganizationInvalid",
    "PromptInvalid",
    "Run",
    "RunRefused",
    "Stopped",
    "Table",
    "TaskWeaveError",
    "__version__",
    "diff",
    "runs",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _FROM_API:
        return getattr(importlib.import_module("taskweave.api"), name)
    if name in _FROM_ERRORS:
        return getattr(importlib.import_module("taskweave.errors"), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'taskweave' has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("taskweave")
    except PackageNotFoundError:  # a checkout that is not installed
        return "0+checkout"


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """`tw.runs("runs/*")` is a function of the API, while `taskweave.runs` is also a room, whose import would take the name's place."""

    @property
    def runs(self) -> Any:
        return importlib.import_module("taskweave.api").runs

    @runs.setter
    def runs(self, room: ModuleType) -> None:
        """The room stays where imports find it."""


sys.modules[__name__].__class__ = _Package
