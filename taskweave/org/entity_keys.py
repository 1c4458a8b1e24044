"""Whom and what does an organization have to do with?  The file's `entities`: customers, suppliers, products, systems.

Entry points: `ENTITIES` (how it is read), `check`, `resolve`, `written` (as it stands in a file), `ATTRIBUTES`, `reserved`.  A kind is a
number, a list of names, or a mapping of names to what is known of each.  Refuses to make anything up: `entities.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from taskweave.org import form
from taskweave.org.form import Kind, Reading, Where, said
from taskweave.org.organization import EntityKind
from taskweave.org.yamlfile import Listing, Node, Scalar
from taskweave.org.yamlfile import Mapping as MappingNode
from taskweave.records import Json

Raw = Mapping[str, Json]
# What is known of one of a kind, and how a sentence calls it.
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "customers": {
        "contact": "contact person",
        "contact_email": "contact e-mail",
        "phone": "telephone",
        "address": "address",
        "account": "account number",
        "contract_value": "contract value",
        "renewal_date": "contract renewal on",
    },
    "suppliers": {
        "contact": "contact person",
        "contact_email": "contact e-mail",
        "phone": "telephone",
        "account": "account number",
        "payment_terms": "payment terms",
        "contract_value": "contract value",
        "contract_end": "contract end on",
    },
    "products": {"version": "current version", "price": "list price", "release_date": "next release on"},
    "systems": {"version": "current version", "host": "host", "address": "network address", "maintenance": "maintenance window"},
}
SINGULAR = {"customers": "customer", "suppliers": "supplier", "products": "product", "systems": "system"}
MOST = 500  # of a kind
LONGEST = 120  # characters of what is known of one
COUNT = "count"
_DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)*(?:example|test|invalid|localhost|example\.(?:com|net|org))", re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@(?P<domain>[^\s@]+)")
# Numbers that regulators keep for fiction: Ofcom's for drama, 555-0100 to 555-0199 in North America.
_FICTITIOUS = (
    re.compile(r"\+?44 ?\(?0?\)?(?:1632 ?960|20 ?7946 ?0|113 ?496 ?0|7700 ?900)\d{3}"),
    re.compile(r"0(?:1632 ?960|20 ?7946 ?0|113 ?496 ?0|7700 ?900)\d{3}"),
    re.compile(r"(?:\+?1[ -])?\(?\d{3}\)?[ -]555[ -]01\d\d"),
)
_ADDRESS = re.compile(r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d{1,3}|2001:db8:[0-9a-f:]+", re.IGNORECASE)


# ------------------------------------------------------------ what is reserved
def reserved(attribute: str, text: str, kind: str = "") -> str | None:
    """What is wrong with a value that could reach somebody real; None where nothing is.

    Reserved are the domains of RFC 2606, the addresses of RFC 5737 and 3849, Ofcom's numbers for drama and 555-0100 to 555-0199.
    """
    if attribute == "contact_email":
        found = _EMAIL.fullmatch(text)
        if found is None or _DOMAIN.fullmatch(found["domain"]) is None:
            return f"{said(text)} is not an e-mail address under a reserved domain such as 'ida@firm.example'"
    elif attribute == "phone" and not any(one.fullmatch(text) for one in _FICTITIOUS):
        return f"{said(text)} is not a number kept for fiction, such as '+44 1632 960123' or '+1 202-555-0123'"
    elif attribute == "host" and _DOMAIN.fullmatch(text) is None:
        return f"{said(text)} is not a host under a reserved domain such as 'ledger.example'"
    elif attribute == "address" and kind == "systems" and _ADDRESS.fullmatch(text) is None:
        return f"{said(text)} is not a network address kept for documentation, such as '192.0.2.17'"
    return None


# ------------------------------------------------------------ how it is read
def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 0 <= int(text) <= MOST:
        raise ValueError(f"{said(text)} is not a number from 0 to {MOST}, nor names in a list or mapping")
    return int(text)


def _known(text: str) -> str:
    """What is known of one, on one line; it is shown as data, so it may hold anything that can be seen."""
    try:
        return form.clean_name(text, LONGEST)
    except ValueError as why:
        raise ValueError(str(why).replace("the name", "the value", 1)) from None


def _read_kind(reading: Reading, node: Node, path: Where) -> Json:
    """A number, names, or a mapping from names to what is known of each, in which `count` says how many there are in all."""
    if isinstance(node, Scalar):
        count = _COUNT.read(reading, node, path)
        return None if count is None else {COUNT: count, "named": {}}
    if isinstance(node, Listing):
        names = _NAMES.read(reading, node, path)
        for name in sorted({name for name in names if names.count(name) > 1}):
            reading.wrong_at(path, f"{said(name)} is written twice in {'.'.join(path)}; write each once")
        return {"named": dict.fromkeys(names, {})}
    counts = [value for key, value in node.entries if key.text == COUNT]
    named = _NAMED[path[-1]].read(reading, MappingNode(node.line, tuple(one for one in node.entries if one[0].text != COUNT)), path)
    values = {"named": named or {}}
    for value in counts:
        reading.lines[(*path, COUNT)] = value.line
        if (count := _COUNT.read(reading, value, (*path, COUNT))) is not None:
            values[COUNT] = count
    if len(counts) > 1:
        reading.wrong(counts[1].line, f"{COUNT!r} is written twice in {'.'.join(path)}")
    return values


_COUNT = form.scalar(_count, {"type": "integer", "minimum": 0, "maximum": MOST}, "a number")
_NAMES = form.listing(form.NAME)
_VALUE = form.scalar(_known, {"type": ["string", "number"]}, "a text")
_NAMED = {
    kind: form.mapping_of(
        form.clean_name, form.record({name: form.Field(_VALUE, label) for name, label in known.items()}, empty=True), "a name"
    )
    for kind, known in ATTRIBUTES.items()
}
ENTITIES = form.record(
    {
        kind: form.Field(
            Kind(_read_kind, {"anyOf": [dict(_COUNT.schema), dict(_NAMES.schema), dict(_NAMED[kind].schema)]}),
            f"{kind}: how many, their names, or a mapping from names to {', '.join(known)}; with 'count' for how many in all",
        )
        for kind, known in ATTRIBUTES.items()
    }
)


# ------------------------------------------------------------ what does not fit together
def check(raw: Raw, reading: Reading) -> None:
    """Note every problem of `entities`."""
    owners: dict[str, str] = {}
    for kind, one in raw.get("entities", {}).items():
        here: Where = ("entities", kind)
        named = one.get("named", {})
        if len(named) > MOST:
            reading.wrong_at(here, f"entities.{kind} names {len(named):,}; at most {MOST} are possible")
        if one.get(COUNT, len(named)) < len(named):
            reading.wrong_at((*here, COUNT), f"entities.{kind}.count is {one[COUNT]}, but {len(named)} are named; raise it or leave it out")
        for name, known in named.items():
            if (other := owners.setdefault(name.casefold(), kind)) != kind:
                reading.wrong_at((*here, name), f"{said(name)} stands under {other!r} and under {kind!r}; a name belongs to one")
            for attribute, text in known.items():
                if (why := reserved(attribute, text, kind)) is not None:
                    reading.wrong_at((*here, name, attribute), f"entities.{kind}.{attribute}: {why}; nobody real may be reached")


# ------------------------------------------------------------ as values, and as written
def resolve(one: Raw) -> EntityKind:
    """How many there are and what is given of them, for values that `check` found sound."""
    named = one.get("named", {})
    return EntityKind(count=one.get(COUNT, len(named)), named={name: dict(known) for name, known in named.items()})


def written(kind: EntityKind) -> Json:
    """The value under the kind's key, as it is written in a file."""
    return {COUNT: kind.count, **kind.named} if kind.named else kind.count
