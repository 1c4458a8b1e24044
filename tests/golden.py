"""The golden run: a quarter of the tiny organization, scripted, seed 1, as its exported lines.

`python -m tests.golden` rewrites tests/golden/tiny-quarter.txt; the difference is reviewed like code.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from taskweave.api import Run
from taskweave.pool.tables import TABLES, UNDIGESTED
from tests.simulated import simulated

FILE = Path(__file__).parent / "golden" / "tiny-quarter.txt"
PEOPLE = FILE.with_name("people.json")  # sampled once: another release of faker names people otherwise


def lines(run: Run) -> list[str]:
    """One line a row, `table TAB json`, as the digest reads them."""
    with run.pool() as pool:
        return [f"{table}\t{line}" for table in TABLES if table not in UNDIGESTED for line in pool.lines(table)]


def golden(where: Path) -> list[str]:
    return lines(simulated(where / "golden", "tiny", until="quarter", population=PEOPLE))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text("\n".join(golden(Path(folder))) + "\n", encoding="utf-8")
