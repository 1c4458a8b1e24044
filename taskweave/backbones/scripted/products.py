"""What a task's description wants handed in, and how its condition was kept: which rule says it, and the figures that such rules need."""

from __future__ import annotations

import re
from functools import lru_cache

from taskweave.backbones.scripted import fields, queries, wording, world
from taskweave.backbones.scripted.figures import percent
from taskweave.backbones.scripted.grammar import Draft, load


@lru_cache(maxsize=4)
def _patterns(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(str(entry["when"])), str(entry["say"])) for entry in load().tables[table])


@lru_cache(maxsize=4096)
def wanted(description: str, title: str = "") -> tuple[str, ...]:
    """The names of what a task asks to hand in: by its title, then by its description, in the order of the words that say so."""
    asked = []
    for table, text in (("title_products", title), ("products", description)):
        low = text.lower()
        found = [(match.start(), at, name) for at, (pattern, name) in enumerate(_patterns(table)) if (match := pattern.search(low))]
        asked += [name for _, _, name in sorted(found)]
    return tuple(dict.fromkeys(asked))


@lru_cache(maxsize=4096)
def _kept(constraint: str) -> str:
    low = constraint.lower()
    return next((name for pattern, name in _patterns("conditions") if pattern.search(low)), "other")


@lru_cache(maxsize=4096)
def _groups(description: str) -> tuple[str, ...]:
    """What a table is broken down by."""
    found = re.search(r"by (segment|team|district|section|machine|week|shift|position|item)\b", description.lower())
    return tuple(load().tables["breakdowns"][found.group(1)]) if found else ()


def say_products(draft: Draft, case: fields.Case, description: str, title: str, most: int = 1, told: str = "") -> str:
    """What a task asks for first, in words, and up to `most` such things, none that is `told` under the same name already.

    '' where it asks for nothing that the banks know or can say here.
    """
    if "k" not in draft.slots:
        return ""
    slots = draft.slots
    draft.know(item_a=wording.with_article(slots["item"]), seen_few=wording.in_words(int(slots["seen"])))
    said: list[str] = []
    for name in wanted(description, title):
        if len(said) < most and name != told:
            _know_figures(draft, case, description, name)
            said.append(draft.say(f"product_{name}"))
    return "\n\n".join(filter(None, said))


def _know_figures(draft: Draft, case: fields.Case, description: str, name: str) -> None:
    """The figures that a rule needs besides those of the text."""
    slots = draft.slots
    if groups := _groups(description):
        draft.know(**dict(zip(("g1", "g2", "g3"), groups, strict=True)))
    n, k = (int(slots[key].replace(",", "")) for key in ("n", "k"))
    if name in ("breakdown", "channels"):
        draft.know(**_split(n, k, f"{slots['T']}:{slots['items']}"))
    if name == "query":
        queries.know_table(draft, case)
    if name == "variants":
        draft.know(**_variants(n, k))


def _split(n: int, k: int, key: str) -> dict[str, str]:
    """The whole and the part, each in three, with the part's shares apart from one another."""
    first = n * (0.32 + 0.14 * world.chance(key, 1))
    second = n * (0.24 + 0.1 * world.chance(key, 2))
    whole = [round(first), round(second)]
    whole.append(n - sum(whole))
    part = [min(whole[0], round(k * (0.3 + 0.35 * world.chance(key, 3))))]
    part.append(min(whole[1], round((k - part[0]) * (0.35 + 0.4 * world.chance(key, 4)))))
    part.append(k - sum(part))
    if part[2] > whole[2]:
        part[2], part[0] = whole[2], k - part[1] - whole[2]
    money = [50 * (6 + int(30 * world.chance(key, at))) for at in (5, 6, 7)]
    names = ("e-mail", "search", "social")
    worst = max(range(3), key=lambda at: part[at] / max(whole[at], 1))
    slots = {"parts": wording.number(sum(money)), "worst": names[worst]}
    for name, at in (("1", 0), ("3", 1), ("4", 2)):
        slots |= {f"n{name}": wording.number(whole[at]), f"k{name}": wording.number(part[at]), f"s{name}_pct": percent(part[at], whole[at])}
    return slots | {f"part{at + 1}": wording.number(amount) for at, amount in enumerate(money)}


def _variants(n: int, k: int) -> dict[str, str]:
    """Two small samples: the first fails as the whole does, the second half as often."""
    size = max(4, min(40, n // 4))
    failed = max(1, round(size * k / n))
    return {"va": str(size), "vfa": str(failed), "vb": str(size), "vfb": str(failed // 2)}


def say_condition(draft: Draft, constraint: str) -> str:
    """How the condition set for a task was kept, where the text shows it, else that it is still to be tested, in a line.

    '' where none was set, where only a part of it is known, or where it asks for nothing that a text can show.
    """
    if not constraint.strip() or "…" in constraint or wording.words(constraint) > 20:
        return ""
    draft.know(constraint=wording.lower_first(constraint.strip().rstrip(".")))
    name = _kept(constraint)
    return (draft.say(f"kept_{name}") or draft.say("kept_other")) if name else ""
