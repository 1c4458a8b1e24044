"""A run as data sets."""
