"""Pairs of photographs that one encoder finds alike and another apart (MMVP, NaturalBench)."""
