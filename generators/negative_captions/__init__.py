"""Captions that are wrong of an image in one thing: seven kinds, from rules or as others have written them."""
