"""What captions say: the vocabulary, its grammar, and which pairs are sampled."""
