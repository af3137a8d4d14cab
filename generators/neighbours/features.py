"""Encodes each distinct image of an earlier stage once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.neighbours.source import ImageFeatures
from twinset.models.encoders.contract import Floats
from twinset.models.encoders.image_towers import InBuild, open_tower, tower_files
from twinset.models.files import sha256_once
from twinset.shards.contracts import Context, StageGenerator
from twinset.shards.media.decode import decode

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCandidate(Candidate):
    """An image of an earlier stage. tar, sample, role: where it lies."""

    tar: str
    sample: str
    role: str
    image_sha256: str


class FeatureGenerator(StageGenerator[ImageFeatures]):
    """A row a distinct image, in the order of the earlier stage.

    The last bits of a feature depend on device, threads and the size of a pass; passes that are short of images are
    filled up, so that they depend on no other image.
    """

    version = 1
    isolation = "process"  # torch's number of threads is its process's
    candidate = ImageCandidate
    libraries = ("numpy", "pillow")
    columns = pa.schema(
        [
            pa.field("image_sha256", pa.string(), nullable=False),
            pa.field("features", pa.list_(pa.float32()), nullable=False),
        ]
    )

    def __init__(self, source: ImageFeatures, context: Context) -> None:
        super().__init__(source, context)
        self.micro_batch, self.threads = source.micro_batch, source.threads

    def weights(self) -> Mapping[str, str]:
        used = tower_files(self.source.model).paths
        return {"model": digest({path.name: sha256_once(path) for path in used})}

    def device(self) -> str:
        return self.source.device_name("source.device")

    def plan(self) -> Iterator[ImageCandidate]:
        """Raises `WrongUse` when the earlier stage is a table, or has rows without images."""
        kind = KINDS.get(str(self.earlier.stage.facts.get("makes")))
        if kind is None:
            raise WrongUse(f"{self.earlier.where}: holds no samples; name a stage whose samples have images")
        seen = set[str]()
        for row in self.earlier.pictured_rows(("key", "tar", *kind.hashed)):
            for role, column in zip(kind.images, kind.hashed, strict=True):
                if (sha256 := row[column]) and sha256 not in seen:  # a sample can lack optional images
                    seen.add(sha256)
                    place = {"tar": row["tar"], "sample": row["key"], "role": role, "image_sha256": sha256}
                    yield ImageCandidate(**self.identified(sha256), **place)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or ``feature-not-finite``.

        Raises:
            BrokenTar: an image is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the tower does not fit.
        """
        from twinset.models.device import inference, within_memory

        planned = cast(Sequence[ImageCandidate], candidates)
        stored = self.earlier.samples((one.tar, one.sample) for one in planned)
        with inference(self.threads):
            for start in range(0, len(planned), self.micro_batch):
                some = planned[start : start + self.micro_batch]
                pictures = [self._picture(one, stored[one.sample]) for one in some]
                filled = pictures + pictures[-1:] * (self.micro_batch - len(pictures))
                found = within_memory(partial(self._tower, filled))
                for one, features in zip(some, found, strict=False):
                    if not np.isfinite(features).all():
                        yield Rejected(one.key, "feature-not-finite")
                    else:
                        yield TableRows(one.key, [{"image_sha256": one.image_sha256, "features": features.tolist()}])

    def _picture(self, one: ImageCandidate, stored: Stored[Any]) -> Image:
        self.earlier.check_images(one.tar, stored, {one.role: one.image_sha256})
        return decode(stored.images[one.role], f"{self.earlier.where}/{one.tar}: {one.sample}.{one.role}")

    @cached_property
    def _tower(self) -> Callable[[Sequence[object]], Floats]:
        return open_tower(self.source.model, InBuild(self.source.device, self.micro_batch, self.threads))
