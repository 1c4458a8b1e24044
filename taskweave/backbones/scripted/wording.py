"""English in the small: articles, number, capitals, figures, dates, lists, and cutting a text into sentences.

Pure functions on strings.  Knows nothing of grammars, steps or organizations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import lru_cache


def listed(text: str) -> tuple[str, ...]:
    """The words of a text, for lists that read better as one."""
    return tuple(text.split())


_MONTHS = listed("January February March April May June July August September October November December")
_DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_PREPOSITIONS = frozenset(
    listed("of for in on with to from by at between about after before per against across under over into through behind during within")
)
_SINGULAR_S = frozenset(
    listed(
        """analytics news series analysis basis axis status process access progress business address class loss less chassis bus canvas
        ethics logistics physics electronics hydraulics mechanics robotics kubernetes success stress sepsis synopsis diagnosis emphasis
        thesis crisis census consensus bonus focus campus virus corpus sms dns css js pos saas kudos ios gas bias atlas lens compass
        congress"""
    )
)
_PLURAL = frozenset(listed("people criteria children men women personnel feet mice"))
_OPENERS = _PREPOSITIONS | frozenset(
    listed("the a an and both each every this that these those all no most if as since when while because there our we it here")
)
LINKING = _PREPOSITIONS | frozenset(
    listed("and or the a an that so as than when if like which who is are in on")
)  # words that no phrase ends with
_VOWEL_SOUND = re.compile(r"(?:[aeiou]|hour|honest|honour|heir|8|11\b|18\b|[FHLMNRSX](?=[A-Z0-9]|\b)|[AEIO])", re.ASCII)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m)|use|user|usab|usag|usu|util|eu|one\b|once|U[A-Z])", re.IGNORECASE)


@lru_cache(maxsize=8192)
def lower_first(text: str) -> str:
    """The text as it stands inside a sentence: acronyms, names of two words and names with inner capitals keep theirs."""
    word, _, rest = text.partition(" ")
    if len(word) < 2 and word != "A":
        return text
    if any(c.isupper() or c.isdigit() or c == "/" for c in word[1:]):
        return text
    if rest[:1].isupper() and word.lower() not in _OPENERS and rest[1:2].islower():
        return text
    return text[:1].lower() + text[1:]


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=4096)
def is_plural(phrase: str) -> bool:
    """Whether a noun phrase takes 'are': by its head, the last word before the first preposition or relative pronoun."""
    head = ""
    for word in phrase.split():
        if word.lower() in _PREPOSITIONS and head:
            break
        if head and word.lower() in ("that", "who", "which"):
            break
        if head and word.endswith(("ed", "ing")) and head.endswith("s") and not head.endswith("ss"):
            break
        if word.lower() == "and" and head and is_plural(head):
            return True
        head = word
    head = head.strip(".,;:()'\"").lower()
    if head in _PLURAL:
        return True
    return head.endswith("s") and not head.endswith(("ss", "us", "is")) and head not in _SINGULAR_S


def head_word(phrase: str) -> list[str]:
    """The head of a noun phrase in lower case without its plural s, as a list of one; empty where there is none."""
    head = ""
    for word in phrase.lower().split():
        if head and word in _PREPOSITIONS:
            break
        head = word.strip(".,;:()'\"")
    return [head.rstrip("s")] if head else []


def with_article(phrase: str) -> str:
    if _VOWEL_SOUND.match(phrase) and not _CONSONANT_SOUND.match(phrase):
        return f"an {phrase}"
    return f"a {phrase}"


def possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def join(items: Sequence[str], word: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def number(value: float, decimals: int | None = None) -> str:
    """A figure without idle zeros: 2, 3.1, 12,400."""
    if isinstance(value, int) and not decimals:
        return f"{value:,}"
    if decimals is None:
        decimals = 0 if abs(value) >= 100 or float(value).is_integer() else (1 if abs(value) >= 10 else 2)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def measured(value: float, unit: str, decimals: int | None = None) -> str:
    text = number(value, decimals)
    return f"{text} {unit}" if unit else text


def count(n: int, singular: str, plural: str | None = None) -> str:
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def in_words(n: int) -> str:
    return _WORDS[n] if 0 <= n < len(_WORDS) else str(n)


def parse_date(text: object) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def working_day(start: date, days: int) -> date:
    """The date `days` weekdays after `start` (before it where negative); a start at the weekend counts as the Monday after."""
    day = start + timedelta(days=max(0, 7 - start.weekday()) if start.weekday() > 4 else 0)
    weeks, rest = divmod(days, 5)
    over = 2 if day.weekday() + rest > 4 else 0
    return day + timedelta(days=7 * weeks + rest + over)


def day_month(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


def parse_day_month(text: str, near: date) -> date | None:
    """'3 March' as the date nearest to another one; None where it is none."""
    day, _, month = text.partition(" ")
    if not day.isdigit() or month not in _MONTHS:
        return None
    found = []
    for year in (near.year - 1, near.year, near.year + 1):
        try:
            found.append(date(year, _MONTHS.index(month) + 1, int(day)))
        except ValueError:
            continue
    return min(found, key=lambda other: abs((other - near).days), default=None)


def weekday(day: date) -> str:
    return _DAYS[day.weekday()]


def month(day: date) -> str:
    return _MONTHS[day.month - 1]


# Begins with a class of characters, which the search then skips to: '(?<=[.!?])\s+(?=["'(A-Z0-9])|\n+' takes twice the time.
_SENTENCE = re.compile(r"\s(?:(?<=[.!?]\s)\s*(?=[\"'(A-Z0-9])|(?<=\n)\n*)")


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[str, ...]:
    """The text's sentences; a last one that was cut off is left out."""
    return tuple(piece for piece in map(str.strip, _SENTENCE.split(text)) if piece and not piece.endswith(("[…]", "…")))


def words(text: str) -> int:
    return len(text.split())


def clip(text: str, limit: int) -> str:
    """At most `limit` words, ending at a comma or semicolon where one comes late enough, without the closing full stop."""
    text = text.strip().rstrip(".;:, ")
    pieces = text.split()
    if len(pieces) <= limit:
        return text
    head = " ".join(pieces[:limit])
    at = max(head.rfind(","), head.rfind(";"))
    return head[:at] if at > len(head) // 2 else ""


def within(text: str, most: int) -> str:
    """The text's beginning of at most so many characters: whole lines and sentences, else whole words."""
    if len(text) <= most:
        return text
    ends = [at + 1 for at in range(most) if text[at] in ".!?\n" and text[at + 1].isspace()]
    if ends and ends[-1] > most // 3:
        return text[: ends[-1]].rstrip()
    return text[: max(text.rfind(" ", 0, most), 1)].rstrip(" ,;:-")


def content_words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z][a-z0-9/-]+", text.lower()) if word not in _STOP and len(word) > 2]


@lru_cache(maxsize=8192)
def stems(text: str) -> frozenset[str]:
    """The content words of a text, cut so that plural and singular, noun and verb meet."""
    return frozenset(word.rstrip("s")[:6] for word in content_words(text))


_STOP = frozenset(
    listed(
        """the and for with from that this into onto over under after before their its our are was were has have had not but who what
        when where which while each every per than then them they there these those will would should could can may must one two all
        any out off via about against between because week month quarter year"""
    )
)


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
