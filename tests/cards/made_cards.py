"""Cards of made datasets."""

from typing import Any

from tests.made_datasets import MadeDataset
from twinset.cards.describe import card
from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.rebuilding import Rebuilding, packages
from twinset.shards.read import read_settings

NUMBERS = {
    "caption_words": {1: 2}, "group_sizes": {1: 1}, "top_groups_share": 1.0, "lopsided": [], "fewest": 12,
    "frequent": [{"word": "a|b\n<b>", "only0": 1, "only1": 0, "either": 1}], "distinct_captions": 1, "same_bag": 0,
    "distinct_images": 1, "given_away": {}, "sampled": 0, "image_sizes": {}, "changes": {}, "earlier0": None,
}  # fmt: skip
FOLDER_SUBSET = {"source": {"kind": "test-folder", "media": "/data"}}


def described(dataset: MadeDataset, name: str) -> str:
    dataset.describe(name)
    return dataset.text(f"{name}/README.md")


def small_card(dataset: MadeDataset, kept: int = 1, found: Any = (), **record: Any) -> str:
    """A card of pairs. found: as of `card`; record: of its stage, where that is not the dataset's own."""
    recipe, _ = read_settings(dataset.store, "eq-ag")
    stage = dataset.stages["eq-ag"].model_copy(update=record)
    summary = IndexSummary(kept, kept, {}, {"test": kept}, {}, 0)
    again = Rebuilding(packages([stage], recipe), stage.facts["libraries"])
    return card(stage, recipe, summary, {}, again, **{"numbers": NUMBERS, **dict(found)})
