"""A run as tables that a person reads."""
