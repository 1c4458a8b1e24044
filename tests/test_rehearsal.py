"""What a step will be asked, before any run."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweave.driving import Organization
from taskweave.errors import BadInput
from taskweave.rehearsal import first_request
from tests.simulated import WORKSHOP


def test_a_response_is_rehearsed_where_the_first_week_has_one_working_day() -> None:
    org = Organization(WORKSHOP.replace("hours: 8}", "hours: 8, holidays: [2026-01-06, 2026-01-07, 2026-01-08, 2026-01-09]}"))
    shown = first_request(org, "respond", prompts=None, seed=1)
    assert "W02" in shown.site


@pytest.mark.parametrize(("folder", "says"), [("nowhere", "no such folder of prompts"), ("bare", "no prompt lies there")])
def test_a_folder_without_prompts_is_refused_as_a_run_refuses_it(tmp_path: Path, folder: str, says: str) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "README.md").write_text("Nothing yet.")
    with pytest.raises(BadInput, match=f"{says}.*taskweave new DIR"):
        first_request(Organization(WORKSHOP), "execute", prompts=tmp_path / folder, seed=1)
