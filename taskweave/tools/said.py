"""How do one person's words stand in a Markdown file that holds several people's?  Entry points: `said`, `page`."""

from __future__ import annotations

import re

_FOOT = re.compile(r"^(?=[ \t]*(?:---+[ \t]*$|\*\*[^*\n]+\*\*[ \t]+[0-9]{4}-[0-9]{2}-[0-9]{2}))", re.MULTILINE)
_BEGINS = re.compile(r"^([ \t]*)(?=[#*_>=`~-])", re.MULTILINE)


def page(text: str) -> str:
    """The text of a page, in which everything may stand but what looks like the line below it or a comment on it."""
    return _FOOT.sub(r"\\", text)


def said(text: str) -> str:
    """The text, in which no line begins a heading, an entry, a quotation or a fence: what looks like somebody else's words is not."""
    return _BEGINS.sub(r"\1\\", text)
