"""What do works see in each segment of a run?  Entry point: `settings`, from what lies in its folder.

Segments of one organization share it, so that whoever sees another one by its identity sees that it was amended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.records import StyleName
from taskweave.simulation.setting import Setting, Style
from taskweave.simulation.tally import Tally
from taskweave.simulation.tooling import Tooling
from taskweave.tools.outside.servers import servers_of

if TYPE_CHECKING:
    from taskweave.runs import RunFolder


def settings(folder: RunFolder) -> list[Setting]:
    """One a segment, in order."""
    config = folder.config
    first, *later = folder.tenures()
    reached = servers_of(first.organization, **config.servers)
    tooling = Tooling.begin(first.organization, first.population, folder.path / "artifacts", folder.mcp_servers(), reached)
    common = Setting(
        org=first.organization,
        population=first.population,
        delegation=Delegation(first.organization, first.population),
        calendar=WorkCalendar(first.organization.calendar),
        prompts=folder.prompts(),
        backbone=config.segments[0].backbone,
        origin=config.segments[0].origin,
        assign=config.assign,
        seed=config.seed,
        draw=0,
        routes=folder.routes(),
        tally=Tally(config.max_fallback),
        style=_style(config.style),
        without=frozenset(config.without),
        tooling=tooling,
        entities=folder.entities(),
        file=first.file,
    )
    amended = {first.file: common}
    for tenure in later:
        amended[tenure.file] = replace(
            common,
            org=tenure.organization,
            population=tenure.population,
            delegation=Delegation(tenure.organization, tenure.population),
            tooling=None if tooling is None else tooling.amended(tenure.organization),
            file=tenure.file,
        )
    return [
        replace(
            amended[segment.org],
            prompts=folder.prompts(segment),
            backbone=segment.backbone,
            origin=segment.origin,
            draw=segment.draw,
            _cache={},
        )
        for segment in config.segments
    ]


def _style(name: StyleName) -> Style | None:
    """The style of that name, None for the full one; the one for weak models is loaded only where it is used."""
    if name == "full":
        return None
    from taskweave.simulation.compact import Compact

    return Compact()
