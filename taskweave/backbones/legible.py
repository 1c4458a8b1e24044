"""What of a text can be read?  Entry points: `legible` (a text without the rest), `is_blank` (nothing of it can), `UNSEEN`.

Control and half characters, bidi controls, and characters without a width steer a terminal or an editor, hide in a title and make two
equal words different: no text is the better for them.  Joiners stay within words and emoji, which are written with them.  Pure.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
HALVES = "\ud800-\udfff"
# Soft hyphen; marks, embeddings, overrides and isolates of direction; spaces and operators without a width; byte order mark; annotations.
_WITHOUT_WIDTH = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e007f"
_JOINERS = "\u200c\u200d"
# Letters, marks and a sign that show nothing where they stand alone.
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
UNSEEN = f"{_CONTROLS}{_WITHOUT_WIDTH}{_TAGS}"  # for a character class: what must not reach a terminal as it is, a line's end apart

_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"  # of a region: the one use that tags have in a text
_UNFIT = re.compile(f"({_FLAG})|[{_CONTROLS}{HALVES}{_WITHOUT_WIDTH}{_TAGS}]")
_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
_JOINED = re.compile(f"[{_JOINERS}]+")
_BLANK = re.compile(f"[\\s{_CONTROLS}{HALVES}{_WITHOUT_WIDTH}{_TAGS}{_JOINERS}{_FILLERS}]*")


def legible(text: str) -> str:
    """The text without what cannot be seen, its lines ended by "\\n"; "" where nothing of it can be seen."""
    if is_blank(text):
        return ""
    seen = _UNFIT.sub(lambda found: found[1] or "", _LINE_END.sub("\n", text))
    return _JOINED.sub(_joiner, seen)


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return _BLANK.fullmatch(text) is not None


def _joiner(found: re.Match[str]) -> str:
    """The first of some joiners where they stand within a word or an emoji, else nothing."""
    text, first, end = found.string, found.start(), found.end()
    return found[0][0] if first > 0 and end < len(text) and _joins(text[first - 1]) and _joins(text[end]) else ""


def _joins(character: str) -> bool:
    """Whether it is of a word or of an emoji: a letter, a mark on one, a picture or its shade."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("So", "Sk")
