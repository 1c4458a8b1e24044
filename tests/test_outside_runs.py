"""Where a server is named, what agents mail to addresses outside and post leaves at the week's close, each at most once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import Envelope

from taskweave.api import Run
from taskweave.errors import BadInput
from tests.outside import Mastodon, Post, mail_server
from tests.simulated import events, rows, simulated
from tests.test_tool_use import SHOP, choosing, files_of, using

TO = ["ada@example.com", "Head"]
MAILING = {"decompose": using, "execute_tool": choosing("mail_send", to=TO, subject="Chairs", text="Forty are done.")}
TOKEN = "a-token-of-ours-9f8e7d"
FEED = SHOP.replace("[sqlite, wiki, email]", "[mastodon]")


def outside_events(run: Run) -> list[dict[str, Any]]:
    return [event for event in run.table("events") if event["kind"] in ("sent", "refused", "unknown")]


def message_ids(post: Post) -> list[str]:
    return [str(message_from_bytes(bytes(envelope.content or b""), policy=default)["Message-ID"]) for envelope in post.received]


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_nothing_leaves_the_machine_unless_a_server_is_named(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", SHOP, until="week:2", stubs=MAILING)
    assert any("outbox" in name for name in files_of(run))
    assert outside_events(run) == []


def test_what_is_addressed_outside_is_sent_at_the_weeks_close_and_recorded(tmp_path: Path) -> None:
    post = Post()
    with mail_server(post) as url:
        run = simulated(tmp_path / "run", SHOP, until="week:2", stubs=MAILING, servers={"smtp": url})
        calls = [call["id"] for call in rows(run, "tool_calls")]
        sent = events(run, "sent")
        assert len(calls) > 3
        assert [event["subject"] for event in sent] == calls
        assert [event["object"] for event in sent] == [f"mail {name}: ada@example.com" for name in message_ids(post)]
        assert {event["actor"] for event in sent} <= {"joiner-1", "joiner-2"}
        assert len(set(message_ids(post))) == len(post.received) == len(calls)
        outbox = {data for name, data in files_of(run).items() if name.startswith("mail/outbox/")}
        kept = [str(message_from_bytes(data, policy=default)["Message-ID"]).partition("@")[0] for data in outbox]
        assert sorted(kept) == sorted(name.partition(".")[0] for name in message_ids(post))
        assert {tuple(envelope.rcpt_tos) for envelope in post.received} == {("ada@example.com",)}


def test_a_run_that_is_resumed_rebuilt_verified_or_forked_sends_nothing_twice(tmp_path: Path) -> None:
    post = Post()
    with mail_server(post) as url:
        whole = simulated(tmp_path / "whole", SHOP, until="week:3", stubs=MAILING, servers={"smtp": url})
        ids = message_ids(post)
        post.received.clear()
        assert whole.verify().ok
        fork = whole.fork(at="week:2", out=tmp_path / "fork", backbone=whole_backbone())
        assert fork.digest() == whole.digest()
        (whole.path / "run.db").unlink()
        assert whole.resume(until="week:3", backbone=whole_backbone()).digest() == whole.digest()
        assert post.received == []
        parts = simulated(tmp_path / "parts", SHOP, until="week:1", stubs=MAILING, servers={"smtp": url}, limit=1)
        parts = parts.resume(until="week:3", backbone=whole_backbone())
        assert message_ids(post) == ids
        assert parts.digest() == whole.digest()


def whole_backbone() -> Any:
    from taskweave.backbones.scripted import Scripted

    return Scripted(MAILING)


def test_a_fork_sends_only_what_is_different_in_it(tmp_path: Path) -> None:
    post = Post()
    news = {"title": "A flood", "at": "week:2", "effects": [{"absence": {"role": "Joiner", "count": 1, "for": "1 week"}}]}
    file = tmp_path / "flood.yaml"
    file.write_text(str(news), encoding="utf-8")
    with mail_server(post) as url:
        run = simulated(tmp_path / "run", SHOP, until="week:3", stubs=MAILING, servers={"smtp": url})
        before = message_ids(post)
        fork = run.fork(at="week:2", out=tmp_path / "fork", incidents=[file], backbone=whole_backbone())
        own = [event["object"].split()[1].rstrip(":") for event in events(fork, "sent")]
        assert len(set(message_ids(post))) == len(post.received), "nothing is at the server twice"
        assert 3 < len(set(own) & set(before)) < len(own), "what was sent before the fork's week, and what the incident did not change"
        assert message_ids(post) == [*before, *(name for name in own if name not in before)]


KILLED = """
import sys
from tests.test_outside_runs import MAILING, SHOP, simulated
simulated(__import__("pathlib").Path(sys.argv[1]), SHOP, until="week:2", stubs=MAILING, servers={"smtp": sys.argv[2]})
"""


@contextlib.contextmanager
def killing(pid: list[int]) -> Iterator[tuple[str, Post]]:
    """A mail server that has taken the second message when it kills the process `pid[0]`, and then says so to nobody."""

    def kill(envelope: Envelope) -> None:
        if len(post.received) == 2 and pid:
            os.kill(pid.pop(), signal.SIGKILL)
            time.sleep(0.2)

    post = Post(then=kill)
    with mail_server(post) as url:
        yield url, post


def test_a_mail_that_was_taken_when_the_process_was_killed_is_unknown_and_never_sent_again(tmp_path: Path) -> None:
    place, pid = tmp_path / "run", []
    with killing(pid) as (url, post):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(place), url], stderr=subprocess.PIPE)
        pid.append(process.pid)
        _, said = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, said
        killed = message_ids(post)
        assert len(killed) == 2
        run = Run.open(place).resume(backbone=whole_backbone())
        ids = message_ids(post)
        assert len(ids) == len(set(ids)), "no message is at the server twice"
        unknown = events(run, "unknown")
        assert [event["object"] for event in unknown] == [
            f"mail {killed[1]}: the process ended before it was known whether this had happened"
        ]
        calls = [call["id"] for call in rows(run, "tool_calls")]
        assert sorted(event["subject"] for event in outside_events(run)) == sorted(calls)
        assert len(ids) == len(calls)
        digest = run.digest()
        assert run.verify().ok
        (run.path / "run.db").unlink()
        assert Run.open(place).resume(backbone=whole_backbone()).digest() == digest
        assert message_ids(post) == ids


def test_what_the_server_refuses_is_recorded_and_ends_nothing(tmp_path: Path) -> None:
    with mail_server(Post({"ada@example.com": "550 no such user"})) as url:
        run = simulated(tmp_path / "run", SHOP, until="week:2", stubs=MAILING, servers={"smtp": url})
    refused = events(run, "refused")
    assert len(refused) == len(rows(run, "tool_calls")) > 3
    assert all(event["object"].endswith(": ada@example.com: 550 no such user") for event in refused)
    assert run.verify().ok


def test_a_server_that_is_not_there_is_left_alone_after_three_mails_of_a_week(tmp_path: Path) -> None:
    with mail_server(Post()) as url:
        pass
    run = simulated(tmp_path / "run", SHOP, until="week:2", stubs=MAILING, servers={"smtp": url})
    for week in (1, 2):
        said = [event["object"] for event in events(run, "refused") if (event["time"] < "2026-01-10") == (week == 1)]
        assert len([what for what in said if "no connection" in what]) == 3
        assert all("not tried: the server gave no answer 3 times in a row this week" in what for what in said[3:])
        assert len(said) > 3


def test_posts_are_published_with_the_ids_that_the_server_gave_and_secrets_stay_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def posting(request: Any) -> Any:
        posts = [line.split()[1] for line in request.inputs["at_hand"] if line.startswith("post ")]
        return choosing("feed_post", text="Forty chairs", in_reply_to=posts[0] if posts else "")(request)

    monkeypatch.setenv("MASTODON_TOKEN", TOKEN)
    with Mastodon(token=TOKEN, faults=(429, 401)) as server:
        run = simulated(
            tmp_path / "run", FEED, until="week:3", stubs={"decompose": using, "execute_tool": posting}, servers={"mastodon": server.url}
        )
        assert [event["object"].partition(": ")[2] for event in events(run, "refused")] == [
            "429 Too many requests (takes more after 300)",
            "401 trouble 401",
        ]
        assert len(events(run, "sent")) == len(server.statuses) > 3
        ids = {status["id"] for status in server.statuses.values()}
        replies = [status["in_reply_to_id"] for status in server.statuses.values() if status["in_reply_to_id"]]
        assert replies
        assert set(replies) <= ids, "a reply names the post as the server knows it"
        requests = len(server.headers)
        monkeypatch.delenv("MASTODON_TOKEN")
        assert run.verify().ok
        assert len(server.headers) == requests
    assert len({headers["idempotency-key"] for headers in server.headers}) == requests
    run.export(tmp_path / "export")
    for folder in (run.path, tmp_path / "export"):
        assert TOKEN.encode() not in everything_in(folder)


def test_passwords_stand_in_no_file_of_a_run_also_where_the_server_repeats_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_USER", "acme-user-name")
    monkeypatch.setenv("SMTP_PASSWORD", TOKEN)
    with mail_server(Post({"ada@example.com": f"550 {TOKEN} is no password of acme-user-name"})) as url:
        run = simulated(tmp_path / "run", SHOP, until="week:1", stubs=MAILING, servers={"smtp": url})
    assert events(run, "refused")
    assert TOKEN.encode() not in everything_in(run.path)
    assert b"acme-user-name" not in everything_in(run.path)


def test_a_token_that_is_missing_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTODON_TOKEN", raising=False)
    with pytest.raises(BadInput, match="MASTODON_TOKEN is not set"):
        simulated(tmp_path / "run", FEED, until="week:1", servers={"mastodon": "http://127.0.0.1:3000"})
    assert not (tmp_path / "run").exists()


def test_a_server_that_takes_its_time_changes_nothing_of_the_trace(tmp_path: Path) -> None:
    with mail_server(Post()) as quick, mail_server(Post(then=lambda envelope: time.sleep(0.05))) as slow:
        runs = [
            simulated(tmp_path / f"run{n}", SHOP, until="week:2", stubs=MAILING, servers={"smtp": url})
            for n, url in enumerate((quick, slow))
        ]
    assert runs[0].digest() == runs[1].digest()
    assert hashlib.sha256(str(files_of(runs[0])).encode()).digest() == hashlib.sha256(str(files_of(runs[1])).encode()).digest()
