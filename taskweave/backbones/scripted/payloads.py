"""What a goal asks for: which rule hands it over, and the people, counts and dates that such rules speak of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.figures import OF_SECOND, forget_second
from taskweave.backbones.scripted.grammar import Draft, load
from taskweave.backbones.scripted.sources import Source


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str] | None, re.Pattern[str] | None, str], ...]:
    """What a goal begins with and what it holds, where it asks for something, and the name of that: a search for '^' looks everywhere."""
    found = []
    for entry in load().tables["payloads"]:
        options = _OPTION.findall(str(entry["when"]))
        first = "|".join(option.removeprefix("^") for option in options if option.startswith("^"))
        inside = "|".join(option for option in options if not option.startswith("^"))
        found.append((re.compile(first) if first else None, re.compile(inside) if inside else None, str(entry["say"])))
    return tuple(found)


_OPTION = re.compile(r"(?:[^|()]|\([^()]*\))+")  # of a pattern, up to a '|' that stands in no group


@lru_cache(maxsize=4096)
def asked(goal: str, own: str, about: str, activity: str) -> str:
    """What the goal of a subtask asks for, by its words without the subjects, else by its activity."""
    low = goal.lower()
    for subject in sorted((own.lower(), about.lower()), key=len, reverse=True):
        low = low.replace(subject, "it")
    for first, inside, name in _patterns():
        if (first and first.match(low)) or (inside and inside.search(low)):
            return name
    return str(load().tables["payload_of"].get(activity, "sum"))


def others_of(sources: Sequence[Source], author: str, near: Collection[str], *subjects: str) -> list[tuple[str, str]]:
    """Those known by name, with their roles, who wrote on one of the subjects, then those of a role `near` that of the author."""
    ranks = [0 if one.part or one.about(*subjects) else 1 if one.slots["dep_role"] in near else 2 for one in sources]
    ordered = [one for wanted in (0, 1) for one, rank in zip(sources, ranks, strict=True) if rank == wanted]
    roles = {one.slots["dep_author"]: one.slots["dep_role"] for one in reversed(ordered)}
    return [(name, roles[name]) for name in wording.unique(one.slots["dep_author"] for one in ordered) if name and name != author]


def know_people(draft: Draft, near: Sequence[str], role: str, others: Sequence[tuple[str, str]], head: str, meeting: bool) -> None:
    """`p1` and `p2`: two others who were involved, by name where one is known, else by function; `present`: who was at a meeting.

    The head decides, and is one of the two at a `meeting` only, where the two are those who speak.
    """
    names, taken = [name for name, _ in others], {role, head, *(title for _, title in others)}
    functions = [title if title.isupper() else f"the {title}" for title in draft.sample([title for title in near if title not in taken], 2)]
    people = [*names[:2], *([f"the {head}"] if meeting and head != role else []), *functions, "a colleague", "another colleague"]
    draft.know(p1=people[0], p2=people[1])
    if names:
        draft.know(colleague=names[0], copy_to=wording.join(names[:2]))
    draft.know(present=wording.join([draft.slots["author"], *people[:2]]), mail_to=head)


def know_question(draft: Draft, name: str) -> None:
    draft.know(**({"scheduled": "yes"} if name == "schedule" else {}))
    draft.know(question=draft.say(f"question_{name}"))


def know_payload(draft: Draft, name: str) -> None:
    """The payload in words.  A text tells of a second group where its payload does; all its other sentences count accordingly."""
    chosen = draft.choose(f"payload_{name}")
    if chosen is None or chosen.condition.needs.isdisjoint(OF_SECOND):
        forget_second(draft.slots)
    said = "" if chosen is None else draft.fill(chosen)
    if "incident" in draft.slots:
        said = f"{draft.say('answer_line')}\n{said}"
    draft.know(payload=said)


def know_told(draft: Draft) -> None:
    """What the payload has told already.

    `found`: the main finding; `did1`: its remedy; `settled`: who decides, and when; `left2`: a second group without its remedy.
    """
    slots, said = draft.slots, draft.slots["payload"]
    for key in ("found", "did1", "settled", "left2", "done"):
        slots.pop(key, None)
    if slots["flaw1"] in said:
        draft.know(found="yes")
    if slots["do1"] in said:
        draft.know(did1="yes")
    if (
        slots["head"] in said
        and slots["soon"] in said
        and slots["do1"] in said
        and any(word in said for word in ("ecide", "say no", "yes"))
    ):
        draft.know(settled="yes")
    if "builds_older" in slots:
        draft.know(builds=slots["builds_older" if slots["trend"] in said else "builds_than"])
    if "flaw2" in slots and slots["do2"] not in said:
        draft.know(left2="yes")
    if slots["do1"] in said and f"one on {slots['day1']}" in said:  # 'done on', 'Done on'
        draft.know(done="yes")
