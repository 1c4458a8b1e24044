"""What can go wrong, as one tree.  Each class is named for the trouble and says what, where and what to do.

    TaskWeaveError
    ├── BadInput                exit 2   what a person gave cannot be used
    │   ├── FileInvalid                  a file, every problem in it at once
    │   │   ├── OrganizationInvalid      the organization file
    │   │   ├── IncidentInvalid          an incident file
    │   │   └── RoutingInvalid           a routing file
    │   ├── PromptInvalid                a prompt file, or its variables
    │   └── RunRefused                   the run folder: locked, exists, missing, finished, in the past
    ├── Stopped                          the run ended early and can be resumed
    │   ├── BudgetReached       exit 3
    │   ├── TooManyFallbacks    exit 3   more answers had to be made by code than --max-fallback allows
    │   ├── BackboneOut         exit 75  outage, wrong key, no quota, unknown model, disk full
    │   │   └── DiskFull                 journal or run.db cannot be written; the engine stops before the next request
    │   └── Interrupted         exit 130
    ├── Divergence              exit 5   re-execution gave another week than the journal holds
    ├── Transient                        one attempt failed and may be tried again; never leaves the gateway
    ├── ToolRefused                      a tool says no: evidence for whoever called it; never ends a run
    ├── Refused                          the provider will not take this endpoint, key or model; stops the run
    └── EngineFault             exit 1   a bug in the program that uses the engine; shown with its traceback

The command line prints a TaskWeaveError without a traceback, except EngineFault, and lets all others through with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class TaskWeaveError(Exception):
    """Any trouble that TaskWeave itself names."""

    exit_code = 1


class BadInput(TaskWeaveError):
    """What a person gave cannot be used."""

    exit_code = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing wrong in a file: where, what, and what to do about it."""

    file: str
    line: int | None
    what: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}"


class FileInvalid(BadInput):
    """A file with every problem found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class OrganizationInvalid(FileInvalid):
    """The organization file cannot be read as one."""


class IncidentInvalid(FileInvalid):
    """An incident file cannot be read as one."""


class RoutingInvalid(FileInvalid):
    """A routing file cannot be read as one, or names a backbone that cannot be asked."""


class PromptInvalid(BadInput):
    """A prompt file is malformed, or its variables are not the inputs it is given."""


class RunRefused(BadInput):
    """The run folder cannot be used in this way; the message names the command that can."""


class Stopped(TaskWeaveError):
    """The run ended before its horizon; `resume` continues it."""


class BudgetReached(Stopped):
    exit_code = 3


class TooManyFallbacks(Stopped):
    exit_code = 3


class BackboneOut(Stopped):
    exit_code = 75


class DiskFull(BackboneOut):
    """The journal or run.db cannot be written: no room, or the disk reports an error."""


class Interrupted(Stopped):
    exit_code = 130


class Divergence(TaskWeaveError):
    """Re-execution gave another closed week than the journal holds."""

    exit_code = 5


class Transient(TaskWeaveError):
    """One attempt failed and may be tried again.

    `retry_after` is in seconds, 0 where the provider named none; `billed` says that an answer may have been made, and billed, all the
    same: nobody waited any longer, or the connection broke after the request had been sent.
    """

    def __init__(self, why: str, retry_after: float = 0.0, *, billed: bool = False) -> None:
        super().__init__(why)
        self.retry_after = retry_after
        self.billed = billed


class Refused(TaskWeaveError):
    """The provider will not take this endpoint, key or model: trying again cannot help."""


class EngineFault(TaskWeaveError):
    """A rule of the engine was broken by the program that uses it: a value read before its barrier, a site used twice."""


class ToolRefused(TaskWeaveError):
    """A tool says no, and why: evidence for whoever called it, and a record; it never ends a run."""
