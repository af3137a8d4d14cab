"""GeneCIS's specific solution for objects (section 6.1, appendix B): what a detector found in the images decides."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Picture, Query
from twinset.evaluation.features.pictures import Unusable
from twinset.evaluation.features.similarities import Asked, Left, Similarities, cosines
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.score_files.opening import open_scores
from twinset.generators.galleries.annotations import condition_name
from twinset.models.encoders.contract import Floats, ModelKind, NotApplicable, Running, Scorer, unit
from twinset.models.files import sha256_once

NO_ROW = "image without a row of the detector"


class Detections(Scorer):
    """What a detector found: gallery images without the condition come last; the others by how alike the sets of
    categories are that they and the reference show (cosine; the paper does not say).
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        found: dict[str, set[str]] = {}
        for batch in open_scores(path).batches(["image", "category"]):
            rows = zip(batch.texts("image", empty=False).to_pylist(), batch.texts("category").to_pylist(), strict=True)
            for image, category in rows:
                found.setdefault(Path(image).stem, set()).update({condition_name(category)} - {""})
        self._numbers = {one: at for at, one in enumerate(sorted({one for some in found.values() for one in some}))}
        self._found = {image: self._descriptor(some) for image, some in found.items()}

    def digest(self) -> str:
        return digest(["detections", sha256_once(self.path)])

    def unknown(self, query: Query) -> str | None:
        """The first image of a query that the table has no row of."""
        shown = [one for one in (query.image, *query.gallery) if one is not None and not isinstance(one, str)]
        return next((one.where for one in shown if Path(one.where).stem not in self._found), None)

    def gallery(self, query: Query) -> Floats:
        """Scores of the gallery, shape (entries,): a cosine, or -1 without the condition."""
        assert query.image is not None and query.text is not None
        rows = [self._found[Path(one.where).stem] for one in (query.image, *query.gallery) if not isinstance(one, str)]
        reference, shown = rows[0], np.stack(rows[1:])
        asked = self._numbers.get(condition_name(query.text))
        has = np.zeros(len(shown), np.bool_) if asked is None else shown[:, asked] > 0
        alike = cosines(unit(shown), unit(reference)[None])[:, 0]
        return np.where(has, alike, np.float32(-1))

    def _descriptor(self, categories: set[str]) -> Floats:
        found = np.zeros(len(self._numbers), np.float32)
        found[[self._numbers[one] for one in categories]] = 1
        return found


class ByDetections(Similarities):
    """Scores of queries of an image and a text, by a table of detections."""

    def __init__(self, detections: Detections, store: FeatureStore, batch: int) -> None:
        super().__init__(detections, store, batch)
        self.detections = detections

    def prepare(self, examples: Sequence[Asked]) -> Left:
        left = Left()
        for example in examples:
            if not isinstance(example, Query) or example.image is None or not example.text or not _pictured(example):
                raise NotApplicable(
                    f"{self.name}: ranks images by what a detector found in them and in a reference, and example "
                    f"{example.key} asks something else; name a benchmark such as genecis"
                )
            if (where := self.detections.unknown(example)) is not None:
                left[example.key] = Unusable(where, NO_ROW, f"{self.detections.path} has no row of it")
        return left

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        raise NotApplicable(f"{self.name}: ranks galleries alone")

    def gallery(self, query: Query) -> Floats:
        return self.detections.gallery(query)


def _pictured(query: Query) -> bool:
    return all(isinstance(one, Picture) for one in query.gallery)


def _open(name: str, parts: Sequence[str], running: Running) -> Detections:
    return Detections(name, Path(parts[0]).expanduser())


def _check(name: str, parts: Sequence[str]) -> None:
    if not Path(parts[0]).expanduser().is_file():
        raise WrongUse(f"--model {name}: there is no file {parts[0]}; name a table with the columns image and category")


DETECTIONS = ModelKind(_open, "TABLE", check=_check)
