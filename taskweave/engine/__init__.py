"""Durable, deterministic concurrency: promises, the journal, the gateway and the clock.  Knows nothing of organizations."""
