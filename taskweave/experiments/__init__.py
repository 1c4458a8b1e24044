"""Whole runs as units: what would have happened if.

Entry points: `fork.plan` (from which a run parts from its parent, and what is changed), `verify.verify`.
"""
