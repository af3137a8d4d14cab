"""Natural subsets of EqBen: pairs of frames of annotated videos."""
