"""What leaves the machine is said before it does, and which servers a file names before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_tools import type_in
from tests.outside import Post, mail_server

ACME = (
    "name: Acme\ncalendar: {start: 2026-01-05}\nroles:\n  Head: {leads: Repair}\n  Joiner: {reports_to: Head, tools: [email]}\ntools: on\n"
)


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    file = tmp_path / "acme.yaml"
    file.write_text(ACME, encoding="utf-8")
    return file


def test_run_and_resume_say_what_leaves_and_where_it_goes(acme: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "run")
    with mail_server(Post()) as url:
        done = type_in("run", str(acme), "--until", "week:1", "--out", place, "--smtp", url)
        assert f"Leaves this machine: mail to addresses outside is sent through {url}." in done.stderr
        assert "Leaves this machine" in type_in("resume", place, "--until", "week:2").stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["servers"] == {"smtp": url}
    quiet = type_in("run", str(acme), "--until", "week:1", "--out", str(tmp_path / "quiet"))
    assert "Leaves this machine" not in quiet.stderr


def test_validate_and_show_name_the_servers_of_a_file(acme: Path) -> None:
    acme.write_text(ACME + "mail: {smtp: smtp://mail.example.com, to: example.org}\nfeed: https://social.example.com\n", encoding="utf-8")
    said = type_in("validate", str(acme)).stdout
    assert "Leaves this machine: mail to addresses at example.org is sent through smtp://mail.example.com:25." in said
    assert len(json.loads(type_in("validate", str(acme), "--json").stdout)["reaches"]) == 2
    shown = type_in("show", str(acme)).stdout
    assert "servers that it reaches:\n  mail -> smtp://mail.example.com:25\n  feed -> https://social.example.com:443" in shown
    assert 'smtp: "smtp://mail.example.com:25"  # given' in type_in("show", str(acme), "--resolved").stdout


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--smtp", "smtp://user:hunter2@mail.example.com"), "--smtp: a server's address names no user and no password"),
        (("--mastodon", "http://social.example.com"), "--mastodon: 'http://social.example.com' would send a token"),
        (("--mastodon", "https://social.example.com"), "MASTODON_TOKEN is not set"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_before_anything_is_written(
    acme: Path, tmp_path: Path, option: tuple[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTODON_TOKEN", raising=False)
    done = type_in("run", str(acme), "--out", str(tmp_path / "run"), *option)
    assert done.exit_code == 2
    assert why in " ".join(done.stderr.split())
    assert "hunter2" not in done.stderr
    assert not (tmp_path / "run").exists()
