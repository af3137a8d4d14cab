"""Recall of a Combiner on queries that it is not trained on, scored as `twinset eval run` scores them."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from twinset.evaluation.examples import Benchmark
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.scorers.composed import Combiner
from twinset.models.encoders.contract import DualEncoder
from twinset.training.clip.validation import evaluating
from twinset.training.combiner.data import HeldOut
from twinset.training.combiner.steps import Trainee

AT = (1, 5, 10)
BEST_BY = "recall@1"


class Validation:
    """Queries of a benchmark.

    Args:
        encoder: of images and conditions; its weights may be those that are trained.
        store: of its features, where they stay the same; else None, and they are computed every time.
        size: images or texts of a pass.

    Raises:
        BuildFailed: an image of held-out triplets cannot be read.
    """

    def __init__(self, benchmark: Benchmark, encoder: DualEncoder, store: FeatureStore | None, size: int) -> None:
        self._benchmark, self._encoder, self._store, self._size = benchmark, encoder, store, size
        self._check()  # before the first step, not after an epoch

    def measure(self, trainee: Trainee) -> dict[str, float]:
        """Recall at 1, 5 and 10 of the weights as they are now, in percent; a tie with the target counts as a miss."""
        self._check()
        composer = Combiner("the Combiner in training", self._encoder, "in training", trainee.combiner)
        with tempfile.TemporaryDirectory() as folder, evaluating(trainee):
            store = self._store or FeatureStore(Path(folder), "features")
            queries = ByFeatures(self._encoder, store, self._size, composer)
            try:
                write_scores(self._benchmark, queries, Path(folder) / "scores.parquet", {})
                ranks = pq.read_table(Path(folder) / "scores.parquet", columns=["higher", "tied"])
            finally:
                queries.close()
                if self._store is None:
                    store.close()
        place = ranks["higher"].to_numpy() + ranks["tied"].to_numpy()
        return {f"recall@{k}": 100 * float(np.mean(place < k)) for k in AT}

    def _check(self) -> None:
        if isinstance(self._benchmark, HeldOut):
            self._benchmark.check_readable()
