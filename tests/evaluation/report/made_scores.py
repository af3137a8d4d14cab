"""Score files of made-up models, and a benchmark of pictures that they belong to."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import SmallBenchmark
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.examples import (
    GROUNDING_ERRORS,
    MATCHING_SCORES,
    QUERY_RANKS,
    Grounding,
    LeftOut,
    Matching,
    Picture,
    Query,
)

SCRIPT = "<script>alert('x')</script>"


def save(
    out: Path, benchmark: str, model: str, rows: Sequence[Mapping[str, Any]], schema: pa.Schema, **about: Any
) -> Path:
    """Write a score file; about: what differs from the usual."""
    metadata = {
        "benchmark": benchmark, "title": f"{benchmark} & <b>co</b>", "model": model, "model_digest": "m" * 64,
        "data_digest": "d" * 64, "left_out": {"missing image": 3}, "seconds": 12.5, "device": "cpu", **about,
    }  # fmt: skip
    number = len(list(out.glob(f"scores/{benchmark}/*.parquet")))
    path = out / "scores" / benchmark / f"model-{number}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = schema.with_metadata({b"twinset": json.dumps(metadata).encode()})
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), path)
    return path


@contextmanager
def released(**counts: Mapping[str, int]) -> Iterator[None]:
    """Benchmarks whose releases have no more examples, by subset, than a test makes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, subsets in counts.items():
            patch.setattr(BENCHMARKS.find(name), "counts", subsets)
        yield


def identity(number: int) -> dict[str, str]:
    """Of an example: three to a group."""
    named = {"key": f"key-{number:03d}", "subset": ("first", "second")[number % 2]}
    return {**named, "category": "", "group": f"video-{number // 3}"}


def matchings(n: int, seed: int, lead: float) -> list[dict[str, Any]]:
    """Rows of random scores; ``lead``: how much higher right pairs score."""
    scores = np.random.default_rng(seed).normal(0.25, 0.05, (n, 4)).round(2) + np.array([lead, 0, 0, lead])
    return [
        {**identity(number), **dict(zip(("s00", "s01", "s10", "s11"), map(float, row), strict=True))}
        for number, row in enumerate(scores)
    ]


def ranks(n: int, entries: int = 15) -> list[dict[str, Any]]:
    """Queries of which number i has i wrong entries above its target, around and around."""
    known = {"tied": 0, "entries": entries, "targets": 1, "tied_targets": 1, "best_wrong": 0}
    return [{**identity(number), **known, "higher": number % entries} for number in range(n)]


def errors(n: int) -> list[dict[str, Any]]:
    """Groundings of which number i misses by i / 10 seconds, some in two gaps."""
    return [{**identity(number), "errors": [number / 10, 0.05][: 1 + number % 2]} for number in range(n)]


def picture(name: str, colour: tuple[int, int, int] | str) -> Picture:
    """A picture of one colour."""
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(stream, "PNG")
    return Picture(name, stream.getvalue)


def _missing() -> bytes:
    raise FileNotFoundError("removed since")


class Made(SmallBenchmark):
    """A benchmark of ``n`` matchings; ``read`` counts how many were read."""

    def __init__(self, name: str, n: int) -> None:
        super().__init__(lambda: (), name, "Made")
        self.n, self.read = n, 0

    def examples(self) -> Iterator[Matching | Query | Grounding | LeftOut]:
        """In order; one left out; the picture of ``key-001`` is missing."""
        yield LeftOut("nowhere.jpg", "missing image")
        for number in range(self.n):
            self.read += 1
            images = [picture(f"{number}-{side}", (number % 256, 40 * side, 90)) for side in (0, 1)]
            if number == 1:
                images[1] = Picture("1-1", _missing)
            captions = (f"a red disc {number} {SCRIPT}", f"a blue disc {number}")
            yield Matching(**identity(number), images=tuple(images), captions=captions)


SCHEMAS = {"matching": MATCHING_SCORES, "query": QUERY_RANKS, "grounding": GROUNDING_ERRORS}
