"""Measures how well the small text-to-image model draws."""
