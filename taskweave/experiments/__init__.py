"""Whole runs as units: what an event changed, and what would have differed anyway."""
