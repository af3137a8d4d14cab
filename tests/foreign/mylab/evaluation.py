"""A benchmark, a kind of models, and a metric."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from twinset.evaluation.benchmarks.reader import Pairs
from twinset.evaluation.benchmarks.rows import Row
from twinset.models.encoders.contract import Floats, Matcher, ModelKind, Running


class Greys(Pairs):
    """``pairs.json``: ``[{name, image0, image1}, …]``, and the images beside it."""

    name = "mylab-greys"
    title = "Greys (2026)"
    citation = "https://example.org/greys"
    expects = "pairs.json and its images"
    obtained = "Draw them yourself"
    files: ClassVar = {"greys": "pairs.json"}
    image_columns, key_column = ("image0", "image1"), "name"

    def captions(self, row: Row) -> Sequence[str]:
        return f"a dark {row.text('name')}", f"a light {row.text('name')}"


class GreyMatcher(Matcher):
    """A caption with "light" fits bright images."""

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        self.name, self.middle = name, float(parts[0])

    def digest(self) -> str:
        return f"mylab-grey 0.1.0 {self.middle}"

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        greys = np.array([np.asarray(image).mean() for image in images]) - self.middle
        return np.array(
            [grey if "light" in text else -grey for grey, text in zip(greys, texts, strict=True)], np.float32
        )


GREY = ModelKind(GreyMatcher, "MIDDLE")


Column = NDArray[np.float64]


def sum_score(s00: Column, s01: Column, s10: Column, s11: Column) -> dict[str, Column]:
    """Whether both matching scores together are above both others together: asked of two images."""
    return {"sum": np.where(np.isnan(s10), np.nan, s00 + s11 > s01 + s10)}
