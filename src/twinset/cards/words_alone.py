"""What the card says of words alone: how well a linear model tells one caption of a pair without the images."""

from importlib.util import find_spec

from twinset.generators.blind_attacks import kinds_of
from twinset.generators.words_alone.probe import Probed, Sampled
from twinset.shards.read import index_batches, index_columns
from twinset.shards.storage.store import Store

ABSENT = "not measured, since scikit-learn was not installed when this card was made"
_KINDS = ("type", "subtype")


def told_by_words(store: Store, subset: str) -> dict[str, Probed] | None:
    """By kind of pair, empty where the index has no pairs of captions; None without scikit-learn.

    Captions are read as a stream.
    """
    columns = set(index_columns(store, subset))
    sides = next(
        (two for two in (("caption", "negative_caption"), ("caption0", "caption1")) if columns.issuperset(two)), ()
    )
    if not sides:
        return {}
    if find_spec("sklearn") is None:
        return None
    kinds = _KINDS if columns.issuperset(_KINDS) else ()
    sampled = Sampled()
    for batch in index_batches(store, subset, (*sides, *kinds)):
        sampled.add(batch[sides[0]], batch[sides[1]], kinds_of(batch["type"], batch["subtype"]) if kinds else None)
    return sampled.probed()
