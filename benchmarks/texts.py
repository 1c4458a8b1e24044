"""How varied are a run's texts?  `python -m benchmarks.texts RUN [--pairs 2000] [--seed 1]`; RUN is a run folder or its run.db."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from taskweave.errors import BadInput
from taskweave.evaluation.text import Built, Share, distinct_titles, naming_sources, nearest_neighbours, pair_overlap
from taskweave.pool.pool import Pool


def report(pool: Pool, pairs: int, seed: int) -> list[tuple[str, str]]:
    """(what, its value with its denominator)."""
    names = {row["id"]: row["name"] for row in pool.rows("agents")}
    results = {row["id"]: row for row in pool.rows("results")}
    titles = [row["title"] for row in pool.rows("tasks") if row["kind"] == "composite"]
    texts = [(row["task"], row["content"]) for row in results.values()]
    overlap = pair_overlap(texts, pairs=pairs, seed=seed)
    nearest = nearest_neighbours(texts)
    sources: dict[str, dict[str, tuple[str, str]]] = {}
    for use in pool.rows("uses", kind="result"):
        user, used = results.get(use["result"]), results.get(use["used"])
        if user and used and user["task"] != used["task"]:
            sources.setdefault(user["task"], {})[used["id"]] = (used["title"], names.get(used["agent"], ""))
    merged = [row for row in results.values() if row["subtask"] is None]
    own: dict[str, set[str]] = {}
    for row in results.values():
        own.setdefault(row["task"], set()).add(names.get(row["agent"], ""))
    naming = naming_sources(
        [Built(row["content"], tuple(sources.get(row["id"], {}).values()), frozenset(own[row["task"]])) for row in merged]
    )
    return [
        ("composite titles distinct, stripped of digits, dates, names", _share(distinct_titles(titles, names.values()))),
        (
            f"4-grams shared by two deliverables of different tasks (seed {seed})",
            f"{_percent(overlap.mean)} on average of {overlap.pairs:,} pairs",
        ),
        ("nearest neighbour, 95th percentile: own 4-grams found in it", f"{_percent(nearest.contained)} over {nearest.texts:,} texts"),
        ("nearest neighbour, 95th percentile: Jaccard of 4-grams", f"{_percent(nearest.jaccard)} over {nearest.texts:,} texts"),
        ("merged texts naming what they use by title or author", _share(naming)),
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _share(share: Share) -> str:
    return f"{_percent(share.value)} ({share.hits:,} of {share.of:,})"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--pairs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    path = given.run / "run.db" if given.run.is_dir() else given.run
    started = time.perf_counter()
    try:
        with Pool.open(path) as pool:
            lines = report(pool, given.pairs, given.seed)
    except BadInput as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for what, value in lines:
        print(f"{what:<66} {value}")
    print(f"measured in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
