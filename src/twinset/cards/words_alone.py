"""What the card says of words alone: how well a linear model tells one caption of a pair without the images."""

from importlib.util import find_spec

import numpy as np
import polars as pl

from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.words_alone.guesses import kind_of_row
from twinset.generators.words_alone.probe import MOST, Probed, probed
from twinset.shards.read import index_batches, index_columns
from twinset.shards.storage.store import Store

ABSENT = "not measured, since scikit-learn was not installed when this card was made"
ANY = "all pairs"  # where pairs have no kind
_KINDS = ("type", "subtype")


def index_frame(store: Store, subset: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """Columns of a subset's index."""
    batches = [pl.DataFrame(batch) for batch in index_batches(store, subset, columns)]
    return pl.concat(batches or [pl.DataFrame(schema=columns)]).cast({pl.Null: pl.String})  # an empty one has no types


def told_by_words(store: Store, subset: str) -> dict[str, Probed] | None:
    """By kind of pair, empty where the index has no pairs of captions; None without scikit-learn."""
    columns = set(index_columns(store, subset))
    sides = next(
        (two for two in (("caption", "negative_caption"), ("caption0", "caption1")) if columns.issuperset(two)), ()
    )
    if not sides:
        return {}
    if find_spec("sklearn") is None:
        return None
    kinds = _KINDS if columns.issuperset(_KINDS) else ()
    rows = index_frame(store, subset, (*sides, *kinds))
    ranks = pl.Series("rank", np.random.default_rng(0).random(rows.height))
    rows = rows.select(*sides, kind_of_row().alias("kind") if kinds else pl.lit(ANY).alias("kind"), ranks)
    asked = rows.sort("rank").group_by("kind", maintain_order=True).head(MOST)
    parts = {kind: part for (kind,), part in asked.partition_by("kind", as_dict=True).items()}
    ordered = sorted(parts, key=lambda kind: ([*KINDS, kind].index(kind), kind))  # as the papers' tables
    first, second = sides
    return {kind: probed(parts[kind][first].to_list(), parts[kind][second].to_list(), seed=0) for kind in ordered}
