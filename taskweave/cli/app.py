"""The command line's frame: how errors become messages and exit codes, and the arguments that several commands share.

Entry point: `app`.  Knows no command.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from taskweave import errors, interrupts
from taskweave.cli import output
from taskweave.records import StyleName, is_text

_USAGE: Any = typer.BadParameter.__mro__[1]  # click's UsageError, wherever this typer keeps its click


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """Turns what ends a command into its message and exit code."""
    try:
        yield
    except _USAGE as error:
        # "Value error" is pydantic's, which newer typers pass on.
        error.message = output.shortened(error.message.removeprefix("Value error, "))
        raise
    except OSError as error:
        if (code := output.out_of_reach(error)) is None:
            raise
        raise typer.Exit(code) from None
    except KeyboardInterrupt:
        output.note(f"taskweave: {interrupts.message()}")
        raise typer.Exit(errors.Interrupted.exit_code) from None
    except errors.EngineFault:
        raise
    except errors.TaskWeaveError as error:
        output.trouble(str(error), error.exit_code)
        raise typer.Exit(error.exit_code) from None


class Door(TyperGroup):
    """A TaskWeaveError is printed without a traceback and ends with its exit code; all others pass with one."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with _named():
            _refuse_bytes(args)
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _named():
                value = super().invoke(ctx)
                output.flush()
                return value
        finally:
            if not interrupts.heard():  # an interrupt that came out as another error is told of further out, and names the run
                interrupts.name(None)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


def _refuse_bytes(args: Sequence[str]) -> None:
    """Raises BadInput for an argument that is no text: its bytes could be neither written down nor shown, and a later command needs it."""
    for word in args:
        if not is_text(word):
            output.json_only("--json" in args)
            said = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            coding = sys.getfilesystemencoding()
            todo = "name it in UTF-8" if coding == "utf-8" else f"this shell's encoding is {coding}; set PYTHONUTF8=1, or LC_ALL=C.UTF-8"
            raise errors.BadInput(f"the argument '{said}' cannot be read as text: {todo}. Nothing was written.")


app = typer.Typer(
    cls=Door,
    name="taskweave",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Simulate an organization for a year with language-model agents: exact, durable, explained.\n\n"
    "Begin with [bold]taskweave run company_a[/bold]: a year of a small software company, offline, in well under a minute.",
    epilog="Exit codes: 0 done; 1 a bug; 2 bad input; 3 a budget or --max-fallback; 5 divergence; 75 backbone out; 130 interrupted. "
    "After 3, 75 and 130 the run can be resumed.",
)


def _version(asked: bool) -> None:
    if asked:
        from taskweave import __version__

        output.line(f"taskweave {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end, e.g. taskweave --version.")
    ] = False,
) -> None:
    pass


def _as_json(asked: bool) -> bool:
    output.json_only(asked)
    return asked


class Assign(StrEnum):
    """Who chooses the roles of subtasks."""

    match = "match"
    model = "model"


class Style(StrEnum):
    """How steps are asked."""

    full = "full"
    compact = "compact"


def named_assign(given: Assign) -> Literal["match", "model"]:
    """The choice as a run takes it."""
    return "model" if given is Assign.model else "match"


def named_style(given: Style | None) -> StyleName | None:
    """The choice as a run takes it; None where none was made."""
    return None if given is None else "compact" if given is Style.compact else "full"


Org = Annotated[
    str,
    typer.Argument(
        metavar="ORG", help="An organization file, or the name of a built-in one, e.g. company_a or ./acme.yaml.", show_default=False
    ),
]
RunName = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run folder, or its name under runs/, e.g. runs/company-a-1 or company-a-1.", show_default=False),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", callback=_as_json, is_eager=True, help="Print one JSON object on stdout and nothing else, e.g. --json | jq ."),
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts", metavar="DIR", help="Prompt files that lie over the shipped ones, e.g. --prompts acme/prompts.", show_default=False
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Your own prices, in the form of the shipped ones; they go before those, e.g. --prices prices.yaml.",
        show_default=False,
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="N/PERIOD",
        help="Draw so many of the incidents that name no time in each week, month, quarter or year, e.g. --rate 1/month.",
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="PART",
        help="A part of the loop to leave out: diagnose, align, reconcile, roll_up or retrieval; may be given more than once, "
        "e.g. --without diagnose.",
        show_default=False,
    ),
]
Until = typer.Option(
    "--until",
    metavar="HORIZON",
    help="Where to end: week:8, month:3, quarter, quarter:2, year or a date, e.g. --until quarter:2.",
)
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="Where an OpenAI-compatible server listens, e.g. --base-url http://localhost:8000/v1.",
        show_default=False,
    ),
]
