"""Everything that twinset draws itself."""
