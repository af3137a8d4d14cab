"""Fine-tunes fusion encoders, whose matching head reads an image and a text together, on mined negatives (EqBen C)."""
