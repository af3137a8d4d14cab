"""Benchmarks of minimal pairs as they were released; each is a declaration over `evaluation.benchmarks.records`."""
