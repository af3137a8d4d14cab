"""Trains GeneCIS's Combiner on mined triplets: a query of an image and a condition, compared with target images."""
