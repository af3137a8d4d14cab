"""Pairs of a photo and an edit of it in one place (VisMin, section 3)."""
