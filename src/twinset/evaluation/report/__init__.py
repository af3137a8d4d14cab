"""What a run of benchmarks shows: one page, one JSON file, tables and plots, from score files alone."""
