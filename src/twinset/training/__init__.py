"""Trains the small models that ship with twinset."""
