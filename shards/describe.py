"""What goes beside the tars of a finished dataset: index, card, Croissant metadata, pictures."""

from __future__ import annotations

from collections.abc import Iterable

from shards.index import write_index
from shards.store import Store


def describe(store: Store, subsets: Iterable[str]) -> None:
    """Write all descriptions of the subsets anew; the same bytes for the same dataset."""
    for subset in subsets:
        write_index(store, subset)
