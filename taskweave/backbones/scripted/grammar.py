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
from itertools import groupby
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
    options: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Literal text and slots without filters in a row, as a template for `%`."""

    template: str
    names: frozenset[str]


Part = str | Slot | Ref | Choice
Step = Part | Run


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """When a frame may be used: slots that must be known, slots that must not be, and rules of which something must fit."""

    needs: frozenset[str]
    bars: frozenset[str]
    refs: tuple[str, ...]


@lru_cache(maxsize=8192)
def _condition(needs: frozenset[str], bars: frozenset[str], refs: tuple[str, ...]) -> Condition:
    """The same object for frames that may be used under the same condition."""
    return Condition(needs, bars, refs)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One way of putting a thing: its parts as written, the steps in which they are said, and when it may be used."""

    parts: tuple[Part, ...]
    steps: tuple[Step, ...]
    condition: Condition


class FrameError(ValueError):
    """A phrase bank holds a frame that cannot be read; a fault of the package, not of its user."""


@dataclass(frozen=True, slots=True)
class Bank:
    """All phrase banks: frames by rule, the different conditions of these, and the plain tables (fields of work, SQL schemas)."""

    rules: Mapping[str, tuple[Frame, ...]]
    conditions: Mapping[str, tuple[Condition, ...]]
    tables: Mapping[str, Any]


_TOKEN = re.compile(r"\\(.)|\{([^}]+)\}|([\[\]|])|([^\\{\[\]|]+)|(.)", re.DOTALL)


def _compile(text: str, rules: frozenset[str]) -> Frame:
    needs: set[str] = set()
    bars: set[str] = set()
    refs: list[str] = []
    open_choices: list[list[list[Part]]] = [[[]]]  # the frame itself, and the alternatives of every '[' so far without its ']'
    for escaped, spec, mark, plain, stray in _TOKEN.findall(text):
        inside = len(open_choices) > 1
        parts = open_choices[-1][-1]
        if spec[:1] in ("?", "!"):
            (needs if spec[0] == "?" else bars).add(spec[1:])
        elif spec:
            part = _slot(spec, rules, text)
            if isinstance(part, Slot):
                needs.add(part.name)
            elif not part.optional:
                refs.append(part.rule)
            parts.append(part)
        elif mark == "[":
            open_choices.append([[]])
        elif mark == "|" and inside:
            open_choices[-1].append([])
        elif mark == "]" and inside:
            options = open_choices.pop()
            open_choices[-1][-1].append(Choice(tuple(map(_steps, options))))
        elif stray:
            raise FrameError(f"a {stray!r} that nothing follows or closes in {text!r}")
        elif parts and isinstance(parts[-1], str):
            parts[-1] += escaped or mark or plain
        else:
            parts.append(escaped or mark or plain)
    if len(open_choices) > 1:
        raise FrameError(f"a '[' without its ']' in {text!r}")
    parts = open_choices[0][0]
    return Frame(tuple(parts), _steps(parts), _condition(frozenset(needs), frozenset(bars), tuple(refs)))


def _slot(spec: str, rules: frozenset[str], text: str) -> Slot | Ref:
    name, *filters = spec.split("|")
    optional = name.endswith("?")
    name = name.rstrip("?")
    try:
        functions = tuple(FILTERS[f] for f in filters)
    except KeyError as unknown:
        raise FrameError(f"unknown filter {unknown} in {text!r}") from None
    if name in rules:
        return Ref(name, optional, functions)
    if optional:
        raise FrameError(f"{name!r} is marked optional but no rule has that name, in {text!r}")
    return Slot(name, functions)


def _steps(parts: Iterable[Part]) -> tuple[Step, ...]:
    """The parts with every run of literals and plain slots made one."""
    steps: list[Step] = []
    for plain, group in groupby(parts, lambda part: isinstance(part, str) or (isinstance(part, Slot) and not part.filters)):
        run = list(group)
        names = frozenset(part.name for part in run if isinstance(part, Slot))
        if plain and names:
            steps.append(Run("".join(map(_templated, run)), names))
        else:
            steps.extend(run)
    return tuple(steps)


def _templated(part: Part) -> str:
    return f"%({part.name})s" if isinstance(part, Slot) else str(part).replace("%", "%%")


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
    conditions = {rule: tuple(dict.fromkeys(known.condition for known in frames)) for rule, frames in rules.items()}
    return Bank(rules, conditions, tables)


SPARE, END = "\x02", "\x03"  # around what may be left out
_SPARED = re.compile(f"{SPARE}[^{SPARE}{END}]*{END}")


def shortened(text: str, most: int) -> str:
    """The text without as many of its spare sentences, from the last one on, as brings it to `most` words."""
    if SPARE not in text:
        return text
    if text.count(" ") + text.count("\n") >= most and (over := wording.words(text) - most) > 0:  # what can be told without splitting it
        for spare in reversed(_SPARED.findall(text)):
            if over <= 0:
                break
            over -= wording.words(spare)
            text = text.replace(spare, "", 1)
    return text.replace(SPARE, "").replace(END, "")


_FIRST = re.compile(r"['\"(]?[a-z]")
_STARTS = (  # of sentences, by the mark before them: a pattern that begins with one certain character is searched for sooner
    ("\n", re.compile(r"\n(?:- (?:\[ \] )?|\d+\. |> )?['\"(]?[a-z]")),
    (".", re.compile(r"\.['\")]* ['\"(]?[a-z]")),
    ("?", re.compile(r"\?['\")]* ['\"(]?[a-z]")),
    ("!", re.compile(r"![')\"]* ['\"(]?[a-z]")),
)


def _upper(found: re.Match[str]) -> str:
    return found[0].upper()


def tidy(text: str) -> str:
    """Join what optional rules left open, and begin every sentence with a capital."""
    while "  " in text:
        text = text.replace("  ", " ")
    if "\n" in text:
        text = "\n".join([line.strip(" ") for line in text.split("\n")])
        for many, one in (("\n-\n", "\n"), ("\n\n\n", "\n\n")):
            while many in text:
                text = text.replace(many, one)
    text = text.strip().removesuffix("\n-")
    if first := _FIRST.match(text):
        text = text[: first.end()].upper() + text[first.end() :]
    for mark, start in _STARTS:
        if mark in text:
            text = start.sub(_upper, text)
    return text


def words_of(text: str) -> int:
    """The words of a tidied text, by what stands between them."""
    return text.count(" ") + text.count("\n") - text.count("\n\n") + bool(text)


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
        return self._holds(candidate.condition)

    def _holds(self, condition: Condition) -> bool:
        known = self.slots.keys()
        if not known >= condition.needs or (condition.bars and not known.isdisjoint(condition.bars)):
            return False
        return not condition.refs or all(map(self._possible, condition.refs))

    def _possible(self, rule: str) -> bool:
        return any(map(self._holds, load().conditions[rule]))

    def has_rule(self, rule: str) -> bool:
        return rule in load().rules

    def has(self, rule: str) -> bool:
        return rule in load().rules and self._possible(rule)

    def choose(self, rule: str, strict: bool = False) -> Frame | None:
        """A frame of the rule that fits and repeats nothing; where there is none, one that repeats (None if `strict`)."""
        frames, used, spent = load().rules[rule], self.used, self.spent
        roll, count, known = self.random.random, len(frames), self.slots.keys()
        passed = -self.salt % 3 if count > 5 else 3  # of three frames in a row, the one that is passed over
        for _ in range(8):
            at = int(roll() * count)
            if at % 3 == passed:
                continue
            candidate = frames[at]
            condition = candidate.condition
            if (
                known >= condition.needs
                and candidate not in used
                and condition.needs.isdisjoint(spent)
                and (not condition.bars or known.isdisjoint(condition.bars))
                and (not condition.refs or all(map(self._possible, condition.refs)))
            ):
                used.add(candidate)
                return candidate
        holding = set(filter(self._holds, load().conditions[rule]))
        fitting = [candidate for candidate in frames if candidate.condition in holding] if holding else []
        fresh = [candidate for candidate in fitting if candidate not in used]
        new = [candidate for candidate in fresh if candidate.condition.needs.isdisjoint(spent)]
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
        self._write(chosen.steps, out)
        return "".join(out)

    def phrase(self, text: str) -> str:
        return self.fill(frame(text))

    def _write(self, steps: tuple[Step, ...], out: list[str]) -> None:
        for step in steps:
            if isinstance(step, str):
                out.append(step)
            elif isinstance(step, Run):
                if self.once and not self.once.isdisjoint(step.names):
                    self.spent |= self.once & step.names
                out.append(step.template % self.slots)
            elif isinstance(step, Slot):
                value = self.slots[step.name]
                if step.name in self.once:
                    self.spent.add(step.name)
                for function in step.filters:
                    value = function(value)
                out.append(value)
            elif isinstance(step, Ref) and not step.filters and step.rule not in self.spare:
                if chosen := self.choose(step.rule, step.optional):
                    self._write(chosen.steps, out)
            elif isinstance(step, Ref):
                value = self.say(step.rule, step.optional)
                for function in step.filters:
                    value = function(value)
                out.append(f"{SPARE}{value}{END}" if value and step.optional and step.rule in self.spare else value)
            else:
                options = step.options
                self._write(options[int(self.random.random() * len(options))], out)
