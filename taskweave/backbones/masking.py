"""Where does a key stand in a text that came from elsewhere?  Entry point: `Mask`, through which all that a server sends must go.

A server may give a key back cut short, in capitals, with blanks in between or escaped: a run of `LEAST` characters of it, one after
another, is hidden in whatever form it stands, a shorter one where it stands whole.  But what is given to a model that asks for no key (`x`,
`none`, `no-key-required`) is no secret, and its letters stand in any answer.  Pure: it knows no server.
"""

from __future__ import annotations

import base64
import re

from taskweave.backbones.legible import HALVES, UNSEEN

# So few tell nothing that helps to guess the rest, and are what providers show of a key themselves ("sk-...cdef"); of a key's many
# characters so many in a row do not meet in an answer by chance.
LEAST = 8
HIDDEN = "…"
_A_WORD = re.compile(r"[a-z]+([-_. ][a-z]+)*", re.IGNORECASE)  # no digit: of 20 such characters a key is no more than a word
_LONGEST_WORD = 20
_STEERS = re.compile(f"[{UNSEEN}{HALVES}]")
_LIKE_A_KEY = re.compile(r"\b(?:sk|key)-[\w*-]{4,}")
_BETWEEN = "\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
_JOINS = re.compile(f"[{_BETWEEN}\x00-\x1f\x7f]+")
_ESCAPED = re.compile(r"\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})|%([0-9a-f]{2})|\\(u[0-9a-f]{4}|[nrtbf])|\\([\"/\\])", re.IGNORECASE)
_UNIT = re.compile(f"{_ESCAPED.pattern}|[\\s\\S]", re.IGNORECASE)


class Mask:
    """Hides one key, "" where there is none.  With `words` a short one, or a word, is hidden in errors alone, where it stands as a word."""

    def __init__(self, key: str, *, words: bool = False) -> None:
        secret = not words or (len(key) >= LEAST and not (len(key) <= _LONGEST_WORD and _A_WORD.fullmatch(key)))
        self._key, self._word = (key, "") if secret else ("", key)
        forms = [key.lower(), *_as_base64(key)] if secret and len(key) >= LEAST else []
        self._runs = frozenset(form[at : at + LEAST] for form in forms for at in range(len(form) - LEAST + 1))

    def masked(self, text: str) -> str:
        """The text with `HIDDEN` for each stretch of it that is of the key."""
        if self._key:
            text = text.replace(self._key, HIDDEN)
        if not self._runs:
            return text
        plain = _JOINS.sub("", _ESCAPED.sub(_unescaped, text)).lower()
        return self._without_runs(text) if any(run in plain for run in self._runs) else text

    def line(self, what: object, most: int = 300) -> str:
        """The words of an error in one line of at most `most` characters, without this key and without what looks like another."""
        text = _LIKE_A_KEY.sub(HIDDEN, self.masked(" ".join(_STEERS.sub("", str(what)).split())))
        if self._word:
            text = re.sub(rf"(?<!\w){re.escape(self._word)}(?!\w)", HIDDEN, text)
        return text if len(text) <= most else text[: most - 1] + HIDDEN

    def _without_runs(self, text: str) -> str:
        units = [(_unescaped(one).lower(), one.start(), one.end()) for one in _UNIT.finditer(text)]
        units = [unit for unit in units if not _JOINS.fullmatch(unit[0])]
        letters = "".join(letter[:1] for letter, _, _ in units)
        kept, upto = [], 0
        for at in range(len(letters) - LEAST + 1):
            if letters[at : at + LEAST] in self._runs:
                first, last = units[at][1], units[at + LEAST - 1][2]
                if first >= upto:
                    kept += [text[upto:first], HIDDEN]
                upto = last
        return "".join([*kept, text[upto:]])


def _unescaped(found: re.Match[str]) -> str:
    """The character that an escape stands for; of another match itself.  What joins others, or is no character of a key, is a blank."""
    *numbers, blank, itself = found.groups()
    code = next((number for number in numbers if number), None)
    if code is not None:
        return chr(int(code, 16))
    if blank is not None:
        return chr(int(blank[1:], 16)) if len(blank) > 1 else " "
    return itself or found[0]


def _as_base64(key: str) -> list[str]:
    """What of the key's base64 form does not depend on what stands before it and behind it, for each of the three ways it can be cut."""
    raw, forms = key.encode(), []
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        forms.append(whole[(0, 2, 3)[before] : len(whole) - bool((before + len(raw)) % 3)].lower())
    return forms
