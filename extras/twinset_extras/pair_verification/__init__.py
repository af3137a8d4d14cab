"""Yes/no questions that both images of a pair must answer by their captions (VisMin, section 3)."""
