"""What does somebody with this title usually do?  Entry points: `lookup(title)` and `generic(title)`.

The catalogue is data: `orgs/roles/*.yaml`, mappings from a title to its entry, read once, strictly.  A title is found whatever its case.
Refuses to know any organization.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from taskweave.errors import OrganizationInvalid, Problem
from taskweave.org import form
from taskweave.org.form import Field, Kind, Reading
from taskweave.org.organization import ACTIVITIES, Value
from taskweave.org.yamlfile import Unreadable, compose, read_limited
from taskweave.records import Json
from taskweave.shipped import shipped

TITLE_MARK = "{title}"


class CatalogueEntry(Value):
    """What a title brings along; `hours` are the least and most that one of its subtasks takes."""

    title: str
    responsibilities: tuple[str, ...]
    skills: tuple[str, ...]
    hours: tuple[float, float]
    activities: tuple[str, ...]
    artifacts: tuple[str, ...]
    tools: tuple[str, ...] = ()
    subjects: tuple[str, ...]


def _activity(text: str) -> str:
    if text not in ACTIVITIES:
        raise ValueError(f"unknown activity {form.said(text)}{form.nearest(text, ACTIVITIES)}")
    return text


_TEXTS = form.listing(form.TEXT)
_ENTRY = form.record(
    {
        "responsibilities": Field(_TEXTS, "what this role is answerable for", required=True),
        "skills": Field(_TEXTS, "what it can do", required=True),
        "hours": Field(form.HOURS, "least and most hours of a subtask", required=True),
        "activities": Field(
            form.listing(form.scalar(_activity, {"enum": list(ACTIVITIES)}, "an activity")), "its activities", required=True
        ),
        "artifacts": Field(_TEXTS, "the kinds of its deliverables", required=True),
        "tools": Field(_TEXTS, "the tools it uses"),
        "subjects": Field(_TEXTS, "what its work is about", required=True),
    }
)
_FILE: Kind = form.mapping_of(form.clean_name, _ENTRY, "a title")


def read_catalogue(folder: Path) -> dict[str, CatalogueEntry]:
    """All entries below a folder by case-folded title; raises OrganizationInvalid with every problem of every file."""
    entries: dict[str, CatalogueEntry] = {}
    problems: list[Problem] = []
    for path in sorted(folder.glob("*.yaml")):
        reading = Reading(str(path))
        for title, values in _read(reading, path).items():
            if title.casefold() in entries:
                reading.wrong_at((title,), f"the title {title!r} has an entry already, as {entries[title.casefold()].title!r}")
            elif not reading.problems:
                entries[title.casefold()] = CatalogueEntry(title=title, **values)
        problems += reading.problems
    if problems:
        raise OrganizationInvalid(problems)
    return entries


def _read(reading: Reading, path: Path) -> dict[str, dict[str, Json]]:
    try:
        return _FILE.read(reading, compose(read_limited(path)), ()) or {}
    except Unreadable as why:
        reading.problems.append(why.problem(reading.file))
        return {}


@cache
def _shipped_catalogue() -> dict[str, CatalogueEntry]:
    return read_catalogue(shipped("orgs") / "roles")


def lookup(title: str) -> CatalogueEntry | None:
    """The entry of a title in any case; None where the catalogue has none."""
    return _shipped_catalogue().get(" ".join(title.split()).casefold())


def titles() -> tuple[str, ...]:
    """All titles of the catalogue."""
    return tuple(entry.title for entry in _shipped_catalogue().values())


@cache
def _generic() -> CatalogueEntry:
    (entry,) = read_catalogue(Path(__file__).parent / "generic").values()
    return entry


def generic(title: str) -> CatalogueEntry:
    """An entry for a title that nobody described: office work that speaks of the title."""
    values = _generic().model_dump()
    for name in ("responsibilities", "subjects", "skills"):
        values[name] = tuple(text.replace(TITLE_MARK, title) for text in values[name])
    return CatalogueEntry(**{**values, "title": title})
