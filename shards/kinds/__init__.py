"""Kinds of samples: in memory, as tar fields, read back."""
