"""A run that is killed: ``python -m tests.evaluation.features.killed_run OUT CACHE COUNTS PAUSE``.

Each pass over images appends its size to COUNTS and then sleeps, so that a test can kill it between two passes.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, SmallBenchmark, matchings
from twinset.evaluation.features import store
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import Floats

EXAMPLES, IMAGES, BATCH = 60, 20, 4


class Paced(PlainEncoder):
    """Tells of each pass before it is made."""

    def __init__(self, counts: str, pause: float) -> None:
        super().__init__()
        self.counts, self.pause = counts, pause

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        with open(self.counts, "a") as stream:
            stream.write(f"{len({one.tobytes() for one in prepared})}\n")
        time.sleep(self.pause)
        return super().image_features(prepared)


def main(out: str, cache: str, counts: str, pause: str) -> None:
    store.BLOCK_SECONDS = 0.0  # a pass is a block
    model = Paced(counts, float(pause))
    similarities = ByFeatures(model, FeatureStore(Path(cache), model.digest()), BATCH)
    write_scores(
        SmallBenchmark(lambda: matchings(Shelf(), EXAMPLES, IMAGES)), similarities, Path(out), {"model": "plain"}
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
