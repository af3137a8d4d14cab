"""Trains the small text-to-image model."""
