"""The nearest images of each image by their features, a block of rows against a block of columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.generators.neighbours.source import ImageNeighbours
from twinset.generators.neighbours.table import read_features
from twinset.models.device import GPU
from twinset.shards.contracts import Context, StageGenerator

if TYPE_CHECKING:
    from torch import Tensor

ROWS, COLUMNS = 1024, 1 << 15  # of a block: 128 MiB of cosines, whatever the number of images


def nearest(features: Tensor, k: int, rows: slice = slice(None)) -> tuple[Tensor, Tensor]:
    """The rows of features that are most similar to each of some, best first; a row is not its own neighbour.

    Args:
        features: of norm 1, float32, shape (n, d).
        k: neighbours of a row; at most n − 1 exist.
        rows: whose neighbours are looked for, r of them.

    Returns:
        Their places, int64, and cosines, float32; shape (r, min(k, n − 1)).
    """
    import torch

    first, last, _ = rows.indices(len(features))
    k, found = min(k, len(features) - 1), []
    for start in range(first, last, ROWS):
        some = features[start : min(start + ROWS, last)]
        best, places = some.new_empty(len(some), 0), torch.empty(len(some), 0, dtype=torch.int64, device=some.device)
        for column in range(0, len(features), COLUMNS):
            cosines = some @ features[column : column + COLUMNS].T
            own = torch.arange(start, start + len(some), device=some.device) - column
            inside = (own >= 0) & (own < cosines.shape[1])
            cosines[inside.nonzero()[:, 0], own[inside]] = -torch.inf
            top = cosines.topk(min(k, cosines.shape[1]), dim=1)
            best, places = torch.cat([best, top.values], 1), torch.cat([places, top.indices + column], 1)
            if best.shape[1] > k:
                kept = best.topk(k, dim=1)
                best, places = kept.values, places.gather(1, kept.indices)
        found.append((places, best))
    return torch.cat([one for one, _ in found]), torch.cat([one for _, one in found])


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedImage(Candidate):
    """An image of the table of features. number: of its row."""

    image_sha256: str
    number: int


class NeighbourGenerator(StageGenerator[ImageNeighbours]):
    """A row an image: its number, and the numbers and cosines of its neighbours, best first."""

    version = 1
    isolation = "process"  # torch's number of threads is its process's
    candidate = NumberedImage
    columns = pa.schema(
        [
            pa.field("image_sha256", pa.string(), nullable=False),
            pa.field("number", pa.int32(), nullable=False),
            pa.field("neighbours", pa.list_(pa.int32()), nullable=False),
            pa.field("cosines", pa.list_(pa.float32()), nullable=False),
        ]
    )

    def __init__(self, source: ImageNeighbours, context: Context) -> None:
        super().__init__(source, context)
        self.micro_batch, self.threads = ROWS, source.threads

    def device(self) -> str:
        return self.source.device_name("source.device")

    def plan(self) -> Iterator[NumberedImage]:
        """Images in the order of their features. Raises `WrongUse` where there is only one."""
        number = 0
        for batch in self.earlier.batches(["image_sha256"]):
            for sha256 in batch["image_sha256"].to_pylist():
                yield NumberedImage(**self.identified(sha256), image_sha256=sha256, number=number)
                number += 1
        if number == 1:
            raise WrongUse(f"{self.earlier.where}: holds one image, which has no neighbours; name more images")

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        """A row each. Raises `OutOfMemory`: features or cosines do not fit."""
        from twinset.models.device import inference, within_memory

        planned = cast(Sequence[NumberedImage], candidates)
        first, last = planned[0].number, planned[-1].number + 1
        with inference(self.threads):
            places, cosines = within_memory(lambda: nearest(self._features, self.source.neighbours, slice(first, last)))
        for one, near, alike in zip(planned, places.tolist(), cosines.tolist(), strict=True):
            row = {"image_sha256": one.image_sha256, "number": one.number, "neighbours": near, "cosines": alike}
            yield TableRows(one.key, [row])

    @cached_property
    def _features(self) -> Tensor:
        import torch

        found = torch.from_numpy(read_features(self.earlier)[1])
        return found.to(GPU) if self.source.device == "gpu" else found
