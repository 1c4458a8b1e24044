"""What was asked at a site, and what came back?  Entry points: `calls_at`, `render` (for a terminal), `as_json` (for a program).

Reads journal.db only.  An answer is shown as it came and, where it is JSON, as it parses.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from taskweave.backbones.legible import UNSEEN
from taskweave.backbones.reading import values
from taskweave.engine.reader import Call, JournalReader
from taskweave.errors import BadInput
from taskweave.records import Completion, Json
from taskweave.runs import RunFolder

_UNSEEN = re.compile(f"[{UNSEEN}\r]")  # what would steer the terminal on which an answer is shown


def calls_at(folder: RunFolder, site: str) -> list[Call]:
    """All that was asked at a site, in order.  Raises BadInput naming the nearest sites where nothing was."""
    with JournalReader(folder.journal_path, whole=True) as journal:
        if found := journal.calls(site):
            return found
        sites = journal.sites()
        ends = [one for one in sites if one.endswith(site)]
        if len(ends) == 1:
            return journal.calls(ends[0])
    near = ends[:5] or [one for one in sites if one.startswith(site)][:5] or difflib.get_close_matches(site, sites, n=5, cutoff=0.3)
    some = f"A site is for example {sites[0]}." if sites else "Nothing was asked in this run yet."
    hint = "The nearest: " + ", ".join(near) + "." if near else some
    raise BadInput(f"{site!r}: nothing was asked there. {hint}")


def parsed(call: Call) -> Json:
    """The JSON in an answer, of several values the last; None where there is none, or nothing has come."""
    text = call.outcome.get("text") if isinstance(call.outcome, dict) else call.outcome
    if not isinstance(text, str):
        return text
    try:
        return values(Completion(text=text), 0)[0].value
    except ValueError:
        return None


def as_json(calls: Sequence[Call]) -> dict[str, Any]:
    """All of it, as JSON values."""
    return {"site": calls[0].site, "calls": [{**asdict(call), "parsed": parsed(call)} for call in calls]}


def render(calls: Sequence[Call]) -> RenderableType:
    """All of it, as a person reads it."""
    return Group(*(part for call in calls for part in _one(call)))


def _one(call: Call) -> list[RenderableType]:
    asked = f"{call.prompt} version {call.version}" if call.prompt is not None else call.kind
    stand_in = "  [scripted stand-in]" if call.backbone == "scripted" else ""
    parts: list[RenderableType] = [
        Text.assemble((f"{call.site} #{call.ordinal}", "bold"), f"  {asked}", (stand_in, "yellow")),
        _line("backbone", f"{call.backbone or '-'}, seed {call.seed if call.seed is not None else '-'}, draw {call.draw}"),
        _line("sampling", ", ".join(f"{k} {v}" for k, v in (call.sampling or {}).items()) or "-"),
        _line("schema", str((call.schema or {}).get("title", "yes")) if call.schema else "none"),
    ]
    for role, text in call.messages:
        parts += [Text(f"--- {role}", "cyan"), Padding(Text(text.rstrip()), (0, 2))]
    for attempt in call.attempts:
        why = f": {attempt.why}" if attempt.why else ""
        end = f"{attempt.how} {attempt.ended}{why}" if attempt.how else "no end: in flight, or lost"
        parts.append(_line(f"attempt {attempt.id}", f"{attempt.at}, at most {attempt.est} tokens; {end}"))
    if served := _served(call):
        parts.append(_line("served by", served))
    parts.append(Text("--- answer", "cyan"))
    parts.append(Padding(Text(_raw(call)), (0, 2)))
    if (value := parsed(call)) is not None:
        parts.append(Text("--- parsed", "cyan"))
        parts.append(Padding(Text(json.dumps(value, indent=2, ensure_ascii=False)), (0, 2)))
    return [*parts, Text()]


def _served(call: Call) -> str:
    """What answered, in which form it was asked, and what of the sampling it did not take; nothing where it said none of that."""
    answer = call.outcome if isinstance(call.outcome, dict) else {}
    said = [str(answer["model"])] if answer.get("model") else []
    said += [f"fingerprint {answer['fingerprint']}"] if answer.get("fingerprint") else []
    said += [f"asked as {answer['rung']}"] if answer.get("rung") else []
    said += [f"without {', '.join(answer['omitted'])}"] if answer.get("omitted") else []
    return ", ".join(said)


def _raw(call: Call) -> str:
    if call.outcome is None:
        return "none yet"
    if not isinstance(call.outcome, dict) or "text" not in call.outcome:
        return json.dumps(call.outcome, ensure_ascii=False)
    answer = call.outcome
    if answer.get("refusal"):
        return f"refused: {_shown(answer['refusal'])}"
    finish = answer.get("finish", "stop")
    return _shown(answer["text"]) + ("" if finish == "stop" else f"\n({finish})")


def _shown(text: object) -> str:
    """A text whose unseen characters are written as escapes."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def _line(name: str, value: str) -> Text:
    return Text.assemble((f"  {name:<10} ", "dim"), value)
