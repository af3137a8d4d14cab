"""A finished dataset for everybody: what is published of it, where, and what is checked before."""
