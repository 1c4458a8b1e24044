"""Which merged results of closed weeks fit a text?  Entry points: `Query`, `Index`.

A query uses the 8 rarest of its terms, OR-ed and quoted, so any text is a legal query.  How rare a term is is counted here, with
words folded as the tokenizer of SQLite folds them.  Knows nothing of who asks, or why.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweave.pool.tables import storable
from taskweave.records import Json, canonical

TERMS = 8  # the rarest terms of a query that are used
CANDIDATES = 100  # documents that are ranked for one query, about
TITLE_WEIGHT, CONTENT_WEIGHT = 2.0, 1.0

_WORD = re.compile(r"[^\W_]+")
_TOKENIZE = "tokenize='unicode61 remove_diacritics 2'"

CREATE = f"""
CREATE TABLE merged (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task TEXT NOT NULL, role TEXT COLLATE NOCASE, department TEXT COLLATE NOCASE,
  kind TEXT COLLATE NOCASE, goals TEXT NOT NULL, week INTEGER NOT NULL);
CREATE VIRTUAL TABLE merged_text USING fts5(title, content, {_TOKENIZE});
"""

_FILTERS = {
    "role": "m.role = :role",
    "department": "m.department = :department",
    "kind": "m.kind = :kind",
    "goal": "EXISTS (SELECT 1 FROM json_each(m.goals) WHERE value = :goal)",
    "since_week": "m.week >= :since_week",
    "until_week": "m.week <= :until_week",
    "exclude_task": "m.task <> :exclude_task",
}


@dataclass(frozen=True, slots=True)
class Query:
    """A text, and what narrows it.

    `kind` is the artifact's; weeks are the numbers under which results were written, both inclusive; case matters in goals only.
    What serves `goal_first` comes before all that does not.
    """

    text: str
    role: str | None = None
    department: str | None = None
    kind: str | None = None
    goal: str | None = None
    since_week: int | None = None
    until_week: int | None = None
    exclude_task: str | None = None
    goal_first: str | None = None


class Index:
    """The search index of one run.db, on the connection of its pool."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._texts: dict[int, frozenset[str]] = {}
        self._documents: Counter[str] = Counter()
        # What is to be counted before the next search: a re-execution searches nothing.
        self._uncounted = {
            number: f"{title} {content}" for number, title, content in connection.execute("SELECT rowid, title, content FROM merged_text")
        }

    def _count(self) -> None:
        """Keep in how many documents each term occurs."""
        for number, text in self._uncounted.items():
            self._documents.subtract(self._texts.get(number, ()))
            self._texts[number] = frozenset(map(folded, _WORD.findall(text)))
            self._documents.update(self._texts[number])
        self._uncounted.clear()

    def add(self, week: int, documents: Sequence[Mapping[str, Json]]) -> None:
        """Index merged results: each has id, task, role, department, kind, goals, title, content.

        One already there is replaced in its place.
        """
        for document in documents:
            number = self._db.execute(
                "INSERT INTO merged (id, task, role, department, kind, goals, week)"
                " VALUES (:id, :task, :role, :department, :kind, :goals, :week)"
                " ON CONFLICT (id) DO UPDATE SET task = excluded.task, role = excluded.role, department = excluded.department,"
                " kind = excluded.kind, goals = excluded.goals, week = excluded.week RETURNING n",
                {**document, "goals": canonical(document["goals"]), "week": week},
            ).fetchone()[0]
            self._db.execute("DELETE FROM merged_text WHERE rowid = ?", (number,))
            self._db.execute(
                "INSERT INTO merged_text (rowid, title, content) VALUES (?, ?, ?)", (number, document["title"], document["content"])
            )
            self._uncounted[number] = f"{document['title']} {document['content']}"

    def terms(self, text: str) -> list[str]:
        """The terms of a text that are searched: at most the TERMS rarest that occur at all, rarest first, ties by the term.

        A term of more than half of the documents tells nothing apart (its weight in BM25 is nil), so it is used only where no rarer
        one is there; and what follows once CANDIDATES documents are reached would cost more than it can change.
        """
        return [term for term, _ in self._chosen(text)]

    def _chosen(self, text: str) -> list[tuple[str, str]]:
        """The terms that are searched, each with the word of the text that it stands for: SQLite folds that in its own way."""
        self._count()
        words = _WORD.findall(text)
        written = dict(zip(map(folded, words), words, strict=True))
        found = sorted((count, term) for term in written if (count := self._documents.get(term, 0)))
        telling = [(count, term) for count, term in found if count <= len(self._texts) / 2] or found
        chosen: list[tuple[str, str]] = []
        reached = 0
        for count, term in telling[:TERMS]:
            if chosen and reached + count > CANDIDATES:
                break
            reached += count
            chosen.append((term, written[term]))
        return chosen

    def search(self, query: Query, k: int) -> list[str]:
        """Ids of at most `k` results: those of `goal_first`, then by round(bm25, 9), then by id."""
        terms = [word for _, word in self._chosen(query.text)]
        if not terms or k < 1:
            return []
        given = {name: value for name in _FILTERS if (value := getattr(query, name)) is not None}
        where = "".join(f" AND {_FILTERS[name]}" for name in given)
        # The inner LIMIT bounds what one question may cost; it takes the most recent, as an index of rows is written in the order of weeks.
        found = self._db.execute(
            "SELECT id FROM (SELECT m.id AS id, m.goals AS goals,"
            f" bm25(merged_text, {TITLE_WEIGHT}, {CONTENT_WEIGHT}) AS score"
            f" FROM merged_text CROSS JOIN merged AS m ON m.n = merged_text.rowid WHERE merged_text MATCH :match{where}"
            f" ORDER BY merged_text.rowid DESC LIMIT {CANDIDATES})"
            " ORDER BY EXISTS (SELECT 1 FROM json_each(goals) WHERE value = :goal_first) DESC, round(score, 9), id LIMIT :k",
            {
                **{name: storable(v) if isinstance(v, str) else v for name, v in given.items()},
                "goal_first": query.goal_first,
                "match": _any_of(terms),
                "k": k,
            },
        )
        return [identifier for (identifier,) in found]


def folded(text: str) -> str:
    """A text without case and diacritics."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return text.lower()


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
