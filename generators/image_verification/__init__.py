"""Yes/no questions that a generated image must pass before people look at it (Cho et al. 2023; BiVLC, section 3.2)."""
