"""`python -m taskweave` is `taskweave`."""

from __future__ import annotations

from taskweave.cli import main

main()
