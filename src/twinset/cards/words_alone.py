"""What the card says of words alone: how well a linear model tells one caption of a pair without the images."""

from importlib.util import find_spec

import numpy as np
import polars as pl

from twinset.cards.kinds.statistics import index_frame
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.words_alone.guesses import kind_of_row
from twinset.generators.words_alone.probe import MOST, Probed, probed
from twinset.shards.read import index_columns
from twinset.shards.storage.store import Store

ABSENT = "not measured, since scikit-learn was not installed when this card was made"
ANY = "all pairs"  # where pairs have no kind
_SIDES = (("caption", "negative_caption"), ("caption0", "caption1"))
_KINDS = ("type", "subtype")


def told_by_words(store: Store, subset: str) -> dict[str, Probed] | None:
    """By kind of pair, empty where the index has no pairs of captions; None without scikit-learn."""
    columns = set(index_columns(store, subset))
    sides = next((two for two in _SIDES if columns.issuperset(two)), None)
    if sides is None:
        return {}
    if find_spec("sklearn") is None:
        return None
    rows = index_frame(store, subset, [name for name in (*sides, *_KINDS) if name in columns])
    rows = rows.with_columns(kind=kind_of_row() if columns.issuperset(_KINDS) else pl.lit(ANY))
    parts = {kind: part for (kind,), part in rows.partition_by("kind", as_dict=True).items()}
    by_kind = {}
    for kind in sorted(parts, key=lambda name: ([*KINDS, name].index(name), name)):  # as the papers' tables
        sampled = parts[kind][np.random.default_rng(0).permutation(parts[kind].height)[:MOST]]
        by_kind[kind] = probed(sampled[sides[0]].to_list(), sampled[sides[1]].to_list(), seed=0)
    return by_kind
