"""A paper's table as a grid of runs: arms and seeds that are trained and scored, and its figures beside the paper's."""
