"""What does an incident ask of the organization?  Entry point: `asked`, its effects as a person says them.

Reads the column `effects` of the table `incidents`, each effect a mapping of its kind to its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from taskweave.records import Json

Values = Mapping[str, Json]


def asked(effects: Sequence[Values]) -> tuple[str, ...]:
    """A phrase an effect, in their order; nothing where an incident is heard only."""
    return tuple(_SAID[kind](value) for effect in effects for kind, value in effect.items() if kind in _SAID)


def _who(value: Values, otherwise: str = "whom it affects") -> str:
    for kind in ("role", "department", "agent"):
        if kind in value:
            names = value[kind] if isinstance(value[kind], list) else [value[kind]]
            return ", ".join(map(str, names))
    return otherwise


def _for(value: Values) -> str:
    return f" for {value['for']}" if "for" in value else ""


def _number(value: Values) -> str:
    return f"{value['count']} of " if "count" in value else ""


def _workload(value: Values) -> str:
    pressing = "" if value["priority"] == "normal" else f", {value['priority']}"
    return f"{value['title']!r}: {value['hours']:g} h of {_who(value)}, due in {value['due']}{pressing}"


def _capacity(value: Values) -> str:
    change = 100 * (value["factor"] - 1)
    return f"{abs(change):.0f} % {'fewer' if change < 0 else 'more'} hours to plan with for {_who(value)}{_for(value)}"


def _budget(value: Values) -> str:
    parts = [f"new tasks of {value['hours']:g} h at the most"] if "hours" in value else []
    parts += ["nobody begins"] if value.get("hiring") == "freeze" else []
    return f"{' and '.join(parts)} for {_who(value)}{_for(value)}"


def _kpi(value: Values) -> str:
    moved = [f"{name} {shift:+g}" for name, shift in value.items() if name not in ("slope", "for")]
    slope = f", {value['slope']}{_for(value)}" if "slope" in value else ""
    return f"{', '.join(moved)}{slope}"


_SAID: Mapping[str, Callable[[Json], str]] = {
    "news": lambda value: f"news: {value}",
    "absence": lambda value: f"{_number(value)}{_who(value)} away{_for(value)}",
    "departure": lambda value: f"{_number(value)}{_who(value)} leave",
    "hire": lambda value: f"{value['count']} {value['role']} hired, beginning in {value['in']}",
    "workload": _workload,
    "capacity": _capacity,
    "budget": _budget,
    "kpi": _kpi,
    "tool_outage": lambda value: f"{value['tool']} does not work{_for(value)}",
    "deadline": lambda value: f"{value['goal']} is due by {value['by']}",
    "priority": lambda value: f"tasks for {value['goal']} have priority {value['to']}",
}
