"""Tables of scores of small benchmarks."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from PIL import Image

from tests.evaluation.features.small_benchmark import PlainEncoder, SmallBenchmark, drawn
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures, Similarities
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import DualEncoder


def by_features(folder: Path, encoder: DualEncoder | None = None, batch: int = 4, **more: Any) -> ByFeatures:
    encoder = encoder or PlainEncoder()
    return ByFeatures(encoder, FeatureStore(folder / "cache", encoder.digest()), batch, **more)


def scored(make: Callable[[], Any], similarities: Similarities, path: Path) -> Any:
    write_scores(SmallBenchmark(make), similarities, path, {"model": "m"})
    return pq.read_table(path)


def pixels(number: int) -> Image.Image:
    return Image.open(BytesIO(drawn(number))).convert("RGB")
