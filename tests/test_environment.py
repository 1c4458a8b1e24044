"""Key figures and the progress of goals."""

from __future__ import annotations

from typing import Any

import pytest

from taskweave.org.schema import parse
from taskweave.simulation.environment import Environment

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
