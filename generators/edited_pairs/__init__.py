"""EQ-SD: pairs of captions that differ in one thing, drawn from one noise by prompt-to-prompt (EqBen, section B.5)."""
