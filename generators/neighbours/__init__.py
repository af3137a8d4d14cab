"""The images most similar to each image of a stage: features, and the nearest of them, as tables."""
