"""`python -m benchmarks [ROW...] [--quick]` measures what was promised and prints it beside the bars, with the denominators.

Rows: year and gov (scripted years, cold), call (the engine's CPU), wait (wall clock over what latencies allow), repeat (re-execution),
tokens, growth (15, 100 and 1,000 agents).  All take some 15 minutes on an idle machine; --quick measures quarters and fewer agents.
In more detail: python -m benchmarks.tokens, .engine, .growth, .kills, and of a run's texts: python -m benchmarks.texts RUN.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time

from benchmarks.rows import QUICK, ROWS, WHOLE, Scale, measured, missed
from benchmarks.table import Row, render


def main(words: list[str], scale: Scale | None = None) -> int:
    """Print the table; 0 also where a bar was missed, which depends on the machine and on what else it does."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)}; all of them by default")
    parser.add_argument("--quick", action="store_true", help="less of everything; bars are shown only where they hold for that too")
    given = parser.parse_args(words)
    if unknown := [name for name in given.rows if name not in ROWS]:
        parser.error(f"{unknown[0]!r} is no row; there are {', '.join(ROWS)} (of a run's texts: python -m benchmarks.texts {unknown[0]})")
    asked = scale or (QUICK if given.quick else WHOLE)
    began, rows = time.perf_counter(), list[Row]()
    for name in dict.fromkeys(given.rows or ROWS):
        print(f"measuring {name} ...", file=sys.stderr)
        rows += measured(name, asked)
    for line in render(rows):
        print(line)
    with_bar = sum(row.met is not None for row in rows)
    print(
        f"{with_bar - missed(rows)} of {with_bar} bars met, in {time.perf_counter() - began:.0f} s; Python {platform.python_version()}, "
        f"{os.cpu_count()} processors, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
