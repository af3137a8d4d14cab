"""Pairs that people kept, copied from the stage that made them (EqBen, sections B.2 and B.5)."""
