"""Large galleries: images that a query of an image with a text asks for, and names of classes."""
