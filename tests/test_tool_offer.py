"""Which tools somebody chooses from, and when within the work one is used."""

from __future__ import annotations

from datetime import datetime
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run
from taskweave.backbones import calling
from taskweave.records import Request, canonical, tokens
from taskweave.simulation.tool_offer import offer
from taskweave.simulation.tool_use import MOST_CALLS
from taskweave.tools.shelf import KITS, TOOLS, granted
from tests.simulated import WORKSHOP, rows, simulated

ALL = tuple(TOOLS.values())
SHOP = WORKSHOP.replace("count: 2,", "count: 2, tools: [sqlite, wiki, email],") + "tools: on\n"


# ---------------------------------------------------------------- how many
def test_tools_that_fit_are_all_offered_in_their_order() -> None:
    some = granted(["wiki", "email"])
    offered = offer(some, "anything", room=2_000)
    assert offered.tools == some
    assert [line["name"] for line in offered.lines] == [tool.name for tool in some]
    assert all("more" not in line for line in offered.lines)


def test_of_too_many_those_nearest_to_the_work_are_offered_and_the_rest_is_counted() -> None:
    offered = offer(ALL, "Write the wiki page on chairs and open a ticket for the colleague", room=600)
    names = [tool.name for tool in offered.tools]
    assert {"wiki_write", "ticket_open"} <= set(names)
    assert names == [tool.name for tool in ALL if tool.name in names]
    assert offered.lines[-1]["more"] == len(ALL) - len(names) > 0
    assert [line.get("more") for line in offered.lines[:-1]] == [None] * (len(names) - 1)


@pytest.mark.parametrize("room", [1, 300, 600, 1_400])
def test_the_list_and_the_schema_keep_to_their_room(room: int) -> None:
    offered = offer(ALL, "Send the figures by e-mail", room=room)
    schema = calling.choice(calling.Function(tool.name, tool.summary, tool.schema) for tool in offered.tools)
    taken = tokens(canonical(schema)) + sum(tokens(canonical(line)) for line in offered.lines)
    assert len(offered.tools) == 1 or taken <= room * 1.1 + 60, (taken, room)
    assert offered == offer(ALL, "Send the figures by e-mail", room=room)


def test_tools_that_have_nothing_to_do_with_the_work_take_turns() -> None:
    offered = {tuple(tool.name for tool in offer(ALL, "zzz", room=10_000, most=3, turn=turn).tools) for turn in range(len(ALL))}
    assert len(offered) == len(ALL)
    assert {name for names in offered for name in names} == set(TOOLS)


def test_a_role_with_every_tool_is_asked_within_the_budget_and_told_that_some_are_left_out(tmp_path: Path) -> None:
    asked: list[Request] = []

    def noting(request: Request) -> Any:
        asked.append(request)
        return {"call": {"tool": "none", "arguments": {}}}

    every = SHOP.replace("[sqlite, wiki, email]", f"[{', '.join(KITS)}]")
    simulated(tmp_path / "run", every, until="week:1", stubs={"execute_tool": noting})
    assert asked
    for request in asked:
        names = [one.name for one in calling.functions(request.schema)]
        assert names == [*(line["name"] for line in request.inputs["tools"]), "none"]
        assert len(names) <= len(TOOLS)
        assert tokens(canonical(request.schema)) < 1_400
        left = len(TOOLS) - len(request.inputs["tools"])
        assert left > 0
        assert f"- … and {left} more" in request.messages[-1][1]


# ---------------------------------------------------------------- when
@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("moments") / "run", SHOP, until="week:6")


def test_every_call_is_made_within_its_work_and_working_hours(run: Run) -> None:
    subtasks = {row["id"]: row for row in rows(run, "subtasks")}
    calls = rows(run, "tool_calls")
    moments = [call["outcome"]["at"] for call in calls]
    assert len(set(moments)) > len(moments) / 2, "not all at one moment of the day"
    for call in calls:
        at, subtask = call["outcome"]["at"].replace(" ", "T"), subtasks[call["result"]]
        assert subtask["started"] <= at
        assert not subtask["finished"] or at < subtask["finished"]
        moment = datetime.fromisoformat(at)
        assert 9 <= moment.hour < 17
        assert moment.weekday() < 5


def test_the_calls_of_one_execution_follow_each_other(run: Run) -> None:
    by: dict[str, list[str]] = {}
    for call in sorted(rows(run, "tool_calls"), key=lambda call: call["id"]):
        by.setdefault(call["result"], []).append(call["outcome"]["at"])
    assert max(map(len, by.values())) == MOST_CALLS
    assert all(moments == sorted(set(moments)) for moments in by.values())


def test_what_rests_on_a_call_comes_after_it(run: Run) -> None:
    at: dict[str, list[str]] = {}
    for call in rows(run, "tool_calls"):
        at.setdefault(call["result"], []).append(call["outcome"]["at"])
    pairs = [(use["used"], use["result"]) for use in rows(run, "uses", kind="result", how="explicit")]
    both = [(max(at[first]), min(at[second])) for first, second in pairs if first in at and second in at]
    assert both
    assert all(earlier < later for earlier, later in both)


def test_a_mail_is_dated_by_the_moment_at_which_it_was_sent(run: Run) -> None:
    sent = {call["outcome"]["at"].partition(" ")[2] for call in rows(run, "tool_calls") if call["tool"].startswith("mail_")}
    files = [file for file in (run.path / "artifacts").rglob("*") if file.is_file() and file.parent.name in ("cur", "new")]
    dates = [parsedate_to_datetime(message_from_bytes(file.read_bytes())["Date"]).strftime("%H:%M") for file in files]
    assert dates
    assert set(dates) <= sent
