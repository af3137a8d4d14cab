"""Writes docs/reference from the settings, registries and docstrings of the code: ``make reference``."""
