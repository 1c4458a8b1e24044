"""The incidents that come with TaskWeave: complete, and fit for any organization."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from taskweave.errors import BadInput
from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Population
from taskweave.org.schema import Organization, load, parse
from taskweave.shipped import built_in
from taskweave.simulation.incidents import load_incidents, read_incident
from taskweave.simulation.incidents.catalogue import Entry, entries
from taskweave.simulation.incidents.effects import SPAN, after
from taskweave.simulation.incidents.rate import read_rate, spread
from tests.simulated import events, rows, simulated

PAIR = "name: Pair\ndomain: D\nroles: {Boss: {}, Hand: Boss}\n"


def payloads(asked: str, org: Organization) -> list[dict]:  # type: ignore[type-arg]
    return load_incidents(Path(asked), org, Population.sample(org, 1), WorkCalendar(org.calendar))


def test_there_are_twenty_of_ones_own_and_seventy_of_the_world() -> None:
    found = entries()
    counts = Counter(entry.category for entry in found)
    assert counts["internal"] >= 20
    assert sum(counts[name] for name in ("policy", "economic", "technology")) >= 70
    assert min(counts.values()) >= 20
    assert all(entry.category == entry.file.stem for entry in found)
    assert len({entry.name for entry in found}) == len(found)
    assert {kind for entry in found for kind in entry.effects} >= {
        "absence", "departure", "hire", "workload", "capacity", "budget", "kpi", "tool_outage", "deadline", "priority"
    }  # fmt: skip


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_each_says_what_happens_what_it_does_how_long_it_lasts_and_what_really_happened_when(entry: Entry) -> None:
    assert entry.description.endswith(".")
    assert entry.effects
    assert SPAN.fullmatch(entry.duration), "a duration is said and not left to the default"
    assert any(str(year) in entry.basis for year in range(1990, 2027))
    assert len(entry.basis) > 30
    assert entry.basis.endswith(".")


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_what_each_sets_going_ends_with_it_or_before(entry: Entry) -> None:
    org = load(built_in()["company_a"])
    (payload,) = payloads(f"library:{entry.name}", org)
    start = date(2026, 2, 2)
    ends = after(start, payload["duration"])
    spans = [value["for"] for effect in payload["effects"] for value in effect.values() if isinstance(value, dict) and "for" in value]
    assert all(after(start, span) <= ends for span in spans)
    due = [value["due"] for effect in payload["effects"] for kind, value in effect.items() if kind == "workload"]
    assert all(after(start, span) <= ends for span in due), "work is due while it is in force"


@pytest.mark.parametrize("name", [*built_in(), "pair"])
def test_all_of_them_mean_something_in_every_organization_and_the_journal_holds_names_only(name: str) -> None:
    org = parse(PAIR, "pair.yaml") if name == "pair" else load(built_in()[name])
    population, calendar = Population.sample(org, 1), WorkCalendar(org.calendar)
    found = payloads("library:all", org)
    assert len(found) == len(entries())
    for payload in found:
        assert read_incident(payload, org, population, calendar).payload(calendar) == payload
        assert "match" not in str(payload["effects"])
        assert "basis" not in payload


def test_a_category_or_a_name_is_chosen_and_what_there_is_not_is_told_with_the_nearest() -> None:
    org = load(built_in()["company_a"])
    assert {payload["category"] for payload in payloads("library:policy", org)} == {"policy"}
    (one,) = payloads("library:zero-day-cascade", org)
    assert one["title"] == "Zero-Day Cascade"
    with pytest.raises(BadInput, match=r"nearest: zero-day-cascade.*taskweave incidents"):
        payloads("library:zero-day-cascad", org)


def test_words_choose_the_roles_of_that_name_before_those_of_such_work() -> None:
    org = load(built_in()["company_a"])
    (one,) = payloads("library:zero-day-cascade", org)
    assert "Backend Engineer" in one["affects"]
    assert "Marketing Specialist" not in one["affects"]


def test_an_incident_of_the_library_acts(tmp_path: Path) -> None:
    org = "name: Shop\ndomain: D\nroles: {Head: {leads: Craft}, Smith: {reports_to: Head, count: 4, hours: 4-8}}\n"
    (tmp_path / "ours.yaml").write_text("title: Ours\nat: week:1\n")
    run = simulated(tmp_path / "run", org, until="week:2", incidents=[{"title": "Quiet", "at": "week:1"}])
    assert not events(run, "departure")
    run.inject(Path("library:two-colleagues-leave"), at="week:3")
    run.resume(until="week:4")
    assert len(events(run, "departure")) == 2
    assert rows(run, "tasks", title="Write down what the two who left knew")


def test_a_rate_draws_from_those_without_a_time_and_repeats_none_before_all_were_drawn() -> None:
    org = load(built_in()["company_a"])
    calendar = WorkCalendar(org.calendar)
    deck = [{"title": str(number)} for number in range(5)]
    fixed = [{"title": "fixed", "tick": 3}, {"title": "armed", "chance": "0.1/week"}]
    found = spread([*fixed, *deck], read_rate("1/month"), calendar, 1)
    assert found[:2] == fixed
    months = [calendar.week_of_day(one["tick"]).month for one in found[2:]]
    assert months == list(range(1, 13))
    titles = [one["title"] for one in found[2:]]
    assert len(set(titles[:5])) == len(set(titles[5:10])) == 5
    assert found == spread([*fixed, *deck], read_rate("1/month"), calendar, 1)
    assert found != spread([*fixed, *deck], read_rate("1/month"), calendar, 2)
    assert len(spread(deck, read_rate("3 / quarter"), calendar, 1)) == 12
    assert len(spread(deck, read_rate("1/year"), calendar, 1)) == 1


@pytest.mark.parametrize("rate", ["1", "0/month", "often", "1/day", "21/week", "-1/month", "1.5/month", ""])
def test_a_rate_that_cannot_be_read_is_told_with_an_example(rate: str) -> None:
    with pytest.raises(BadInput, match="for example 1/month"):
        read_rate(rate)


def test_a_rate_without_anything_to_draw_from_is_refused() -> None:
    org = load(built_in()["tiny"])
    with pytest.raises(BadInput, match="library:all"):
        spread([{"title": "fixed", "tick": 3}], read_rate("1/month"), WorkCalendar(org.calendar), 1)
