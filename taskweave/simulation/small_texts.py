"""What code makes of small answers: texts without repetition, titles unlike those that are taken, options that are few and near.

Entry points: `without_repeats`, `untaken`, `closest`, `turned`, `words`, `is_form_of`, `means`.  It knows no question.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from taskweave.records import Json
from taskweave.simulation.answers import MOST_TITLE

T = TypeVar("T")
COPIED = 5  # words: of a shorter example only the very words are a copy
RUN = 7  # words in a row that nobody writes who was not shown them
LIKE = 0.75  # of the words, in their order: two sentences about one thing share fewer
_WORD = re.compile(r"\w{3,}")
_BETWEEN = re.compile(r"(?<=[.!?])\s+")  # sentences
_SENTENCE_END = re.compile(r"\W+$")
_IN_A_ROW = re.compile(r"(.{8,160}?)\1{2,}", re.DOTALL)
_OFTEN = 3
_NUMBER = 6  # characters of " 1234", the number of a title that is taken many times
_CIRCLING = 0.6  # different triples of words a word: prose has 0.9 and more


def without_repeats(text: str) -> str:
    """The text with once what it says three times or more, as weak models do."""
    sentences = _BETWEEN.split(text)
    cores = [_SENTENCE_END.sub("", sentence).casefold() for sentence in sentences]
    often = {core for core, times in Counter(cores).items() if times >= _OFTEN}
    if often:
        kept = [sentence for place, sentence in enumerate(sentences) if cores[place] not in often or cores.index(cores[place]) == place]
        text = " ".join(kept)
    said = text.split()
    triples = set(zip(said, said[1:], said[2:], strict=False))
    # Who turns in circles says few things with many words; other texts are not worth the search.
    return _IN_A_ROW.sub(r"\1", text) if len(triples) < _CIRCLING * len(said) else text


def words(text: str) -> list[str]:
    """The words of three letters and more, in lower case."""
    return _WORD.findall(text.casefold())


def is_form_of(activity: str, word: str) -> bool:
    """Whether a word is a form of an activity: 'designs', 'testing', 'analysis'."""
    stem = activity.casefold()[: max(4, len(activity) - 2)]
    return word.startswith(stem)


def means(said: str, word: str) -> bool:
    """Whether an answer is that word, in whatever case of letters, quoted or with a full stop."""
    return said.strip(" .\"'").casefold() == word


def untaken(text: str, ending: str, taken: Sequence[str]) -> str:
    """The text, or with its ending, or with a number too: unlike all that are taken, in whatever case of letters.

    One that has to be ended is cut first, so that it stays as short as a title must be.
    """
    had = {other.strip().casefold() for other in taken}
    if text.strip().casefold() not in had:
        return text
    ended, number = f"{text[: MOST_TITLE - len(ending) - _NUMBER].rstrip('. ')}{ending}", 2
    made = ended
    while made.casefold() in had:
        made, number = f"{ended} {number}", number + 1
    return made


def closest(options: Sequence[Json], text: str, most: int, read: Callable[[Json], str]) -> list[Json]:
    """At most so many options, in their order: those that share most words with the text."""
    if len(options) <= most:
        return list(options)
    wanted = set(words(text))
    ranked = sorted(range(len(options)), key=lambda place: (-len(wanted & set(words(read(options[place])))), place))
    return [options[place] for place in sorted(ranked[:most])]


def turned(options: Sequence[T], turn: int) -> list[T]:
    """The options, beginning with another one each turn: a weak model likes the first best."""
    at = turn % len(options) if options else 0
    return [*options[at:], *options[:at]]


def is_copy(text: str, example: str) -> bool:
    """Whether a text is an example given back: word for word, gone on from a part of it, or with a few words changed."""
    said, shown = text.casefold().split(), example.casefold().split()
    beside = {tuple(shown[at : at + RUN]) for at in range(len(shown) - RUN + 1)}
    if any(tuple(said[at : at + RUN]) in beside for at in range(len(said) - RUN + 1)):
        return True
    if said == shown or (len(shown) > COPIED and said[: len(shown) * 3 // 4] == shown[: len(shown) * 3 // 4]):
        return True
    return len(shown) > COPIED and difflib.SequenceMatcher(None, said, shown, autojunk=False).ratio() > LIKE
