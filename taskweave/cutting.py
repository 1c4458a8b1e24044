"""How much text is: the token rule, and the cutting of strings, lists and nested values to a budget.

Everything here is a pure function of its arguments, so that equal inputs give equal prompts.  A cut is always said: " […]" ends a
text, "… and 4 more" ends a list of strings, and a list of records tells the number under `more` in its last record.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from taskweave.records import Json, canonical
from taskweave.records import tokens as tokens

MARK = " […]"
_MARK_BYTES = len(MARK.encode())
_FLOOR = 80  # bytes: a string is not cut below this while whole list items can be left out instead
_NAME = 160  # bytes: a string without a space up to here is an id or a name, and half a name is worse than none
_LEAF = 4  # bytes: what a value costs in labels and punctuation
_END = re.compile(r"[.!?](?=\s)|[。！？]|\n")


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, most: int) -> str:
    """`text` within `most` tokens: whole, or to the end of a sentence, else of a word, with " […]" after it."""
    if _bytes(text) <= 4 * most:
        return text
    room = 4 * most - _MARK_BYTES
    if room <= 0:
        return ""
    raw = text.encode()
    head = raw[:room].decode("utf-8", "ignore")
    late = 0.6 * len(head)  # an end before this would leave too little
    ends = [m.end() for m in _END.finditer(text, max(0, int(late) - 1), len(head) + 1) if late <= m.end() <= len(head)]
    if ends:
        return head[: ends[-1]].rstrip() + MARK
    if not text[len(head)].isspace():
        space = max(head.rfind(" "), head.rfind("\n"))
        if space >= late:
            head = head[:space]
    return head.rstrip(" \n\t,;:-–") + MARK


def cut_list(items: Sequence[str], most: int) -> list[str]:
    """The first items that fit into `most` tokens, at least one, and "… and 4 more" for the others."""
    if sum(tokens(item) + 1 for item in items) <= most:
        return list(items)
    kept: list[str] = []
    used = tokens(_more(len(items))) + 1
    for item in items:
        used += tokens(item) + 1
        if used > most:
            break
        kept.append(item)
    if not kept:
        kept = [cut(items[0], max(most - tokens(_more(len(items))) - 2, _FLOOR // 4))]
    rest = len(items) - len(kept)
    return [*kept, _more(rest)] if rest else kept


class Kept(dict[str, Json]):
    """A mapping that is never changed once it is made: what was cut and rendered of it is remembered with it.  A copy is a plain dict."""

    __slots__ = ("fitted", "rendered")

    def __init__(self, value: Mapping[str, Json]) -> None:
        super().__init__(value)
        self.fitted: dict[int, Kept] = {}  # by tokens
        self.rendered: dict[object, str] = {}  # by template

    def __reduce__(self) -> tuple[type, tuple[dict[str, Json]]]:
        return dict, (dict(self),)

    def fit(self, most: int) -> Kept:
        """`fit`, done once."""
        if most not in self.fitted:
            fitted = fit(dict(self), most)
            self.fitted[most] = self if fitted == self else Kept(fitted)
        return self.fitted[most]


def fair_share(sizes: Iterable[int], room: int, least: int = 1) -> int:
    """The size to which each of several things is cut, so that all take about `room`: what short ones leave goes to the others."""
    ordered = sorted(sizes)
    share = least
    for place, size in enumerate(ordered):
        share = max(least, room // (len(ordered) - place))
        if size > share:
            break
        room -= size
    return share


def value_tokens(value: Json) -> int:
    """Tokens of a value as prompts show it, labels and punctuation included, about."""
    return -(-_size(value) // 4)


def fit(value: Json, most: int) -> Json:
    """`value` within about `most` tokens, cut in three steps, each only as far as needed and only where the one before is not enough.

    Its longest strings are shortened, all to one length; then its longest lists of strings, all to one size; then its lists of
    records, all to one number of items, never below one.  Ids and names stay whole.  A value that fits is returned as it is.
    """
    if isinstance(value, Kept):
        return value.fit(most)
    if _size(value) <= 4 * most:
        return value
    if isinstance(value, str):
        return cut(value, most)
    return _Cached(canonical(value), value).fit(most)


class _Cached:
    """A value beside its canonical text, by which it is compared: what is cut for one call is cut alike for the next."""

    __slots__ = ("text", "value")

    def __init__(self, text: str, value: Json) -> None:
        self.text, self.value = text, value

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cached) and self.text == other.text

    def fit(self, most: int) -> Json:
        return _fitted(self, most)


@lru_cache(maxsize=512)
def _fitted(cached: _Cached, most: int) -> Json:
    value, room = cached.value, 4 * most
    limits = _extent(value)
    for which, floor in enumerate((_FLOOR, _FLOOR, 1)):
        bound = _bound_by(value, limits, which)
        # The greatest limit of this kind that fits; its floor, and on to the next kind, where none does.
        low, high = floor, max(limits[which], floor)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if bound(middle) <= room else (low, middle - 1)
        limits = _with(limits, which, low)
        if _size(shrunk := _shrunk(value, limits)) <= room:
            break
    return shrunk


class _Limits(NamedTuple):
    """Bytes of a string, bytes of a list of strings, items of a list of records."""

    text: int
    texts: int
    records: int


def _with(limits: _Limits, which: int, value: int) -> _Limits:
    return _Limits(*(value if n == which else limit for n, limit in enumerate(limits)))


def _size(value: Json) -> int:
    """Bytes of the text in a value, with a little for each leaf."""
    size, left = 0, [value]
    for part in left:  # a list that grows and not recursion: every input of every call is measured
        if isinstance(part, str):
            size += (len(part) if part.isascii() else len(part.encode())) + _LEAF
        elif isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple)):
            left += part
        else:
            size += 2 * _LEAF
    return size


def _extent(value: Json) -> _Limits:
    """The limits that cut nothing of a value."""
    text, texts, records, left = 0, 0, 0, [value]
    for part in left:
        if isinstance(part, str):
            text = max(text, _bytes(part))
        elif isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple)):
            if _is_texts(part):
                texts = max(texts, _size(part))
            else:
                records = max(records, len(part))
            left += part
    return _Limits(text, texts, records)


def _is_texts(value: Sequence[Json]) -> bool:
    return all(isinstance(item, str) for item in value)


def _bound(value: Json, limits: _Limits) -> int:
    """What `_size(_shrunk(value, limits))` is at most, without cutting anything."""
    if isinstance(value, str):
        size = _bytes(value)
        return _LEAF + (size if size <= limits.text or _is_name(value) else limits.text)
    if isinstance(value, dict):
        return sum(_bound(part, limits) for part in value.values())
    if not isinstance(value, (list, tuple)):
        return 2 * _LEAF
    if _is_texts(value):
        return min(sum(_bound(text, limits) for text in value), limits.texts)
    kept = sum(_bound(part, limits) for part in value[: limits.records])
    return kept + 2 * _LEAF * (len(value) > limits.records)


def _bound_by(value: Json, limits: _Limits, which: int) -> Callable[[int], int]:
    """`_bound` of a value by one of its limits; this one and those after it cut nothing so far."""
    if which == 2:
        return lambda limit: _bound(value, _with(limits, which, limit))
    # Strings, or lists of strings, stand beside each other: each takes its size or the limit, whatever the others take.
    sizes = sorted(_bound(part, limits) for part in _limited(value, texts=which == 1))
    below = [0, *accumulate(sizes)]
    rest, leaf = _bound(value, limits) - below[-1], _LEAF * (which == 0)

    def bound(limit: int) -> int:
        short = bisect(sizes, limit + leaf)
        return rest + below[short] + (len(sizes) - short) * (limit + leaf)

    return bound


def _limited(value: Json, *, texts: bool) -> Iterator[Json]:
    """The strings in a value that are not names, or its lists of strings."""
    if isinstance(value, str):
        if not texts and not _is_name(value):
            yield value
    elif isinstance(value, (dict, list, tuple)):
        if texts and not isinstance(value, dict) and _is_texts(value):
            yield value
        else:
            for part in value.values() if isinstance(value, dict) else value:
                yield from _limited(part, texts=texts)


def _is_name(text: str) -> bool:
    """Whether a string stays whole whatever its limit."""
    return " " not in text and _bytes(text) <= _NAME


def _shrunk(value: Json, limits: _Limits) -> Json:
    """`value` with nothing in it over the limits."""
    if isinstance(value, str):
        return value if _bytes(value) <= limits.text or _is_name(value) else cut(value, limits.text // 4)
    if isinstance(value, dict):
        return {key: _shrunk(part, limits) for key, part in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    if _is_texts(value):
        texts = [_shrunk(text, limits) for text in value]
        return texts if _size(texts) <= limits.texts else cut_list(texts, limits.texts // 4)
    kept = [_shrunk(part, limits) for part in value[: limits.records]]
    if (rest := len(value) - len(kept)) and isinstance(kept[-1], dict):
        kept[-1]["more"] = rest
    return kept


def _more(count: int) -> str:
    return f"… and {count} more"
