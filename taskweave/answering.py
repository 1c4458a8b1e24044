"""What answers a run: from what a person named to the backbone, its routes, and the style in which it is asked.

Entry points: `backbone_for` for a new run, `answering_of` for one that is resumed, `asked_in` for the style.  It refuses to know what is
asked, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from taskweave import backbones
from taskweave.backbones.members import Gone, Members, members_of
from taskweave.backbones.structured import origin_of
from taskweave.engine.budget import Budget
from taskweave.engine.journal import Journal
from taskweave.errors import BadInput, Refused, RoutingInvalid, RunRefused
from taskweave.given import checked_backbone, prompt_folders
from taskweave.org.yamlfile import Unreadable, read_limited
from taskweave.prompts import PromptBook
from taskweave.records import StyleName
from taskweave.runs import RunFolder, replaying

if TYPE_CHECKING:
    from taskweave.backbones.routing import Routes
    from taskweave.org.schema import Organization as Resolved
    from taskweave.records import Backbone


def backbone_for(given: str | Backbone, base_url: str | None, routes: Routes | None) -> Backbone:
    """What answers: the backbone that was given, and beside it those of the routes."""
    own_url = base_url
    if routes is not None and any(route.takes_a_url and route.base_url is None for route in routes.routes):
        # Then it has a meaning also where the run's own backbone has no use for it.
        own_url = base_url if isinstance(given, str) and given.partition(":")[0] == "openai" else None
    answering: Backbone
    if isinstance(given, str):
        answering = replaying.replay(given, base_url=own_url) if replays(given) else backbones.backbone(given, base_url=own_url)
    else:
        checked_backbone(given)
        answering = given
    if routes is None:
        return answering
    from taskweave.backbones.routing import Routed

    return Routed(answering, routes, spec=given if isinstance(given, str) else None, base_url=base_url)


def answering_of(folder: RunFolder, given: Backbone | None, base_url: str | None) -> Backbone:
    """What answers a run that is resumed: the object that was given, else what its config names."""
    config, name = folder.config, folder.config.segments[-1].backbone
    if given is None:
        if config.backbone_given == "object":
            raise RunRefused(
                f"{folder.path}: the run was begun from Python with a backbone object named {name!r}, which no file can bring back. "
                f"Resume it from Python with such an object: Run.open({str(folder.path)!r}).resume(backbone=...)."
            )
        return _with_earlier(folder, backbone_for(config.backbone, base_url or config.base_url, folder.routes()))
    answering = _with_earlier(folder, backbone_for(given, base_url or config.base_url, folder.routes()))
    if given.name != name:
        raise RunRefused(f"{folder.path}: backbone={given!r} is named {given.name!r}, but {name!r} answered so far. Give one of that name.")
    return answering


def _with_earlier(folder: RunFolder, answering: Backbone) -> Backbone:
    """What answers now, and what answered before it in the run that this one is a fork of: a call of then may not have been answered."""
    earlier: dict[str, Backbone] = {}
    for segment in folder.config.segments:
        if segment.given is not None and segment.backbone not in members_of(answering):
            try:
                earlier[segment.backbone] = backbone_for(segment.given, segment.base_url, None)
            except BadInput as trouble:
                origin: Literal["model", "scripted"] = "scripted" if origin_of(segment.backbone) == "scripted" else "model"
                earlier[segment.backbone] = Gone(segment.backbone, origin, str(trouble))
    return Members(answering, {**members_of(answering), **earlier}) if earlier else answering


def make_ready(backbone: Backbone) -> None:
    """A model in a file is loaded before anything is written.  Raises BadInput for one that cannot be."""
    for one in members_of(backbone).values():
        if (make_ready := getattr(one, "make_ready", None)) is not None:
            try:
                make_ready()
            except Refused as trouble:
                raise BadInput(str(trouble)) from None


def asked_in(
    given: StyleName | None,
    backbone: str | Backbone,
    answering: Backbone,
    base_url: str | None,
    prompts: Sequence[Path],
    *,
    look: bool,
    say: Callable[[str], None],
    budget: Budget | None = None,
) -> tuple[StyleName, Callable[[Journal], None] | None]:
    """How the steps of a new run are asked, and what writes down what was asked to find that out.

    As was told; else as the run that is replayed was asked, as the weakest of the endpoints needs it, or whole.  What is
    asked for that stays within the run's `budget`.
    """
    members = dict(members_of(answering))
    if not isinstance(backbone, str):
        members.pop(answering.name)
    endpoints = {} if replays(backbone) else {id(one): one for one in members.values() if one.name.partition(":")[0] in ("openai", "local")}
    if not endpoints:
        recorded: StyleName | None = getattr(members.get(answering.name), "style", None)
        return given or recorded or "full", None
    from taskweave.looking import chosen, write_all

    whole = PromptBook.load(*prompt_folders(prompts, "full"))
    picked = [
        chosen(one, base_url=base_url if one.name == answering.name else getattr(one, "base_url", None), prompts=whole, style=given,
               allowed=look, say=say, budget=budget)
        for one in endpoints.values()
    ]  # fmt: skip
    style: StyleName = "compact" if any(one.style == "compact" for one in picked) else "full"
    return style, lambda journal: write_all(picked, journal)


def routes_in(file: Path | None, org: Resolved, say: Callable[[str], None] = lambda _: None) -> tuple[bytes | None, Routes | None]:
    """A routing file's content and what it says; `say` hears of each route that takes nothing.  Raises RoutingInvalid."""
    if file is None:
        return None, None
    from taskweave.backbones.routing import idle, read_routes

    try:
        text = read_limited(file)
    except Unreadable as trouble:
        raise RoutingInvalid([trouble.problem(str(file))]) from None
    routes = read_routes(text, str(file), org)
    for why in idle(routes, org):
        say(why)
    return text, routes


def replays(backbone: str | Backbone) -> bool:
    """Whether nobody is asked, since another run's answers are taken."""
    return isinstance(backbone, str) and backbone.partition(":")[0] == replaying.KIND


def lasting(spec: str) -> str:
    """The backbone as a later process, in another folder, has to name it."""
    return replaying.lasting(spec) if replays(spec) else backbones.lasting(spec)
