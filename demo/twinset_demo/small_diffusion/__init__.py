"""A small text-to-image model of our own: the world that its pictures show, and its parts."""
