"""Photographs of noise with two encoders' features, and the pairs that are planned of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.generators.finished_stage import write_index
from twinset.models.encoders.contract import Floats, unit
from twinset.models.encoders.image_towers import THUMBNAIL
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset_extras.confused_pairs.source import ConfusedCandidate, ConfusedPairs

FEATURES = pa.schema(
    [
        *((name, pa.string()) for name in ("key", "identity", "image_sha256")),
        ("features", pa.list_(pa.float32())),
    ]
)
IMAGES = 40
#: Seed of the features of each encoder, and how far they spread.
FIRST_SECOND = {"first": (1, 0.3), "second": (2, 1.0)}


def table(folder: Path, name: str, features: Mapping[str, Floats], rejected: Sequence[str] = ()) -> FinishedStage:
    rows = [
        {"key": f"{name}-{sha256}", "identity": json.dumps([sha256]), "image_sha256": sha256, "features": one.tolist()}
        for sha256, one in features.items()
    ]
    lost = [{"key": one, "identity": json.dumps([one]), "reason": "feature-not-finite"} for one in rejected]
    return write_index(pa.Table.from_pylist(rows, FEATURES), folder, name, len(rows) + len(lost), 7, lost)


def encoded(photos: FinishedStage, seed: int, spread: float) -> dict[str, Floats]:
    drawn, names = np.random.default_rng(seed), photos.read(["image_sha256"])["image_sha256"].to_pylist()
    return dict(zip(names, unit((drawn.normal(size=(len(names), 12)) * spread + 1).astype(np.float32)), strict=True))


def source(**settings: Any) -> ConfusedPairs:
    stages = {"images": "photos", "alike": "first", "apart": "second"}
    return ConfusedPairs(kind="confused-pairs", licence="CC0-1.0", **{**stages, **settings})


def context(*stages: FinishedStage) -> Context:
    return Context("confused", earlier=dict(zip(("photos", "first", "second"), stages, strict=True)).__getitem__)


def planned(settings: ConfusedPairs, stages: Context) -> list[ConfusedCandidate]:
    return list(settings.open(stages).plan())


def image_features(images: str, model: str = THUMBNAIL) -> dict[str, Any]:
    return {"source": {"kind": "image-features", "images": images, "model": model}}
