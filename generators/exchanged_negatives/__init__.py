"""Negative captions whose words change places with those of other captions, so that words alone do not tell them."""
