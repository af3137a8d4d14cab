"""Kinds of samples: one module a kind tells what its samples are, how they lie in a tar, and how they are read back."""
