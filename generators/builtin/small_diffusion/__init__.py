"""A small text-to-image model of our own: the world it draws, how it was trained, and how well it draws."""
