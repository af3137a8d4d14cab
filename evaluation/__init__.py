"""Judges pictures and galleries by measuring."""
