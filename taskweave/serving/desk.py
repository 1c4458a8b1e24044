"""What may be asked of a run from outside, through whose eyes, and what is answered?  Entry point: `Desk`.

Without an agent: the pool, and those reading tools of the organization that are about nobody in particular.  As an agent: the pool, and the
reading tools of its role.  What writes is not offered and says so when called by name.  It knows no protocol.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from taskweave.errors import BadInput, TaskWeaveError, ToolRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.pool.pool import Pool
from taskweave.records import Json
from taskweave.runs import RunFolder
from taskweave.serving.pages import NOTE, fenced
from taskweave.serving.questions import QUESTIONS, View
from taskweave.serving.rebuilt import RebuiltWorld
from taskweave.tools.shelf import PACKAGES, TOOLS, granted, own_names
from taskweave.tools.tool import Tool

MOST_REFUSAL = 2_000  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came of a call: one line of JSON, the same as a value, and whether it was refused."""

    text: str
    value: dict[str, Json]
    refused: bool


class Desk:
    """One run, open for questions."""

    def __init__(self, folder: RunFolder, open_pool: Callable[[], Pool], *, agent: str | None = None) -> None:
        """`open_pool` gives run.db as it stands now, and raises where it cannot be read.  Raises BadInput for an agent who is not there."""
        self._folder, self._open_pool = folder, open_pool
        self._tenures = folder.tenures()
        self._calendar = WorkCalendar(self._tenures[0].organization.calendar)
        self._world = RebuiltWorld(self._tenures, self._calendar)
        with open_pool() as pool:
            self._org = self._organization(pool)
            roles = {row["id"]: row["role"] for row in pool.rows("agents")}
        self.agent = None if agent is None else _named(agent, roles)
        self.notes: list[str] = []
        self._tools = self._offered(None if self.agent is None else roles[self.agent])

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What may be called."""
        return (*QUESTIONS.values(), *self._tools.values())

    @property
    def about(self) -> str:
        """What whoever connects is told."""
        eyes = "" if self.agent is None else f" It is seen through the eyes of {self.agent}."
        return (
            f"The run {self._folder.name} of the simulated organization {self._org.name}, to be read only.{eyes} Begin with run_about; "
            f"run_search and run_result read deliverables, run_trace says why they are so. {NOTE}"
        )

    def close(self) -> None:
        self._world.close()

    def call(self, name: str, arguments: Mapping[str, Json]) -> Answer:
        """Answer one question.  A refusal is an answer; whatever else goes wrong with the run's files is one, too."""
        try:
            with self._open_pool() as pool, pool.snapshot():
                value = self._ask(pool, name, dict(arguments))
        except TaskWeaveError as no:
            said: dict[str, Json] = {"error": str(no)[:MOST_REFUSAL]}
            return Answer(text=fenced(said), value=said, refused=True)
        told = {"note": NOTE, "data": value}
        return Answer(text=fenced(told), value=told, refused=False)

    # ------------------------------------------------------------ inside
    def _organization(self, pool: Pool) -> Organization:
        """The one that holds in the last closed week: a fork may have amended it."""
        week = max(pool.weeks(), default=1)
        return next(one for one in reversed(self._tenures) if one.week <= max(week, 1)).organization

    def _ask(self, pool: Pool, name: str, arguments: dict[str, Json]) -> Json:
        if (question := QUESTIONS.get(name)) is not None:
            view = View(run=self._folder.name, pool=pool, org=self._organization(pool), calendar=self._calendar)
            return question(view, arguments)  # type: ignore[arg-type]  # a question holds a view where a tool holds a hand
        if (tool := self._tools.get(name)) is not None:
            return self._world.ask(pool, tool, arguments, actor=self.agent)
        raise ToolRefused(self._why_not(name))

    def _why_not(self, name: str) -> str:
        known = TOOLS.get(name)
        if known is not None and known.writes:
            return f"{name} changes the organization's world, and this run is only read here"
        if known is not None and known.personal and self.agent is None:
            return f"{name} is about whoever calls it: serve the run --as an agent who has it"
        if known is not None:
            return f"{name} is not among the tools that {'the organization' if self.agent is None else self.agent} has"
        near = difflib.get_close_matches(name, [tool.name for tool in self.tools], 1)
        return f"there is no tool {name[:100]!r}" + (f"; did you mean {near[0]!r}?" if near else "")

    def _offered(self, role: str | None) -> dict[str, Tool]:
        """The organization's tools that may be called: of one role, or of all roles."""
        if not self._org.tools:
            self.notes.append(f"{self._org.name} uses no tools (tools: off): only the pool is served")
            return {}
        found: dict[str, Tool] = {}
        for title, one in self._org.roles.items():
            for tool in granted(own_names(self._org, one.tools) if role in (None, title) else ()):
                if tool.writes or (tool.personal and self.agent is None):
                    continue
                if tool.needs and not all(map(find_spec, PACKAGES[tool.needs])):
                    self.notes.append(f'{tool.name} is left out: it needs packages, pip install "taskweave[{tool.needs}]"')
                    continue
                found[tool.name] = tool
        self.notes = list(dict.fromkeys(self.notes))
        return {name: found[name] for name in TOOLS if name in found}


def _named(agent: str, roles: Mapping[str, str]) -> str:
    """The agent's id; raises BadInput with the nearest."""
    if agent.strip().casefold() in roles:
        return agent.strip().casefold()
    near = difflib.get_close_matches(agent.casefold(), roles, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(list(roles)[:8])}{', …' if len(roles) > 8 else ''}"
    raise BadInput(f"--as {agent!r}: nobody of the run has this id; {hint}")
