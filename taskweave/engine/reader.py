"""What a journal tells other processes: counts, tokens by prompt, closed weeks, stops, and each call of a site as it was asked.

Entry point: `JournalReader`, also while an engine writes the file.  It never writes and never blocks the engine.
Whether an engine is alive is not in the file: who asks for the run's lock knows that.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from taskweave.engine import accounts
from taskweave.engine.budget import Bound, Usage
from taskweave.engine.store import check_pages, legible, named_trouble, open_for_reading
from taskweave.records import Json, tokens

# Few answers say so: only those are read as JSON.
_CACHED = (
    """CASE WHEN instr(o.value, '"cached_tokens":') AND json_valid(o.value) THEN json_extract(o.value, '$.cached_tokens') ELSE 0 END"""
)
_RUNG = '"rung":"'


@dataclass(frozen=True, kw_only=True, slots=True)
class Injection:
    """Something a person put into the run; `id` is the name of the file it came in, `tick` the working day that took it."""

    id: str
    tick: int
    payload: dict[str, Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """A journal in numbers.

    `outcomes` by kind; `ended` by how (outcome, retry, unknown, refused, fault).  `lost` attempts, whose answer may have been made and is
    not here, have ended so or have no end and are of earlier sessions; `open` ones are those without an end of the last session: in flight
    while an engine holds the run, lost otherwise.  `lost_tokens` and `open_tokens` are their upper bounds.
    """

    outcomes: dict[str, int]
    inherited: int
    attempts: int
    ended: dict[str, int]
    lost: int
    lost_tokens: int
    open: int
    open_tokens: int
    ticks: int
    injections: int
    rejected: int
    weeks: int
    sessions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptUse:
    """What one version of one prompt has taken; `inherited` outcomes were paid by the run that this one is a fork of.

    `cached_tokens` are those of the prompt tokens that the provider said it had cached.
    """

    prompt: str
    version: int
    backbone: str
    calls: int
    inherited: int
    prompt_tokens: int
    completion_tokens: int
    inherited_prompt_tokens: int
    inherited_completion_tokens: int
    cached_tokens: int
    inherited_cached_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """One answered question of a work, in the order in which it was asked.

    `again` is whether it repeats the question before it, with or without what was wrong with its answer.  `sent` are tokens of the
    question's messages and schema by the rule of the house, `prompt_tokens` and `completion_tokens` what was counted for it; `text` is the
    answer, None where it holds none.
    """

    site: str
    prompt: str
    sent: int
    prompt_tokens: int
    completion_tokens: int
    again: bool
    text: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What one answered completion took; `cached` prompt tokens are None where the provider reports none.

    `schema` and `messages` are the numbers of the texts that were sent.
    """

    site: str
    backbone: str
    prompt_tokens: int
    completion_tokens: int
    cached: int | None
    schema: int | None
    messages: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedWeek:
    week: int
    digest: str
    facts: dict[str, Json]
    at: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """How a session ended, and the bound that ended it, if one did; `current` is False where a later session has begun (it runs, or was
    killed).
    """

    why: str
    cause: str
    week: int
    at: str
    current: bool
    bound: Bound | None = None


class Silence(NamedTuple):
    """Attempts have ended and none in an answer: `since` the last one, or the session's beginning; `first` is when the first of them did,
    `said` the provider's words at the last.
    """

    since: str
    first: str
    said: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    name: str
    why: str
    tick: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One sending.  `how` and `ended` are None where no end closes it: in flight, or lost."""

    id: int
    est: int
    at: str
    how: str | None
    why: str
    ended: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One ask of a work: what was asked, each attempt and its end, and the outcome (None: there is none yet).

    A look-up has its question as the only message, no prompt, no sampling and no attempts.
    """

    key: str
    site: str
    ordinal: int
    draw: int
    kind: str
    prompt: str | None
    version: int | None
    backbone: str | None
    seed: int | None
    messages: tuple[tuple[str, str], ...]
    sampling: dict[str, Json] | None
    schema: dict[str, Json] | None
    attempts: tuple[Attempt, ...]
    outcome: Json
    answered: str | None
    inherited: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A completion that was asked for, in the numbers of the journal's texts; `value` is its outcome as JSON, None where there is none."""

    site: str
    prompt: str
    backbone: str
    seed: int
    sampling: Mapping[str, Json] = field(hash=False)
    schema: int | None
    messages: tuple[tuple[str, int], ...]
    value: str | None


class JournalReader:
    """The reading side, for other processes: never writes, never blocks the engine, sees what has been committed."""

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        """`whole` has every page checked first, which reads all of the file.  Raises BadInput for one that cannot be read."""
        self.path = path
        self._db = open_for_reading(path)
        if whole:
            try:
                with named_trouble(path):
                    check_pages(self._db, path)
            except BaseException:
                self._db.close()
                raise
        self._schemas: dict[int, bytes] = {}  # by number: thousands of requests share one

    def counts(self) -> Counts:
        """Everything countable, from one moment."""
        with self._moment():
            first = self._number("SELECT coalesce(max(first_attempt), 0) FROM sessions")
            loose = "FROM attempts WHERE est > 0 AND id NOT IN (SELECT attempt FROM ends) AND id"  # est 0: something outside
            lost = f"{loose} < ?1 OR id IN (SELECT attempt FROM ends WHERE how IN {accounts.MAYBE_BILLED})"
            return Counts(
                outcomes=dict(self._db.execute("SELECT kind, count(*) FROM outcomes GROUP BY kind ORDER BY kind")),
                inherited=self._number("SELECT count(*) FROM outcomes WHERE inherited AND kind = 'complete'"),
                attempts=self._number("SELECT count(*) FROM attempts WHERE est > 0"),
                ended=dict(self._db.execute("SELECT how, count(*) FROM ends GROUP BY how ORDER BY how")),
                lost=self._number(f"SELECT count(*) {lost}", first),
                lost_tokens=self._number(f"SELECT coalesce(sum(est), 0) {lost}", first),
                open=self._number(f"SELECT count(*) {loose} >= ?", first),
                open_tokens=self._number(f"SELECT coalesce(sum(est), 0) {loose} >= ?", first),
                ticks=self._number("SELECT count(*) FROM ticks"),
                injections=self._number("SELECT count(*) FROM injections"),
                rejected=self._number("SELECT count(*) FROM rejected"),
                weeks=self._number("SELECT count(*) FROM weeks"),
                sessions=self._number("SELECT count(*) FROM sessions"),
            )

    def prompts(self) -> list[PromptUse]:
        """Calls and tokens by prompt."""
        rows = self._rows(
            "SELECT r.prompt, r.version, r.backbone, count(*), sum(o.inherited), sum(o.prompt_tokens), sum(o.completion_tokens),"
            " sum(o.prompt_tokens * o.inherited), sum(o.completion_tokens * o.inherited),"
            f" coalesce(sum({_CACHED}), 0), coalesce(sum({_CACHED} * o.inherited), 0)"
            " FROM outcomes o JOIN requests r USING (key) WHERE r.prompt IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        return [PromptUse(**dict(zip(PromptUse.__slots__, row, strict=True))) for row in rows]

    def rungs(self) -> dict[str, int]:
        """Answered calls by the form in which they were asked, of those that say it."""
        form = f"CASE WHEN instr(value, '{_RUNG}') AND json_valid(value) THEN json_extract(value, '$.rung') END"
        return {name: n for name, n in self._rows(f"SELECT {form}, count(*) FROM outcomes GROUP BY 1 ORDER BY 2 DESC, 1") if name}

    def fingerprint(self, backbone: str) -> str | None:
        """What the backbone's last answer says served it; None where it has answered nothing, or says nothing of it."""
        rows = self._rows(
            "SELECT o.value FROM outcomes o JOIN requests r USING (key) WHERE r.backbone = ? ORDER BY o.rowid DESC LIMIT 1", backbone
        )
        with legible(self.path, "answers"):
            found: str | None = _mapping(rows[0][0]).get("fingerprint") if rows else None
        return found

    def spent(self, until: str | None = None) -> list[Spent]:
        """Answered completions in the order in which they were asked; those answered up to `until`, in the form of a week's `at`."""
        rows = self._rows(
            "SELECT r.site, r.backbone, o.prompt_tokens, o.completion_tokens,"
            " CASE json_valid(o.value) WHEN 1 THEN json_extract(o.value, '$.cached_tokens') END, r.schema, r.messages"
            " FROM requests r JOIN outcomes o USING (key) WHERE o.kind = 'complete' AND o.at <= ? ORDER BY r.rowid",
            "9999" if until is None else until,
        )
        with legible(self.path, "completions"):
            return [
                Spent(
                    site=site,
                    backbone=backbone,
                    prompt_tokens=prompt,
                    completion_tokens=completion,
                    cached=cached,
                    schema=schema,
                    messages=tuple(number for _, number in json.loads(messages)),
                )
                for site, backbone, prompt, completion, cached, schema, messages in rows
            ]

    def sent(self, spent: Spent) -> bytes:
        """The text of what was sent, the schema first: what a provider's prompt cache goes by."""
        with legible(self.path, f"request of {spent.site}"):
            if spent.schema is not None and spent.schema not in self._schemas:
                self._schemas[spent.schema] = self._bytes(spent.schema)
            schema = b"" if spent.schema is None else self._schemas[spent.schema]
            return schema + b"".join(map(self._bytes, spent.messages))

    def taken(self) -> Iterator[Taken]:
        """Every answered question, by site."""
        sizes: dict[int, int] = {}

        def size(number: int) -> int:
            if number not in sizes:
                sizes[number] = tokens(self._text(number))
            return sizes[number]

        rows = self._rows(
            "SELECT r.site, r.prompt, r.messages, r.schema, o.prompt_tokens, o.completion_tokens, o.value FROM requests r"
            " JOIN outcomes o USING (key) WHERE r.prompt IS NOT NULL ORDER BY r.site, r.ordinal, r.draw, r.rowid"
        )
        asked: tuple[str, str, list[Json]] = ("", "", [])  # the question that a repetition would repeat
        sent = 0
        with legible(self.path, "answers"):
            for site, prompt, messages, schema, prompt_tokens, completion_tokens, value in rows:
                said = json.loads(messages)
                again = asked[:2] == (site, prompt) and said[: len(asked[2])] == asked[2]
                if not again:
                    asked, sent = (site, prompt, said), sum(size(number) for _, number in said) + (0 if schema is None else size(schema))
                yield Taken(
                    site=site,
                    prompt=prompt,
                    sent=sent,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=completion_tokens,
                    again=again,
                    text=_mapping(value).get("text"),
                )

    def last_tick(self) -> int | None:
        """The latest committed tick, None before the first."""
        tick: int | None = self._rows("SELECT max(tick) FROM ticks")[0][0]
        return tick

    def inputs(self) -> dict[str, str]:
        """Digests of what the run works from, by name; empty before its first start."""
        return dict(self._rows("SELECT name, digest FROM inputs ORDER BY rowid"))

    def weeks(self) -> list[ClosedWeek]:
        rows = self._rows("SELECT week, digest, facts, at FROM weeks ORDER BY week")
        with legible(self.path, "closed weeks"):
            return [ClosedWeek(week=week, digest=digest, facts=_mapping(facts), at=at) for week, digest, facts, at in rows]

    def session_began(self) -> str | None:
        """When the last session began, in the form of a closed week's `at`; None before the first."""
        began: str | None = self._rows("SELECT max(at) FROM sessions")[0][0]
        return began

    def stops(self) -> list[Stop]:
        """How the sessions ended, oldest first; a session that was killed has none."""
        query = "SELECT why, cause, week, at, session = (SELECT max(seq) FROM sessions), bound FROM stops ORDER BY seq"
        with legible(self.path, "stops"):
            return [
                Stop(why=why, cause=cause, week=week, at=at, current=bool(current), bound=bound and Bound(**_mapping(bound)))
                for why, cause, week, at, current, bound in self._rows(query)
            ]

    def silence(self) -> Silence | None:
        """What goes wrong now, where attempts of the last session have ended since its last answer; None where none has."""
        rows = self._rows(
            "WITH last(at) AS (SELECT max(at) FROM (SELECT max(at) AS at FROM ends WHERE how = 'outcome'"
            " UNION ALL SELECT max(at) FROM sessions))"
            " SELECT last.at, min(e.at) OVER (), e.why FROM ends e, last WHERE e.at > last.at AND e.how IN ('retry', 'unknown')"
            " ORDER BY e.at DESC, e.attempt DESC LIMIT 1"
        )
        return Silence(*rows[0]) if rows else None

    def usage(self) -> list[Usage]:
        """Tokens that the run's own calls took, by backbone; what may have been billed counts at the most."""
        with self._moment(), legible(self.path, "what was used"):
            return accounts.usage(self._db)

    def driven(self) -> tuple[float, float]:
        """Seconds that engines drove the run, and those that its slowest answer took."""
        with self._moment(), legible(self.path, "sessions"):
            return accounts.driven(self._db), accounts.slowest(self._db)

    def injections(self) -> list[Injection]:
        rows = self._rows("SELECT id, tick, payload FROM injections ORDER BY tick, id")
        with legible(self.path, "injections"):
            return [Injection(id=name, tick=tick, payload=_mapping(payload)) for name, tick, payload in rows]

    def rejected(self) -> list[Rejected]:
        return [
            Rejected(name=name, why=why, tick=tick) for name, why, tick in self._rows("SELECT name, why, tick FROM rejected ORDER BY seq")
        ]

    def sites(self) -> list[str]:
        """Every site that has asked something, sorted: for naming the nearest to one that is not there."""
        return [site for (site,) in self._rows("SELECT DISTINCT site FROM requests ORDER BY site")]

    def calls(self, site: str) -> list[Call]:
        """All that the work at a site asked, in order; empty where it asked nothing."""
        rows = self._rows(
            "SELECT r.key, r.site, r.ordinal, r.draw, r.kind, r.prompt, r.version, r.backbone, r.seed, r.messages, r.sampling, r.schema,"
            " o.value, o.at, o.inherited FROM requests r LEFT JOIN outcomes o USING (key)"
            " WHERE r.site = ? ORDER BY r.ordinal, r.draw, r.rowid",
            site,
        )
        with legible(self.path, f"calls of {site}"):
            return [
                Call(
                    key=key,
                    site=site,
                    ordinal=ordinal,
                    draw=draw,
                    kind=kind,
                    prompt=prompt,
                    version=version,
                    backbone=backbone,
                    seed=seed,
                    messages=tuple((role, self._text(number)) for role, number in json.loads(messages)),
                    sampling=None if sampling is None else json.loads(sampling),
                    schema=None if schema is None else json.loads(self._text(schema)),
                    attempts=self._attempts(key),
                    outcome=None if value is None else json.loads(value),
                    answered=at,
                    inherited=bool(inherited),
                )
                for key, _, ordinal, draw, kind, prompt, version, backbone, seed, messages, sampling, schema, value, at, inherited in rows
            ]

    def recorded(self) -> Iterator[Recorded]:
        """All completions that were asked for, in the order of asking."""
        rows = self._rows(
            "SELECT r.site, r.prompt, r.backbone, r.seed, r.sampling, r.schema, r.messages, o.value"
            " FROM requests r LEFT JOIN outcomes o USING (key) WHERE r.prompt IS NOT NULL ORDER BY r.rowid"
        )
        with legible(self.path, "requests"):
            for site, prompt, backbone, seed, sampling, schema, messages, value in rows:
                yield Recorded(
                    site=site,
                    prompt=prompt,
                    backbone=backbone,
                    seed=seed,
                    sampling=json.loads(sampling),
                    schema=schema,
                    messages=tuple((role, number) for role, number in json.loads(messages)),
                    value=value,
                )

    def texts(self) -> Iterator[tuple[int, str]]:
        """Every text and its number."""
        with legible(self.path, "texts"):
            for number, body in self._rows("SELECT id, body FROM texts ORDER BY id"):
                yield number, zlib.decompress(body).decode()

    def text(self, number: int) -> str:
        """The text of that number."""
        return self._text(number)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, trouble: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- inside
    def _attempts(self, key: str) -> tuple[Attempt, ...]:
        rows = self._rows(
            "SELECT a.id, a.est, a.at, e.how, coalesce(e.why, ''), e.at FROM attempts a LEFT JOIN ends e ON e.attempt = a.id"
            " WHERE a.key = ? ORDER BY a.id",
            key,
        )
        return tuple(Attempt(id=id, est=est, at=at, how=how, why=why, ended=ended) for id, est, at, how, why, ended in rows)

    def _text(self, number: int) -> str:
        return self._bytes(number).decode()

    def _bytes(self, number: int) -> bytes:
        rows = self._rows("SELECT body FROM texts WHERE id = ?", number)
        return zlib.decompress(rows[0][0])

    def _rows(self, query: str, *values: str | int) -> list[tuple[Json, ...]]:
        with named_trouble(self.path):
            return self._db.execute(query, values).fetchall()

    def _number(self, query: str, *values: str | int) -> int:
        return int(self._db.execute(query, values).fetchone()[0])

    @contextlib.contextmanager
    def _moment(self) -> Iterator[None]:
        """One read transaction: counts that belong together."""
        with named_trouble(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")


def _mapping(text: str) -> dict[str, Json]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where a mapping was written")
    return value
