"""EQ-Kubric: pairs of rendered scenes that differ in one proved thing (EqBen, section B.4 and Figure 14)."""
