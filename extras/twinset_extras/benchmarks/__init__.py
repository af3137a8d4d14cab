"""Benchmarks that the papers of EqBen, BiVLC and GeneCIS do not report."""
