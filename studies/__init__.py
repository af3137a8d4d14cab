"""What was learned with twinset: run from a checkout, not installed."""
