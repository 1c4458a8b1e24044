"""What does a YAML text say, and on which line?  Entry points: `read_limited` (file -> bytes) and `compose` (text -> nodes).

Every scalar stays the text that was written (`NO`, `9:30`, `012`): the field it stands in decides what it means.  Built from the
parser's events, so that size, depth and aliases are bounded before anything is expanded.  Refuses to know any field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from taskweave.errors import BadInput, Problem

SIZE_LIMIT = 1_000_000  # bytes; a description of 1,000 roles takes less than half of it
DEPTH_LIMIT = 20
NODE_LIMIT = 100_000

_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster and not always there


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; `empty` where nothing was written at all (`key:`)."""

    line: int
    text: str
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A sequence of nodes."""

    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their nodes, in file order; a key that was written twice stands here twice."""

    line: int
    entries: tuple[tuple[Scalar, Node], ...]


Node = Scalar | Listing | Mapping


class Unreadable(BadInput):
    """The text is not one YAML document of plain mappings, lists and texts."""

    def __init__(self, line: int | None, what: str) -> None:
        self.line, self.what = line, what
        super().__init__(what)

    def problem(self, file: str) -> Problem:
        """The same as a problem of this file."""
        return Problem(file=file, line=self.line, what=self.what)


def read_limited(path: Path) -> bytes:
    """The bytes of a file; raises Unreadable where it is no file, cannot be read or is too large."""
    try:
        if not path.is_file():
            raise Unreadable(None, "is a folder, not a file" if path.is_dir() else "there is no such file")
        with path.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as refused:
        reason = refused.strerror if isinstance(refused, OSError) else str(refused)
        raise Unreadable(None, f"cannot be read: {reason}") from None
    if len(data) > SIZE_LIMIT:
        raise Unreadable(None, f"is larger than {SIZE_LIMIT:,} bytes, the most that is read; is it the right file?")
    return data


def compose(text: str | bytes) -> Node:
    """The document's node; raises Unreadable with the line of the first trouble."""
    text = _decoded(text)
    if not text.strip():
        raise Unreadable(1, "is empty")
    try:
        return _document(yaml.parse(text, Loader=_PARSER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f" {error.context}" if error.context else ""
        raise Unreadable(mark.line + 1 if mark else None, f"is not YAML: {error.problem or 'cannot be read'}{context}") from None
    except yaml.YAMLError as error:  # a character that YAML forbids
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        raise Unreadable(line, f"is not YAML: {getattr(error, 'reason', error)}") from None


def _decoded(text: str | bytes) -> str:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > SIZE_LIMIT:
        raise Unreadable(None, f"is larger than {SIZE_LIMIT:,} bytes, the most that is read; is it the right file?")
    try:
        decoded = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(line, f"is not UTF-8: byte 0x{data[error.start]:02x}; save the file as UTF-8") from None
    # Looked for here because the two parsers of PyYAML name the place in different units.
    if forbidden := re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]", decoded):
        line = decoded.count("\n", 0, forbidden.start()) + 1
        raise Unreadable(line, f"is not YAML: the control character {forbidden[0]!r} may not stand in it")
    return decoded


def _document(events: Iterator[yaml.Event]) -> Node:
    """The one document of a stream of events."""
    root: Node | None = None
    open_: list[_Open] = []
    nodes = documents = 0
    for event in events:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Unreadable(line, "holds a second document ('---'); write one organization a file")
        elif isinstance(event, yaml.AliasEvent):
            raise Unreadable(line, f"aliases are not read: write out what '*{event.anchor}' stands for")
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            nodes += 1
            if event.tag not in (None, "!"):
                raise Unreadable(line, f"the tag {event.tag!r} is not read; write the plain value")
            if nodes > NODE_LIMIT or len(open_) >= DEPTH_LIMIT:
                most = f"{NODE_LIMIT:,} values" if nodes > NODE_LIMIT else f"{DEPTH_LIMIT} levels"
                raise Unreadable(line, f"holds more than {most}; an organization needs far less")
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append(_Open(line, [], isinstance(event, yaml.MappingStartEvent)))
                continue
            root = _placed(Scalar(line, event.value, empty=event.value == "" and event.implicit[0]), open_, root)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = open_.pop()
            root = _placed(closed.node(), open_, root)
    if root is None or (isinstance(root, Scalar) and root.empty):
        raise Unreadable(1, "is empty")
    return root


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read."""

    line: int
    children: list[Node]
    mapping: bool

    def node(self) -> Node:
        if not self.mapping:
            return Listing(self.line, tuple(self.children))
        pairs = zip(self.children[::2], self.children[1::2], strict=True)
        entries: list[tuple[Scalar, Node]] = []
        for key, value in pairs:
            if not isinstance(key, Scalar):
                raise Unreadable(key.line, "a key must be a text, not a list or a mapping; quote it if it holds brackets")
            entries.append((key, value))
        return Mapping(self.line, tuple(entries))


def _placed(node: Node, open_: list[_Open], root: Node | None) -> Node | None:
    """Put a complete node where it belongs; the document's own node is the new root."""
    if not open_:
        return node
    open_[-1].children.append(node)
    return root
