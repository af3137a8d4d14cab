"""Figures of a model from its table of scores: what it answers right, how sure that is, what ties hide."""
