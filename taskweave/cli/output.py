"""What reaches stdout and stderr, and in which form.

Entry points: `line`, `show`, `document`, `answer` (stdout); `note`, `warn`, `trouble` (stderr).  With --json stdout is one object.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from taskweave.errors import BackboneOut, BadInput

QUOTES = "'\""
# Longer than a path that one may have to type again.
_ENDLESS = re.compile(r"'[^'\n]{250,}'|\"[^\"\n]{250,}\"|\S{250,}")
_LINE = 2000
_FULL = (errno.ENOSPC, errno.EDQUOT)
_json_only = False

MOST_WARNINGS = 10  # that are shown


def json_only(asked: bool) -> None:
    """Whether stdout is to carry one JSON object and nothing else."""
    global _json_only
    _json_only = asked


def is_json_only() -> bool:
    """Whether --json was given."""
    return _json_only


def _nowhere() -> TextIO:
    """A stream that takes everything, open as long as the process."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def tolerant_streams() -> None:
    """A terminal that cannot show a character shows another one; text never ends a run."""
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = _nowhere()
    if sys.stdout is None:
        sys.stdout = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def line(text: str = "") -> None:
    """One line for a person, on stdout."""
    if not _json_only:
        with _while_somebody_reads():
            print(text)


def show(renderable: Any) -> None:
    """Something that rich can draw, on stdout."""
    if not _json_only:
        with _while_somebody_reads():
            console(sys.stdout).print(renderable)


def document(text: str) -> None:
    """A file's content on stdout: UTF-8 to a pipe or a file, whatever the terminal's encoding is."""
    if _json_only:
        return
    text = text if text.endswith("\n") else text + "\n"
    binary = getattr(sys.stdout, "buffer", None)
    with _while_somebody_reads():
        if binary is None or sys.stdout.isatty():
            sys.stdout.write(text)
            return
        sys.stdout.flush()
        binary.write(text.encode())
        binary.flush()


def answer(value: Mapping[str, Any]) -> None:
    """The one JSON object of --json; nothing where it was not asked for."""
    if _json_only:
        with _while_somebody_reads():
            print(json.dumps(_finite(value), ensure_ascii=True, sort_keys=False, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    """JSON has no number that is infinite, or none: such a one is the text "inf", "-inf" or "nan"."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def note(text: str) -> None:
    """One line on stderr.  A closed stderr is no reason to end a run."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    """What was odd, but no reason not to answer: a line each on stderr, as far as anybody reads them."""
    first, rest = (found := list(warnings))[:MOST_WARNINGS], len(found) - MOST_WARNINGS
    for warning in first:
        note(f"warning: {warning}")
    if rest > 0:
        note(f"warning: … and {rest} more of these")


def trouble(text: str, code: int) -> None:
    """An error: to stderr for a person, and as the object of --json."""
    text = shortened(text)
    note(f"taskweave: {text}")
    answer({"error": text, "exit": code})


def shortened(text: str) -> str:
    """A message in which no single value or word, and no line, is endless."""
    text = _ENDLESS.sub(lambda found: f"{found[0][:80]}…{found[0][-1] if found[0][0] in QUOTES else ''}", text)
    lines = (one if len(one) <= _LINE else f"{one[:_LINE]}… (and {len(one) - _LINE} characters more)" for one in text.split("\n"))
    return "\n".join(lines)


def console(stream: TextIO) -> Any:
    """A rich console on a stream; 100 columns where it is no terminal, so that tables do not depend on who reads them."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False, width=None if stream.isatty() else 100, soft_wrap=False)


def columns() -> int:
    """How wide stdout is."""
    return int(console(sys.stdout).width)


def flush() -> None:
    with _while_somebody_reads():
        sys.stdout.flush()


@contextlib.contextmanager
def _while_somebody_reads() -> Iterator[None]:
    """A terminal that was closed meanwhile takes nothing more, and is no trouble: how the command ends is what it would have ended with."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        abandon_stdout()


def settle() -> int | None:
    """Write out what is left for stdout; the exit code where that fails."""
    try:
        flush()
    except OSError as error:
        return out_of_reach(error)
    return None


def out_of_reach(error: OSError) -> int | None:
    """What to end with where stdout cannot be written, or a name is none; None for other trouble."""
    if isinstance(error, BrokenPipeError):
        abandon_stdout()
        return 141  # as a process that SIGPIPE ended
    if error.errno in _FULL:
        abandon_stdout()
        where = "the output cannot be written" if error.filename is None else f"{error.filename} cannot be written"
        note(f"taskweave: {where}: {error.strerror}. Free some space and type the command again.")
        return BackboneOut.exit_code
    if error.errno == errno.ENAMETOOLONG:
        trouble(f"{str(error.filename)!r}: no file can have a name of {len(str(error.filename))} characters.", BadInput.exit_code)
        return BadInput.exit_code
    return None


def abandon_stdout() -> None:
    """Nobody reads stdout any more: what is left in its buffer must not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
