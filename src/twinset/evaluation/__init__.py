"""Tells whether models see what differs between twins: benchmarks, scorers, metrics, reports; and judges pictures."""
