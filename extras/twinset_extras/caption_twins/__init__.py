"""Twins that are found, not made: pairs of photographs whose captions differ in one word."""
