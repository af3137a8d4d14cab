"""Captions of images as other people's files and folders hold them: one reader a form."""
