"""Parts for twinset that the papers of EqBen, BiVLC and GeneCIS do not need."""
