"""The recipe `triplet-clip` builds on the small model."""

from pathlib import Path

import pytest

import twinset

NEGATIVES = '{kind: replayed-negatives, captions: "miniature:small_world/negatives.csv", licence: CC0-1.0}'


@pytest.mark.slow
def test_triplet_clip(tmp_path: Path) -> None:
    settings = (
        f"stages.negatives.source={NEGATIVES}",
        "stages.images.source.engine={kind: diffusers, model: small, steps: 2}",
        "subsets.triplet-clip.source.photos=miniature:small_world/photos",
        "subsets.triplet-clip.source.licence=CC0-1.0",
    )
    twinset.build("triplet-clip", tmp_path / "out", settings=settings)
    (subset,) = twinset.status(tmp_path / "out")["subsets"].values()
    assert subset["kept"] == 6
