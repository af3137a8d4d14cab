"""The people in the loop: the page where they decide, its queue and its database."""
