"""GeneCIS's specific solution for objects (section 6.1, appendix B): what a detector found in the images decides."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinset.contracts.canonical import digest
from twinset.evaluation.examples import Picture, Query
from twinset.evaluation.features.pictures import Unusable
from twinset.evaluation.features.similarities import Asked, Left, Similarities, composed, entries
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.score_files.opening import open_scores
from twinset.generators.galleries.annotations import condition_name
from twinset.models.encoders.contract import Floats, ModelKind, Running, Scorer
from twinset.models.files import sha256_once

NO_ROW = "image without a row of the detector"


class Detections(Scorer):
    """What a detector found. categories: of each image, by the name of its file without suffix."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.categories: dict[str, set[str]] = {}
        table = open_scores(path).read(["image", "category"])
        images, categories = table.texts("image", empty=False).to_pylist(), table.texts("category").to_pylist()
        for image, category in zip(images, categories, strict=True):
            self.categories.setdefault(Path(image).stem, set()).update({condition_name(category)} - {""})

    def digest(self) -> str:
        return digest(["detections", sha256_once(self.path)])


class ByDetections(Similarities):
    """Gallery images without the condition come last; the others by how alike the sets of categories are that they and
    the reference show (cosine; the paper does not say).
    """

    def __init__(self, detections: Detections, store: FeatureStore, batch: int) -> None:
        super().__init__(detections, store, batch)
        self.detections = detections

    def refusal(self, example: Asked) -> str | None:
        if composed(example) and all(isinstance(entry, Picture) for entry in example.gallery):
            return None
        what = f"ranks images by what a detector found in them and in a reference, and example {example.key} asks"
        return f"{what} something else; name a benchmark such as genecis"

    def left_out(self, examples: Sequence[Asked]) -> Left:
        """Queries with an image that the table has no row of."""
        left, known = Left(), self.detections.categories
        for query in examples:
            unknown = [where for where in _places(query) if Path(where).stem not in known]
            if unknown:
                left[query.key] = Unusable(unknown[0], NO_ROW)
        return left

    def gallery(self, query: Query) -> Floats:
        """Scores of shape (entries,): a cosine, or -1 without the condition."""
        reference, *shown = (self.detections.categories[Path(where).stem] for where in _places(query))
        condition = condition_name(query.text or "")
        # Of two sets as vectors of 0 and 1: |A ∩ B| / √(|A| |B|).
        lengths = [max(len(reference) * len(categories), 1) for categories in shown]
        alike = [len(reference & categories) for categories in shown] / np.sqrt(lengths)
        return np.where([condition in categories for categories in shown], alike, -1).astype(np.float32)


def _places(query: Asked) -> list[str]:
    """Where the reference lies, and the entries of the gallery."""
    return [entry.where for entry in entries([query]) if isinstance(entry, Picture)]


def _open(name: str, parts: Sequence[str], running: Running) -> Detections:
    return Detections(name, Path(parts[0]).expanduser())


def _check(name: str, parts: Sequence[str]) -> None:
    open_scores(Path(parts[0]).expanduser()).require("category", f"--model {name}")


DETECTIONS = ModelKind(_open, "TABLE", check=_check, about=ByDetections.__doc__)
