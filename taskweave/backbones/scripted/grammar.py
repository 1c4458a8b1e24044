"""How does a phrase bank become a sentence?  `load()` compiles the YAML banks once; a `Draft` expands their rules.

A frame is text with `{slot}`, `{rule}`, `{rule?}` (left out where nothing fits), filters `{slot|cap}`, alternatives `[a|b]`,
and conditions that print nothing: `{?slot}` where the slot is known, `{!slot}` where it is not.
A frame is used only where all its slots are known.
Knows nothing of steps, requests or organizations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from taskweave.backbones.scripted import wording

PHRASES = Path(__file__).resolve().parent.parent / "phrases"

FILTERS: Mapping[str, Callable[[str], str]] = {
    "cap": wording.upper_first,
    "low": wording.lower_first,
    "a": wording.with_article,
    "is": lambda text: "are" if wording.is_plural(text) else "is",
    "was": lambda text: "were" if wording.is_plural(text) else "was",
    "has": lambda text: "have" if wording.is_plural(text) else "has",
    "does": lambda text: "do" if wording.is_plural(text) else "does",
    "s": lambda text: "" if wording.is_plural(text) else "s",
    "es": lambda text: "" if wording.is_plural(text) else "es",
    "it": lambda text: "they" if wording.is_plural(text) else "it",
    "them": lambda text: "them" if wording.is_plural(text) else "it",
    "its": lambda text: "their" if wording.is_plural(text) else "its",
    "this": lambda text: "these" if wording.is_plural(text) else "this",
}


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    filters: tuple[Callable[[str], str], ...]


@dataclass(frozen=True, slots=True)
class Ref:
    rule: str
    optional: bool
    filters: tuple[Callable[[str], str], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[tuple[Part, ...], ...]


Part = str | Slot | Ref | Choice


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One way of putting a thing: its parts, and the slots that must be known."""

    parts: tuple[Part, ...]
    needs: frozenset[str]
    refs: tuple[str, ...]
    bars: frozenset[str]


class FrameError(ValueError):
    """A phrase bank holds a frame that cannot be read; a fault of the package, not of its user."""


@dataclass(frozen=True, slots=True)
class Bank:
    """All phrase banks: frames by rule, and the plain tables (fields of work, SQL schemas)."""

    rules: Mapping[str, tuple[Frame, ...]]
    tables: Mapping[str, Any]


def _compile(text: str, rules: frozenset[str]) -> Frame:
    needs: set[str] = set()
    bars: set[str] = set()
    refs: list[str] = []

    def parse(at: int, inside: bool) -> tuple[list[tuple[Part, ...]], int]:
        options: list[tuple[Part, ...]] = []
        parts: list[Part] = []
        literal: list[str] = []

        def flush() -> None:
            if literal:
                parts.append("".join(literal))
                literal.clear()

        while at < len(text):
            char = text[at]
            if char == "\\":
                literal.append(text[at + 1])
                at += 2
            elif char == "{":
                end = text.index("}", at)
                spec = text[at + 1 : end]
                if spec[0] in "?!":
                    (needs if spec[0] == "?" else bars).add(spec[1:])
                else:
                    flush()
                    parts.append(_slot(spec))
                at = end + 1
            elif char == "[":
                flush()
                inner, at = parse(at + 1, True)
                parts.append(Choice(tuple(inner)))
            elif inside and char == "|":
                flush()
                options.append(tuple(parts))
                parts = []
                at += 1
            elif inside and char == "]":
                flush()
                options.append(tuple(parts))
                return options, at + 1
            else:
                literal.append(char)
                at += 1
        if inside:
            raise FrameError(f"a '[' without its ']' in {text!r}")
        flush()
        options.append(tuple(parts))
        return options, at

    def _slot(spec: str) -> Part:
        name, *filters = spec.split("|")
        optional = name.endswith("?")
        name = name.rstrip("?")
        try:
            functions = tuple(FILTERS[f] for f in filters)
        except KeyError as unknown:
            raise FrameError(f"unknown filter {unknown} in {text!r}") from None
        if name in rules:
            if not optional:
                refs.append(name)
            return Ref(name, optional, functions)
        if optional:
            raise FrameError(f"{name!r} is marked optional but no rule has that name, in {text!r}")
        needs.add(name)
        return Slot(name, functions)

    options, _ = parse(0, False)
    return Frame(options[0], frozenset(needs), tuple(refs), frozenset(bars))


@lru_cache(maxsize=4096)
def frame(text: str) -> Frame:
    """A frame that stands outside the rules, such as a phrase of a field of work."""
    return _compile(text, frozenset())


@lru_cache(maxsize=1)
def load() -> Bank:
    """Every bank under `phrases/`: `*.yaml` hold rules (a block of lines, or a list of texts), `fields/*.yaml` and `tables.yaml` tables."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    raw: dict[str, list[str]] = {}
    tables: dict[str, Any] = {"fields": {}}
    for path in sorted(PHRASES.rglob("*.yaml")):
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        if path.parent.name == "fields":
            tables["fields"][path.stem] = content
        elif path.stem.endswith("tables"):
            tables.update(content)
        else:
            for rule, body in content.items():
                if rule in raw:
                    raise FrameError(f"{path.name}: the rule {rule!r} is written twice")
                raw[rule] = body.splitlines() if isinstance(body, str) else [text.rstrip("\n") for text in body]
    names = frozenset(raw)
    rules = {rule: tuple(_compile(text, names) for text in texts if text.strip()) for rule, texts in raw.items()}
    return Bank(rules, tables)


SPARE, END = "\x02", "\x03"  # around what may be left out
_SPARED = re.compile(f"{SPARE}[^{SPARE}{END}]*{END}")


def shortened(text: str, most: int) -> str:
    """The text without as many of its spare sentences, from the last one on, as brings it to `most` words."""
    if SPARE not in text:
        return text
    over = wording.words(text) - most
    if over > 0:
        for spare in reversed(_SPARED.findall(text)):
            if over <= 0:
                break
            over -= wording.words(spare)
            text = text.replace(spare, "", 1)
    return text.replace(SPARE, "").replace(END, "")


_SPACES = re.compile(r"  +")
_LINES = re.compile(r" *\n *")
_GAPS = re.compile(r"\n{3,}")
_STARTS = re.compile(r"([.!?\n](?:(?<=\n)(?:- (?:\[ \] )?|\d+\. |> )?|(?<=[.!?])['\")]* )['\"(]?)([a-z])")
_FIRST = re.compile(r"['\"(]?[a-z]")


def tidy(text: str) -> str:
    """Join what optional rules left open, and begin every sentence with a capital."""
    if "  " in text:
        text = _SPACES.sub(" ", text)
    if " \n" in text or "\n " in text:
        text = _LINES.sub("\n", text)
    text = text.replace("\n-\n", "\n")
    if "\n\n\n" in text:
        text = _GAPS.sub("\n\n", text)
    text = text.strip().removesuffix("\n-")
    if first := _FIRST.match(text):
        text = text[: first.end()].upper() + text[first.end() :]
    return _STARTS.sub(lambda m: m.group(1) + m.group(2).upper(), text)


@dataclass(slots=True)
class Draft:
    """One text in the making: what is known (`slots`), the dice, and which frames it has used."""

    random: Random
    slots: dict[str, str]
    used: set[Frame] = field(default_factory=set)
    once: frozenset[str] = frozenset()  # slots that a text should speak of one time only
    spent: set[str] = field(default_factory=set)
    salt: int = 0  # which third of the frames of a rule with many is passed over
    spare: frozenset[str] = frozenset()  # rules whose sentences may be left out again where a text grows too long

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.random.random() * len(items))]

    def sample(self, items: Iterable[Any], count: int) -> list[Any]:
        pool = list(items)
        if count >= len(pool):
            self.random.shuffle(pool)
            return pool
        return self.random.sample(pool, count)

    def know(self, **slots: str) -> None:
        self.slots.update(slots)

    def fits(self, candidate: Frame) -> bool:
        known = self.slots.keys()
        if not candidate.needs <= known or (candidate.bars and not known.isdisjoint(candidate.bars)):
            return False
        return not candidate.refs or all(self._possible(rule) for rule in candidate.refs)

    def _possible(self, rule: str) -> bool:
        return any(self.fits(candidate) for candidate in load().rules[rule])

    def has_rule(self, rule: str) -> bool:
        return rule in load().rules

    def has(self, rule: str) -> bool:
        return rule in load().rules and self._possible(rule)

    def choose(self, rule: str, strict: bool = False) -> Frame | None:
        """A frame of the rule that fits and repeats nothing; where there is none, one that repeats (None if `strict`)."""
        frames = load().rules[rule]
        roll, count = self.random.random, len(frames)
        for _ in range(8):
            at = int(roll() * count)
            if count > 5 and (at + self.salt) % 3 == 0:
                continue
            candidate = frames[at]
            if candidate not in self.used and candidate.needs.isdisjoint(self.spent) and self.fits(candidate):
                self.used.add(candidate)
                return candidate
        fitting = [candidate for candidate in frames if self.fits(candidate)]
        fresh = [candidate for candidate in fitting if candidate not in self.used]
        new = [candidate for candidate in fresh if candidate.needs.isdisjoint(self.spent)]
        options = new if new or strict else fresh or fitting
        if not options:
            return None
        candidate = options[int(self.random.random() * len(options))]
        self.used.add(candidate)
        return candidate

    def say(self, rule: str, strict: bool = False) -> str:
        """The rule expanded, untidied; '' where no frame fits."""
        candidate = self.choose(rule, strict)
        return "" if candidate is None else self.fill(candidate)

    def restart(self) -> None:
        """Forget what has been said, to try a text again."""
        self.used.clear()
        self.spent.clear()

    def fill(self, chosen: Frame) -> str:
        out: list[str] = []
        self._write(chosen.parts, out)
        return "".join(out)

    def phrase(self, text: str) -> str:
        return self.fill(frame(text))

    def _write(self, parts: tuple[Part, ...], out: list[str]) -> None:
        for part in parts:
            if isinstance(part, str):
                out.append(part)
            elif isinstance(part, Slot):
                value = self.slots[part.name]
                if part.name in self.once:
                    self.spent.add(part.name)
                for function in part.filters:
                    value = function(value)
                out.append(value)
            elif isinstance(part, Ref):
                value = self.say(part.rule, part.optional)
                for function in part.filters:
                    value = function(value)
                out.append(f"{SPARE}{value}{END}" if value and part.optional and part.rule in self.spare else value)
            else:
                options = part.options
                self._write(options[int(self.random.random() * len(options))], out)
