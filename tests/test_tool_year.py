"""A quarter of company_a with tools, killed and resumed: every kind used, all that is left opens, threads hold, nothing is done twice."""

from __future__ import annotations

import email
import email.policy
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import docx
import openpyxl
import pytest

from taskweave.api import Run
from taskweave.shipped import shipped
from tests.simulated import rows
from tests.test_tool_use import files_of

pytestmark = [pytest.mark.fire, pytest.mark.timeout(900)]
KINDS = {"sql", "duckdb", "document", "sheet", "mail", "feed"}  # those that company_a's roles declare, as Table 12 of the paper has them
KILLS = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("quarter")
    text = (shipped("orgs") / "company_a.yaml").read_text(encoding="utf-8")
    (place / "company.yaml").write_text(f"{text}\ntools: on\n", encoding="utf-8")
    return place


def typed(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "taskweave", *map(str, words)]


@pytest.fixture(scope="module")
def whole(place: Path) -> Run:
    subprocess.run(typed("run", place / "company.yaml", "--until", "quarter", "--out", place / "whole"), check=True, capture_output=True)
    return Run.open(place / "whole")


def test_a_quarter_uses_every_tool_kind_and_each_call_is_in_what_its_result_rests_on(whole: Run) -> None:
    calls = rows(whole, "tool_calls")
    assert Counter(call["tool"].partition("_")[0] for call in calls).keys() == KINDS
    assert len({call["tool"] for call in calls}) > 20
    used = {(use["result"], use["used"]) for use in rows(whole, "uses", kind="tool")}
    assert {(call["result"], call["id"]) for call in calls} <= used
    held = {row["id"]: row["agent"] for row in whole.table("results")}
    assert all(call["outcome"]["by"] == held[call["result"]] for call in calls)
    refused = [call for call in calls if not call["outcome"]["ok"]]
    assert len(refused) < 0.1 * len(calls), refused


def test_documents_open_and_mails_parse_without_defects_in_threads_that_hold(whole: Run) -> None:
    folder = whole.path / "artifacts"
    words, sheets = sorted(folder.glob("documents/*.docx")), sorted(folder.glob("documents/*.xlsx"))
    assert words
    assert sheets
    assert all(docx.Document(str(file)).paragraphs for file in words)
    assert all(openpyxl.load_workbook(file).worksheets for file in sheets)
    messages = {}
    for file in (folder / "mail").rglob("*.taskweave*"):
        message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        assert message.defects == []
        assert all(header.defects == () for header in message.values())
        messages[message["Message-ID"]] = message
    answers = [message for message in messages.values() if message["In-Reply-To"]]
    assert answers
    for message in answers:
        assert message["In-Reply-To"] in messages
        assert message["References"].split()[-1] == message["In-Reply-To"]
        assert set(message["References"].split()) <= messages.keys()
    assert sqlite3.connect(folder / "company.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_it_is_the_same_over_kills_and_every_call_is_made_once(whole: Run, place: Path) -> None:
    killed = place / "killed"
    command = typed("run", place / "company.yaml", "--until", "quarter", "--out", killed)
    for number in range(KILLS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline, size = time.monotonic() + 120, -1
        while process.poll() is None and time.monotonic() < deadline:
            journal = killed / "journal.db-wal"
            grown = journal.stat().st_size if journal.exists() else 0
            size = grown if size < 0 else size
            if (killed / "artifacts/company.db").exists() and grown != size:
                time.sleep(0.4 * number)
                break
            time.sleep(0.01)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        command = typed("resume", killed)
    subprocess.run(typed("resume", killed), check=True, capture_output=True)
    again = Run.open(killed)
    assert again.digest() == whole.digest()
    assert files_of(again) == files_of(whole)
    with sqlite3.connect(killed / "artifacts/company.db") as db:
        landed = [key for (key,) in db.execute("SELECT key FROM landed")]
    writes = [call["id"] for call in rows(again, "tool_calls") if call["outcome"]["writes"]]
    assert sorted(landed) == sorted(writes)
