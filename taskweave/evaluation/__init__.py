"""Measures over a run.  Readers: they look at run.db and never write into it."""
