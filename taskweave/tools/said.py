"""How do one person's words stand in a Markdown file that holds several people's?  Entry point: `said`."""

from __future__ import annotations

import re

_BEGINS = re.compile(r"^([ \t]*)(?=[#*_>=`~-])", re.MULTILINE)


def said(text: str) -> str:
    """The text, in which no line begins a heading, an entry, a quotation or a fence: what looks like somebody else's words is not."""
    return _BEGINS.sub(r"\1\\", text)
