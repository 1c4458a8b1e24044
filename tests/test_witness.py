"""Who watches an engine is told what is asked now, in order, and nothing that the journal answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from taskweave.engine.promises import Ask, Context
from taskweave.errors import Transient
from taskweave.records import Completion, Json, Request
from tests.workshop import QUICK, Answers, asks, drive, engine_in, question, work


class Told:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.words: list[tuple[str, str, object]] = []

    def asked(self, ask: Ask) -> None:
        self.words.append(("asked", ask.site, ask.kind))

    def sent(self, ask: Ask) -> None:
        self.words.append(("sent", ask.site, ask.tries))

    def failed(self, ask: Ask, trouble: BaseException) -> None:
        self.words.append(("failed", ask.site, str(trouble)))

    def landed(self, ask: Ask, completion: Completion, latency: float) -> None:
        assert latency >= 0
        self.words.append(("landed", ask.site, completion.completion_tokens))

    def looked_up(self, ask: Ask, answer: Json) -> None:
        self.words.append(("looked_up", ask.site, answer))

    def ended(self, site: str) -> None:
        self.words.append(("ended", site, None))


def busy(request: Request, left: list[int]) -> None:
    if left:
        raise Transient(f"429, {left.pop()} more")


def test_a_witness_is_told_of_each_attempt_and_of_what_came_of_it(tmp_path: Path) -> None:
    left, told = [1], Told()
    engine = engine_in(tmp_path, Answers(trouble=lambda request: busy(request, left)), witness=told, pacing=QUICK)
    engine.launch("a:make", asks())
    drive(engine)
    site = "a:make"
    assert told.words == [
        ("asked", site, "complete"),
        ("sent", site, 1),
        ("failed", site, "429, 1 more"),
        ("sent", site, 2),
        ("landed", site, 7),
        ("ended", site, None),
    ]


def test_a_witness_is_told_of_look_ups_by_their_kind(tmp_path: Path) -> None:
    async def looks(ctx: Context, *_: object) -> None:
        ctx.actor = "ann"
        await ctx.look_up("sql", {"select": 1}, lambda: [1, 2])
        await ctx.complete(question("make", ctx.site))

    told = Told()
    engine = engine_in(tmp_path, witness=told)
    engine.launch("a:make", looks, reads=engine.given(None))
    drive(engine)
    assert told.words[:3] == [("asked", "a:make", "sql"), ("looked_up", "a:make", [1, 2]), ("asked", "a:make", "complete")]


def test_nothing_is_told_of_what_the_journal_answers(tmp_path: Path) -> None:
    first, second = Told(), Told()
    digests = asyncio.run(work(tmp_path, Answers(), witness=first)).digests
    again = asyncio.run(work(tmp_path, Answers(), witness=second))
    assert again.digests == digests == asyncio.run(work(tmp_path, Answers())).digests
    assert {word for word, _, _ in first.words} == {"asked", "sent", "landed", "looked_up", "ended"}
    assert {word for word, _, _ in second.words} == {"ended"}
