"""Small scenes of two or three things, with captions in two word orders: twins, captions, triplets and galleries."""
