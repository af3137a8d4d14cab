"""Negative captions without a language model: word lists and the parse of a caption."""
