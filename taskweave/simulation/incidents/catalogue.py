"""Which incidents come with TaskWeave?  Entry points: `entries` for whoever lists them, `chosen` for whoever reads them.

They are ordinary incident files, `orgs/incidents/CATEGORY.yaml`, that name nobody of one organization only.  An incident's name is the
slug of its title.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taskweave.errors import BadInput
from taskweave.org.organization import slug
from taskweave.org.yamlfile import Listing, Mapping, Node, Scalar, compose, read_limited
from taskweave.shipped import shipped

PREFIX = "library:"
HOW = "'taskweave incidents' lists what there is."


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One incident of the library, as whoever chooses one wants to see it; `effects` are the kinds of its effects."""

    name: str
    title: str
    category: str
    severity: str
    description: str
    basis: str
    duration: str
    effects: tuple[str, ...]
    file: Path
    node: Mapping

    def says(self, word: str) -> bool:
        """Whether the word stands in any of its texts, in any case of letters."""
        said = [self.name, self.title, self.category, self.severity, self.description, self.basis, *self.effects]
        return word.casefold() in " ".join(said).casefold()


def is_library(path: Path) -> bool:
    """Whether incidents of the library are meant, and no file."""
    return str(path).startswith(PREFIX)


def entries() -> list[Entry]:
    """All of them, by file and in its order."""
    return [
        _entry(file, node)
        for file in sorted((shipped("orgs") / "incidents").glob("*.yaml"))
        for node in _items(compose(read_limited(file)))
        if isinstance(node, Mapping)
    ]


def chosen(asked: str) -> Iterator[tuple[Path, tuple[Node, ...]]]:
    """The nodes that `library:policy`, `library:NAME` or `library:all` means, by file.  Raises BadInput where there is none."""
    name, there = asked.removeprefix(PREFIX).strip(), entries()
    meant = [one for one in there if name in ("all", one.category, one.name)]
    if not meant:
        names = [*dict.fromkeys(one.category for one in there), *(one.name for one in there)]
        close = difflib.get_close_matches(slug(name), names, n=3, cutoff=0.5)
        hint = f" The nearest: {', '.join(close)}." if close else ""
        raise BadInput(f"{asked}: the library has no such incident and no such category.{hint} {HOW}")
    for file in dict.fromkeys(one.file for one in meant):
        yield file, tuple(one.node for one in meant if one.file == file)


def _entry(file: Path, node: Mapping) -> Entry:
    texts = {key.text: " ".join(value.text.split()) for key, value in node.entries if isinstance(value, Scalar)}
    effects = next((value for key, value in node.entries if key.text == "effects"), Listing(0, ()))
    kinds = [item.entries[0][0].text for item in _items(effects) if isinstance(item, Mapping) and item.entries]
    title = texts.get("title", "")
    return Entry(
        name=slug(title),
        title=title,
        category=texts.get("category", "internal"),
        severity=texts.get("severity", "medium"),
        description=texts.get("description", ""),
        basis=texts.get("basis", ""),
        duration=texts.get("duration", ""),
        effects=tuple(dict.fromkeys(kinds)),
        file=file,
        node=node,
    )


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Listing) else (node,)
