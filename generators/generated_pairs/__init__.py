"""Pairs of a photo and a generated image (BiVLC, section 3.2)."""
