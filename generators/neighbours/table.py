"""Features of a finished table of `image-features` as one array."""

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import Floats
from twinset.shards.finished_stage import FinishedStage

FURTHEST = 1e-3  # of a norm from 1


def read_features(stage: FinishedStage, chosen: NDArray[np.bool_] | None = None) -> tuple[list[str], Floats]:
    """sha256 and features of each image, or of some rows. chosen: whether each row is read.

    Memory: the features, once. Raises `WrongUse` for features of another norm than 1, such as NaN.
    """
    names = list[str]()
    rows, features = stage.record.rows if chosen is None else int(chosen.sum()), np.empty((0, 0), np.float32)
    for batch in stage.batches(["image_sha256", "features"], chosen):
        values = batch["features"].flatten().to_numpy().reshape(len(batch), -1)
        if not names:
            features = np.empty((rows, values.shape[1]), np.float32)
        features[len(names) : len(names) + len(batch)] = values
        norms = np.linalg.norm(values, axis=1)
        names += batch["image_sha256"].to_pylist()
        if (wrong := np.flatnonzero(~(np.abs(norms - 1) < FURTHEST))).size:
            image = names[int(wrong[0]) - len(batch)]
            raise WrongUse(
                f"{stage.where}: the features of image {image} have norm {norms[wrong[0]]:g} instead of 1; remove the "
                "stage's folder and build it again"
            )
    return names, features
