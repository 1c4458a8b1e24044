"""Rewrite taskweave/pool/tables.json after a table changed in pool/declared.py:  python -m tests.tables_lock"""

from __future__ import annotations

import json

from taskweave.pool.declared import told


def text() -> str:
    """A line for each thing that is told of a table, so that a change can be read."""
    tables = []
    for name, table in told().items():
        lines = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())
        tables.append(f"{json.dumps(name)}: {{\n  {lines}\n}}")
    return "{\n" + ",\n".join(tables) + "\n}\n"


if __name__ == "__main__":
    from taskweave.pool.tables import TOLD

    TOLD.write_text(text(), encoding="utf-8")
