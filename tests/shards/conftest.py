"""Datasets for tests of what reads and exports them."""

from tests.made_datasets import built, made, made_pairs, made_templates, made_triplets
from tests.made_sources import test_sources

__all__ = ["built", "made", "made_pairs", "made_templates", "made_triplets", "test_sources"]
