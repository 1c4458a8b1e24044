"""From a run and what a person wants changed in it to the folders of its forks.  Entry point: `fork`: nothing is driven here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskweave.answering import answering_of, asked_in, backbone_for, lasting, make_ready
from taskweave.backbones.members import members_of
from taskweave.engine.budget import Budget
from taskweave.experiments.fork import Fork, make, plan
from taskweave.given import checked, named, prompt_folders
from taskweave.loading import Organization, content
from taskweave.prompts import PromptBook
from taskweave.runs import RunFolder
from taskweave.runs.budgets import BUDGETS, costs, refuse_unpriced
from taskweave.runs.forking import Answering

if TYPE_CHECKING:
    from taskweave.records import Backbone


def fork(
    parent: RunFolder,
    *,
    at: str,
    out: Path | None = None,
    incidents: Sequence[Path] = (),
    drop: Sequence[str] = (),
    redraws: Sequence[int] = (),
    each: int | None = None,
    prompts: Sequence[Path] = (),
    org: Organization | Path | str | None = None,
    backbone: str | Backbone | None = None,
    base_url: str | None = None,
    look: bool = True,
    say: Callable[[str], None] = lambda _: None,
    agree: Callable[[Backbone, list[Fork]], None] | None = None,
    **told: Any,
) -> list[tuple[RunFolder, Backbone]]:
    """Make forks of a run, to be driven: one, one for each of `redraws`, or one for each of `each` incidents.

    Everything is checked before anything is written.

    `org` is an organization, or the file of one, that holds from the fork's week on, `backbone` answers from then on, the parent's where
    None; `look`, `say` and `agree` as in `begin`, and `say` hears who comes and goes; `told` are settings that change no request (until,
    limit, patience, max_fallback, budgets, tags), the parent's where None.
    """
    checked(**{name: value for name, value in told.items() if value is not None})
    laid = prompt_folders(prompts, parent.config.style)[1:] if prompts else []
    if laid:
        PromptBook.load(parent.path / parent.config.segments[-1].prompts, *laid).try_out(prompt_folders((), parent.config.style)[0])
    answering, before, own = None, None, backbone if backbone is not None and not isinstance(backbone, str) else None
    if backbone is None:
        asked = answering_of(parent, None, base_url)
    else:
        asked = backbone_for(backbone, base_url, parent.routes())
        make_ready(asked)
        spec = lasting(backbone) if isinstance(backbone, str) else asked.name
        answering = Answering(
            identity=asked.name, origin=asked.origin, spec=spec, base_url=base_url, given="object" if own is not None else "name"
        )
    forks = plan(
        parent,
        at=at,
        out=out,
        incidents=incidents,
        drop=drop,
        redraws=redraws,
        each=each,
        prompts=laid,
        answering=answering,
        until=told.get("until"),
        organization=None if org is None else content(org),
        say=say,
    )
    allowed = {name: told[name] if told.get(name) is not None else getattr(parent.config, name) for name in BUDGETS}
    given = parent.config.backbone if backbone is None else named(backbone)
    refuse_unpriced(allowed["budget_usd"], given, members_of(asked), parent.prices())
    if agree is not None:
        agree(asked, forks)
    if backbone is not None:
        budget = Budget(usd=allowed["budget_usd"], tokens=allowed["budget_tokens"], cost=costs(given, parent.prices()))
        _, before = asked_in(parent.config.style, backbone, asked, base_url, prompts, look=look, say=say, budget=budget)
    elif base_url is not None:
        told["base_url"] = base_url
    folders = [make(parent, one, before=before, **told) for one in forks]
    return [(folder, answering_of(folder, own, None)) for folder in folders]
