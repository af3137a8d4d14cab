"""Models as scorers: how alike an image and a text are, or what an image and a text together ask for."""
