"""What goes beside the tars of a finished dataset: index, card, Croissant metadata, pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cards.card import card
from cards.condition_statistics import template_statistics, triplet_statistics
from cards.croissant import FileFacts, croissant
from cards.page import write_look
from cards.pair_statistics import statistics
from cards.plots import histograms
from cards.summary import AnyStatistics, IndexSummary
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.recipe import Recipe
from shards.kinds.names import kind_of_source
from shards.read import read_receipts
from shards.records import read_stage
from shards.storage import layout
from shards.storage.store import Store
from stages.index import write_index

_STATISTICS: Mapping[str, Callable[[Store, str], AnyStatistics]] = {
    "pair": statistics,
    "triplet": triplet_statistics,
    "template": template_statistics,
}


def describe(store: Store, subsets: Iterable[str]) -> dict[str, IndexSummary]:
    """Write all descriptions of the subsets anew; the same bytes for the same dataset.

    Of each subset the index, rejections and sizes, ``histograms.png``, ``croissant.json``, ``README.md`` and a contact
    sheet; of all together ``look.html``.
    """
    subsets = list(subsets)
    summaries = {subset: _describe(store, subset) for subset in subsets}
    write_look(store, subsets)
    return summaries


def withdraw(store: Store, subset: str) -> None:
    """Remove the descriptions of a subset that is planned anew: they tell of shards that will not stay."""
    names = ("index.parquet", "rejections.parquet", "sizes.json", "histograms.png", "croissant.json", "mining.json")
    sheets = [name for name in store.names(f"{subset}/{layout.META}") if re.fullmatch(r"look(-\d+)?\.png", name)]
    for path in (f"{subset}/README.md", *(layout.meta(subset, name) for name in (*names, *sheets))):
        store.remove(path)


def _describe(store: Store, subset: str) -> IndexSummary:
    stage = read_stage(store, subset)
    if stage is None:
        raise WrongUse(f"{store.root}: holds no subset {subset!r}; build it first")
    kind = kind_of_source(stage.facts["settings"]["source"]["kind"])
    summary = write_index(store, subset, kind)
    numbers = _STATISTICS[kind.name](store, subset)
    store.write(layout.meta(subset, "histograms.png"), histograms(numbers))
    index = layout.meta(subset, "index.parquet")
    tars = [
        FileFacts(layout.tar(subset, one.split, one.shard).removeprefix(f"{subset}/"), one.tar_sha256, one.tar_size)
        for one in read_receipts(store, subset)
        if one.tar_size
    ]
    metadata = croissant(stage, summary, FileFacts(index.removeprefix(f"{subset}/"), *store.sha256(index)), tars)
    text = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    store.write(layout.meta(subset, "croissant.json"), text.encode("utf-8"))
    files = digest(metadata)  # it holds the digests of stage, index and tars
    text = card(stage, summary, numbers, _places(store, subset), _mining(store, subset), files)
    store.write(f"{subset}/README.md", text.encode("utf-8", "replace"))
    return summary


def _mining(store: Store, subset: str) -> dict[str, Any] | None:
    path = layout.meta(subset, "mining.json")
    try:
        found = json.loads(store.read(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{store.root}/{path}: no JSON ({error}); remove it, and the card will do without") from error
    return found if isinstance(found, dict) else None


def _places(store: Store, subset: str) -> tuple[str, ...]:
    # The stage does not know: where files lie decides no byte.
    recipe = Recipe.model_validate_json(store.read(layout.meta(subset, "recipe.json")))
    return recipe.subsets[subset].source.places
