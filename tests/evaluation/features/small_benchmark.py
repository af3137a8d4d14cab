"""A benchmark of drawn pictures that share images, as Action Genome's frames are shared; with faults on demand."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from twinset.evaluation.examples import Grounding, LeftOut, Matching, Picture, Query
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures, Similarities
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import DualEncoder, Floats, Matcher


def drawn(number: int, size: int = 40) -> bytes:
    """A PNG of noise."""
    pixels = np.random.default_rng(number).integers(0, 256, (size, size + 8, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


@dataclass
class Shelf:
    """Pictures by number; counts how often each is read. faults: other bytes, or None for a missing file."""

    faults: dict[int, bytes | None] = field(default_factory=dict)
    reads: Counter[int] = field(default_factory=Counter)

    def picture(self, number: int) -> Picture:
        def read() -> bytes:
            self.reads[number] += 1
            data = self.faults.get(number, drawn(number))
            if data is None:
                raise FileNotFoundError(f"no file {number}.png")
            return data

        return Picture(f"shelf/{number}.png", read)


@dataclass
class SmallBenchmark:
    """Examples from a function, which is called for each run."""

    make: Callable[[], Sequence[Matching | Query | Grounding | LeftOut]]
    name: str = "small"
    title: str = "Small (2026)"
    citation: str = "none"
    metrics: tuple[str, ...] = ()
    asks: str = ""
    apart: bool = False

    def examples(self) -> Iterator[Matching | Query | Grounding | LeftOut]:
        yield from self.make()

    def digest(self) -> str:
        return "d" * 64


def matchings(shelf: Shelf, count: int, distinct: int = 6) -> list[Matching]:
    """Pairs of neighbouring pictures, so that each is asked about many times."""
    return [
        Matching(
            key=f"m-{n}",
            subset="s",
            group=f"video-{n % distinct}",
            category="c",
            images=(shelf.picture(n % distinct), shelf.picture((n + 1) % distinct)),
            captions=(f"frame {n % distinct}", f"frame {(n + 1) % distinct}"),
        )
        for n in range(count)
    ]


class PlainEncoder(DualEncoder):
    """Mean colours and counts of letters: its features are known without a network. Counts what it encodes."""

    name = "plain"

    def __init__(self) -> None:
        self.images, self.texts, self.shapes = 0, 0, set[int]()

    def digest(self) -> str:
        return "plain"

    def prepare(self, image: Image.Image) -> Floats:
        return np.asarray(image.resize((4, 4)), np.float32).transpose(2, 0, 1)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        self.images += len({pixels.tobytes() for pixels in prepared})
        self.shapes.add(len(prepared))
        return np.stack([pixels.reshape(-1)[:6] - 100 for pixels in prepared])

    def text_features(self, texts: Sequence[str]) -> Floats:
        self.texts += len(set(texts))
        counts = [[text.count(letter) for letter in "fraem0"] for text in texts]
        return np.array([[len(text), 1, 2, 3, 4, 5] for text in texts], np.float32) + np.array(counts, np.float32)


class PlainPairs(Matcher):
    """The size of a text against the brightness of an image."""

    name = "pairs"

    def __init__(self) -> None:
        self.scored: list[tuple[bytes, str]] = []

    def digest(self) -> str:
        return "pairs"

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        self.scored += [(image.tobytes(), text) for image, text in zip(images, texts, strict=True)]
        bright = [np.asarray(image, np.float32).mean() for image in images]
        return np.array(bright, np.float32) - np.array([hash_of(text) for text in texts], np.float32)


def hash_of(text: str) -> float:
    return float(sum(map(ord, text)) % 97)


def by_features(folder: Path, encoder: DualEncoder | None = None, batch: int = 4, **more: Any) -> ByFeatures:
    encoder = encoder or PlainEncoder()
    return ByFeatures(encoder, FeatureStore(folder / "cache", encoder.digest()), batch, **more)


def scored(make: Callable[[], Any], similarities: Similarities, path: Path) -> Any:
    write_scores(SmallBenchmark(make), similarities, path, {"model": "m"})
    return pq.read_table(path)


def about(table: Any) -> dict[str, Any]:
    """What a table says of itself."""
    return dict(json.loads(table.schema.metadata[b"twinset"]))


def pixels(number: int) -> Image.Image:
    return Image.open(io.BytesIO(drawn(number))).convert("RGB")
