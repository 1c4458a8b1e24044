"""What a text says of a customer, supplier, product or system: some of the facts that it was offered, word for word, and not the others.

Entry points: `offered` (what of the evidence is such), `say_facts`, `taken_over` (what a merged text keeps of its parts'), `say_about`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.grammar import Draft
from taskweave.backbones.scripted.planning import local
from taskweave.backbones.scripted.sources import Source
from taskweave.org.entities import read_told
from taskweave.records import Json

_SAID = 0.6  # how often a fact that was offered is told
_NAMED = 0.7  # how often a text that tells none says at least whom it is about
_TAKEN = 0.75  # how often a merged text keeps such a sentence of a part
_ON_RECORD = re.compile(r"\bon record(?: for [^:]+)?: ", re.IGNORECASE)  # in each sentence of the bank that tells a fact
_MOST = 2  # sentences of a merged text


class Known(NamedTuple):
    """One fact of one entity, as the evidence tells it."""

    entity: str
    label: str
    text: str


def offered(evidence: Sequence[Json]) -> tuple[list[str], list[Known]]:
    """The evidence in two: figures and what tools found, and facts of entities."""
    figures, facts = list[str](), list[Known]()
    for line in map(str, evidence):
        found = read_told(line)
        if found is None:
            figures.append(line)
        else:
            facts.append(Known(found[0], found[2], found[3]))
    return figures, facts


def say_facts(draft: Draft, facts: Sequence[Known]) -> str:
    """A sentence or two with some of the facts, or with the name alone; '' where none were offered."""
    if not facts:
        return ""
    told: dict[str, list[Known]] = {}
    for fact in facts:
        if draft.random.random() < _SAID:
            told.setdefault(fact.entity, []).append(fact)
    if not told:
        named = draft.random.random() < _NAMED
        return local(draft, "fact_unsaid", {"entity": facts[0].entity}) if named else ""
    return " ".join(_sentence(draft, those) for those in told.values())


def _sentence(draft: Draft, facts: Sequence[Known]) -> str:
    """One sentence with at most two facts of an entity."""
    first, *rest = facts
    slots = {"entity": first.entity, "label": first.label, "text": first.text}
    if not rest:
        return local(draft, "fact_told", slots)
    return local(draft, "fact_two", slots | {"label2": rest[0].label, "text2": rest[0].text})


def taken_over(draft: Draft, parts: Sequence[Source]) -> str:
    """Sentences of the parts that tell a fact, as they stand there."""
    sentences = [sentence for part in parts for sentence in wording.sentences(part.text) if "\n" not in sentence]
    found = dict.fromkeys(filter(_ON_RECORD.search, sentences))
    return " ".join([sentence for sentence in found if draft.random.random() < _TAKEN][:_MOST])


def say_about(draft: Draft, slot: Mapping[str, Json]) -> str:
    """A sentence on whom a task is about; '' where its slot names nobody."""
    about = slot.get("about") or ()
    if not about:
        return ""
    names = [f"{entity['name']} ({entity['kind']})" for entity in about if entity.get("name")]
    return local(draft, "describe_about", {"entities": wording.join(names), **({"single_entity": "yes"} if len(names) == 1 else {})})
