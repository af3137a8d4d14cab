"""Pairs of a photo and a generated image: who chooses the image, and what `datasets` reads of an export."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from pydantic import ValidationError

from tests.made_datasets import MadeDataset
from tests.made_samples import VIDEO_SUBSET, pair_shards
from twinset.contracts.kinds.pair import Pair
from twinset.generators.generated_pairs.joining import best_images
from twinset.generators.generated_pairs.source import GeneratedPairs
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples


@pytest.mark.parametrize(("format", "first"), [("bivlc", "image"), ("trohn-img", "image_id")])
def test_datasets_reads_an_export(
    made: MadeDataset, test_sources: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, first: str
) -> None:
    about = {"image_id": "7", "type": "replace", "subtype": "obj"}
    plan = [
        replace(one, made=replace(one.made, provenance=about))
        for shard in pair_shards("pairs")
        for one in shard
        if isinstance(one.made, Pair)
    ]
    made.add("pairs", VIDEO_SUBSET, [plan], dataset="generated-pairs")
    samples = list(read_samples(made.store, "pairs"))
    assert export(made.store, ["pairs"], format, tmp_path / "to") == len(samples) > 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    (rows,) = datasets.load_dataset(str(tmp_path / "to"), cache_dir=str(tmp_path / "cache")).values()
    assert rows.column_names[0] == first
    assert rows["negative_caption"] == [sample.texts["caption1"] for sample in samples]
    shown = np.asarray(rows[0]["negative_image"].convert("RGB"))
    assert np.array_equal(shown, np.asarray(Image.open(io.BytesIO(samples[0].images["image1"])).convert("RGB")))


def test_people_who_choose_need_a_stage_of_decisions() -> None:
    with pytest.raises(ValidationError, match="read from a stage of decisions; name it with decisions"):
        GeneratedPairs(kind="generated-pairs", negatives="prompts", images="images", choice="people")


Score = float | None


def best(captions: list[int], scores: list[Score], originals: list[Score]) -> tuple[dict[int, int], list[bool]]:
    """The place of the best image of each caption, and whether each fits the original one too."""
    numbers = {"score": scores, "original": originals}
    images = pl.DataFrame({"row": captions, **numbers}, schema_overrides=dict.fromkeys(numbers, pl.Float64))
    chosen = best_images(images.with_columns(verified=True).with_row_index("place")).sort("row")
    return dict(chosen.select("row", "place").rows()), chosen["ambiguous"].to_list()


def test_the_best_of_k_and_of_equal_ones_the_first() -> None:
    scores: list[Score] = [0.5, 0.2, 0.9, 0.8, 0.9, 0.0, None, 0.0, None]
    assert best([1, 0, 1, 0, 1, 3, 4, 4, 5], scores, [None] * 9)[0] == {0: 3, 1: 2, 3: 5, 4: 7, 5: 8}
    assert best([], [], []) == ({}, [])


def test_an_image_that_fits_the_original_caption_as_well_is_ambiguous() -> None:
    chosen = best([*range(6)], [1.0, 1.0, 0.5, 0.8, 0.7, None], [1.0, 0.9, 0.5, 0.2, None, 1.0])
    assert chosen[1] == [True, False, True, False, False, True]
    assert best([0, 0, 1, 1], [1.0, 0.9, 0.6, 0.7], [1.0, 0.0, 0.0, 0.1]) == ({0: 0, 1: 3}, [True, False])
