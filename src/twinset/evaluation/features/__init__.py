"""Features of images and texts, encoded once and kept on disk, and the tables of scores that they give."""
