"""Rewrite prompts/prompts.lock and prompts/compact/prompts.lock after a prompt changed:  python -m tests.prompts_lock

It refuses while a prompt whose text changed still has the version that the lock holds: raise `version` in its head first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from taskweave.prompts import PromptBook
from taskweave.shipped import shipped_prompts

LOCK = "prompts.lock"
FOLDERS = (shipped_prompts("full"), shipped_prompts("compact"))
HEAD = "# id, version and digest of each prompt; rewritten by: python -m tests.prompts_lock\n"


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The lock's rows by id; none where there is no lock."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["id"]: row for row in (json.loads(line) for line in lines if not line.startswith("#"))}


def unlocked(book: PromptBook, lock: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong: prompts that changed under the same version, and those that the lock does not hold as they are."""
    wrong = []
    for prompt in book:
        row = lock.get(prompt.id)
        if row is None or (row["digest"] != prompt.digest and prompt.version > row["version"]):
            wrong.append(f"{prompt.id}: not in the lock as it is; run python -m tests.prompts_lock")
        elif row["digest"] != prompt.digest:
            wrong.append(f"{prompt.id}: the text changed and its version is still {prompt.version}; raise it in the head")
    return wrong + [f"{name}: in the lock, but there is no such prompt" for name in lock if name not in {p.id for p in book}]


def text(book: PromptBook) -> str:
    return HEAD + "".join(json.dumps({"id": p.id, "version": p.version, "digest": p.digest}) + "\n" for p in book)


def main() -> int:
    books = {folder / LOCK: PromptBook.load(folder) for folder in FOLDERS}
    stale = [problem for path, book in books.items() for problem in unlocked(book, read(path)) if "raise it" in problem]
    if stale:
        print("\n".join(stale), file=sys.stderr)
        return 2
    for path, book in books.items():
        path.write_text(text(book), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
