"""A package with one part for each door of twinset, as somebody else would write it."""
