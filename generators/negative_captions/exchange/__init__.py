"""Negative captions whose words are exchanged for others, as often as captions have them there."""
