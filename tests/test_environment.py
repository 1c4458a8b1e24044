"""Key figures and the progress of goals."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from taskweave.errors import OrganizationInvalid
from taskweave.org.schema import parse
from taskweave.simulation.environment import Environment
from tests.simulated import events, rows, simulated

TEXT = """
name: Firm
domain: Consulting
goals:
  quality: {text: Churn under 2 %, kpi: churn, target: 2.0}
  spirit: {text: Be kind}
roles: {Head: {}}
environment:
  churn: {start: 4.0, unit: "%", drift: -0.5/week, noise: NOISE}
  firms: {start: 10, drift: 1/week}
"""


def readings(noise: str, weeks: int, seed: int = 1, text: str = TEXT) -> tuple[Environment, list[dict[str, float]]]:
    environment = Environment(parse(text.replace("NOISE", noise), "firm.yaml"), seed)
    seen = []
    for week in range(1, weeks + 1):
        environment.advance(week, {})
        seen.append({reading.kpi: reading.value for reading in environment.readings()})
    return environment, seen


def test_a_figure_starts_where_the_file_says_and_drifts() -> None:
    _, seen = readings("0", 3)
    assert seen == [{"churn": 4.0, "firms": 10}, {"churn": 3.5, "firms": 11}, {"churn": 3.0, "firms": 12}]


def test_a_finished_planned_hour_of_a_goal_moves_the_figures_that_the_file_names() -> None:
    moved = TEXT.replace("noise: NOISE}", "noise: 0, lowered_by: {quality: 0.01}}").replace("drift: 1/week}", "raised_by: {quality: 0.5}}")
    environment = Environment(parse(moved, "firm.yaml"), 1)
    environment.advance(1, {"quality": 100})
    environment.advance(2, {"quality": 10, "spirit": 100})
    assert {reading.kpi: reading.value for reading in environment.readings()} == {"churn": pytest.approx(4.0 - 0.5 - 0.1), "firms": 15}


def test_a_reading_stays_within_its_bounds() -> None:
    falling = TEXT.replace("drift: -0.5/week, noise: NOISE}", "drift: -3/week}").replace("drift: 1/week}", "drift: -4/week, least: -5}")
    seen = readings("0", 5, text=falling)[1]
    assert [week["churn"] for week in seen] == [4.0, 1.0, 0.0, 0.0, 0.0]
    assert [week["firms"] for week in seen] == [10, 6, 2, -2, -5]
    rising = TEXT.replace("drift: -0.5/week, noise: NOISE}", "drift: +60/week}")
    assert [week["churn"] for week in readings("0", 3, text=rising)[1]] == [4.0, 64.0, 100.0]


def test_noise_is_drawn_by_figure_and_week_so_that_another_figure_moves_nothing() -> None:
    one, two = readings("0.3", 6)[1], readings("0.3", 6, text=TEXT + "  mood: {start: 1, noise: 1}\n")[1]
    assert [week["churn"] for week in one] == [week["churn"] for week in two]
    assert [week["churn"] for week in one] != [week["churn"] for week in readings("0", 6)[1]]
    assert [week["churn"] for week in one] != [week["churn"] for week in readings("0.3", 6, seed=2)[1]]


@pytest.mark.parametrize(("weeks", "progress"), [(1, 0.0), (3, 0.5), (5, 1.0), (9, 1.0)])
def test_progress_is_the_way_from_start_to_target(weeks: int, progress: float) -> None:
    environment, _ = readings("0", weeks)
    organization: Any = parse(TEXT.replace("NOISE", "0"), "firm.yaml")
    assert environment.progress(organization.goals["quality"]) == progress


def test_a_goal_without_a_figure_has_no_progress() -> None:
    environment, _ = readings("0", 1)
    assert environment.progress(parse(TEXT.replace("NOISE", "0"), "firm.yaml").goals["spirit"]) is None


# ---------------------------------------------------------------- seasons, and what else moves a figure
SEASON = """
name: Firm
calendar: {start: 2026-01-05}
goals: {grow: {text: Grow}}
roles: {Head: {}, Clerk: {reports_to: Head}}
work: {tickets: {kind: stream, role: Clerk, arrivals: 3/week, hours: 1, steps: [answer]}}
environment:
  sales: {start: 50, SEASON}
"""


def a_year(season: str) -> list[float]:
    environment = Environment(parse(SEASON.replace("SEASON", season), "firm.yaml"), 1)
    found = []
    for week in range(1, 53):
        environment.advance(week, {})
        found.append(environment.values()["sales"])
    return found


def test_a_season_has_its_peak_in_the_month_that_the_file_names_and_its_ebb_half_a_year_later() -> None:
    values = a_year("season: {amplitude: 10, peak: june}")
    assert values[0] == 50
    top, bottom = values.index(max(values)) + 1, values.index(min(values)) + 1
    assert date(2026, 6, 1) <= date(2026, 1, 8) + timedelta(weeks=top - 1) <= date(2026, 6, 30)
    assert 48 <= bottom <= 51
    assert max(values) - min(values) == pytest.approx(20, abs=0.5)
    assert max(abs(a - b) for a, b in zip(values, values[1:], strict=False)) < 1.6  # no leap where a month ends


def test_a_season_by_month_adds_what_each_month_says_and_shifts_nothing_else() -> None:
    values, flat = a_year("season: {june: 6}, drift: 0.5/week"), a_year("drift: 0.5/week")
    added = [round(a - b, 4) for a, b in zip(values, flat, strict=True)]
    assert added[0] == added[10] == added[-1] == 0
    assert 5.4 < max(added) <= 6


def test_a_season_is_clamped_without_being_forgotten() -> None:
    values = a_year("season: {amplitude: 80, peak: june}, most: 100")
    assert max(values) == 100
    assert values[-1] == pytest.approx(50, abs=6)  # back where it began


@pytest.mark.parametrize(
    ("names", "worked"),
    [
        ("raised_by: {grow: 2}", {"grow": 3.0}),
        ("raised_by: {goal:grow: 2}", {"grow": 3.0}),
        ("raised_by: {Clerk: 2}", {"role:Clerk": 3.0}),
        ("raised_by: {role:Clerk: 2}", {"role:Clerk": 3.0}),
        ("raised_by: {tickets: 2}", {"work:tickets": 3.0}),
        ("lowered_by: {work:tickets: 2}", {"work:tickets": -3.0}),
    ],
)
def test_a_goal_a_role_or_a_stream_moves_a_figure(names: str, worked: dict[str, float]) -> None:
    environment = Environment(parse(SEASON.replace("SEASON", names), "firm.yaml"), 1)
    environment.advance(1, {})
    environment.advance(2, worked)
    assert environment.values()["sales"] == 56


def test_a_name_that_may_be_two_things_is_refused_with_the_choices() -> None:
    text = SEASON.replace("SEASON", "raised_by: {Clerk: 1}").replace("grow: {text", "Clerk: {text")
    with pytest.raises(
        OrganizationInvalid, match=r"'Clerk' in environment\.sales\.raised_by may be any of several; write 'goal:Clerk' or 'role:Clerk'"
    ):
        parse(text, "firm.yaml")
    assert parse(text.replace("{Clerk: 1}", "{role:Clerk: 1}"), "firm.yaml").environment["sales"].raised_by == {"role:Clerk": 1}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("raised_by: {Clrk: 1}", "unknown goal, role or work 'Clrk' in environment.sales.raised_by; did you mean 'Clerk'?"),
        ("raised_by: {Clerk: 1, role:Clerk: 2}", "'role:Clerk' and 'Clerk' in environment.sales.raised_by are the same; write it once"),
        ("season: {amplitude: 1}", "environment.sales.season needs the key 'peak'"),
        ("season: {amplitude: -1, peak: 3}", "must be at least 0"),
        ("season: {amplitude: 1, peak: 13}", "'13' is not a month such as"),
        ("season: {jnue: 1}", "'jnue' is not a month such as 'december', 'dec' or 12; did you mean 'june'?"),
        ("season: {june: 1, jun: 2}", "'june' is written twice"),
        ("season: 5", "must be a mapping"),
    ],
)
def test_what_a_figure_cannot_be_moved_by_is_refused_with_its_line(given: str, said: str) -> None:
    with pytest.raises(OrganizationInvalid) as raised:
        parse(SEASON.replace("SEASON", given), "firm.yaml")
    assert "firm.yaml:8: " in str(raised.value)
    assert said in str(raised.value)


def test_finished_subtasks_and_cases_move_the_readings_of_a_run(tmp_path: Path) -> None:
    file = SEASON.replace("SEASON", "raised_by: {KEY: 1}")
    roles, cases = (simulated(tmp_path / key, file.replace("KEY", key), until="week:4") for key in ("Clerk", "tickets"))
    done = [row for row in roles.table("subtasks") if row["status"] == "done" and row["role"] == "Clerk"]
    assert rows(roles, "readings", week=4)[0]["value"] > 50
    assert rows(roles, "readings", week=4)[0]["value"] <= 50 + sum(row["hours"] for row in done)
    before = [one for one in events(cases, "complete") if one["time"] < "2026-01-26"]
    assert rows(cases, "readings", week=4)[0]["value"] == 50 + len(before)
