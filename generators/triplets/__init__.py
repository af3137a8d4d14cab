"""Triplets of images and conditions (GeneCIS, section 5.2), mined from the relations of captions."""
