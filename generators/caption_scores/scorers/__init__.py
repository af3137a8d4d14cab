"""Models that score texts: one module a kind, which holds its settings and its scorer."""
