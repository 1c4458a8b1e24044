"""Whole runs as units: what would have happened if, and what an event changed.

Entry points: `fork.plan` (from which a run parts from its parent, and what is changed), `diff.compare`, `verify.verify`.
"""
