"""The tables from which hard negatives are mined by image: EqBen C, and NegCLIP (section 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.references import Reference
from twinset.contracts.source import Need, Place, StageName
from twinset.generators.neighbours.table import read_features
from twinset.generators.papers import EQBEN
from twinset.generators.reasons import reasons_beside
from twinset.models.device import GPU, OnDevice, check_installed
from twinset.models.encoders.contract import Floats
from twinset.models.encoders.image_towers import InBuild, open_tower, tower_files
from twinset.models.files import ModelMissing, sha256_once
from twinset.shards.contracts import RowCandidate, RowStage, Source
from twinset.shards.media.decode import decode

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

ROWS, COLUMNS = 1024, 1 << 15  # of a block: 128 MiB of cosines, whatever the number of images


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCandidate(Candidate):
    """An image of an earlier stage. tar, sample, role: where it lies."""

    tar: str
    sample: str
    role: str
    image_sha256: str


class ImageFeatures(OnDevice, Source):
    """Features with norm 1 of each image of a stage, a row an image, however many samples have it.

    images: the stage of samples, or the folder of a finished one. model: whose image tower encodes them: CLIP or SigLIP
    in the layout of transformers or of open_clip, as a folder, an id of the hub whose files are in the local cache, or
    a name that an installed package brings; or ``thumbnail``, no network but 16 × 16 pixels less their mean. device,
    threads: as `OnDevice`. micro_batch: images a pass. licence: of the images.
    """

    kind: Literal["image-features"]
    images: StageName
    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=32, ge=1, le=1024)
    licence: str = ""

    makes = "table"
    reference = Reference("image features")
    paper = EQBEN
    group = "image"
    verb = "encoded from"
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-features")
    execution = (*OnDevice.execution, "micro_batch")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            with naming(f"{key}.model", ModelMissing):
                tower_files(self.model)
            if "media" in needs:
                check_installed(key, ("torch",), self.extra)

    version = 1
    isolation = "process"  # torch's number of threads is its process's
    candidate = ImageCandidate
    libraries = ("numpy", "pillow")
    row_schema = pa.schema(
        [
            pa.field("image_sha256", pa.string(), nullable=False),
            pa.field("features", pa.list_(pa.float32()), nullable=False),
        ]
    )

    def weights(self) -> Mapping[str, str]:
        return {"model": digest({path.name: sha256_once(path) for path in tower_files(self.model).paths})}

    def runs_on(self) -> str:
        return self.device_name("source.device")

    def plan(self) -> Iterator[ImageCandidate]:
        """Raises `WrongUse` when the earlier stage is a table, or has rows without images."""
        kind = KINDS.get(str(self.earlier().stage.facts.get("makes")))
        if kind is None:
            raise WrongUse(f"{self.earlier().where}: holds no samples; name a stage whose samples have images")
        seen = set[str]()
        for row in self.earlier().pictured_rows(("key", "tar", *kind.hashed)):
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
        stored = self.earlier().samples((image.tar, image.sample) for image in planned)
        with inference(self.threads):
            for start in range(0, len(planned), self.batch_size()):
                images = planned[start : start + self.batch_size()]
                pictures = [self._picture(image, stored[image.sample]) for image in images]
                filled = pictures + pictures[-1:] * (self.batch_size() - len(pictures))
                encoded = within_memory(partial(self._tower, filled))
                for image, features in zip(images, encoded, strict=False):
                    if np.isfinite(features).all():
                        row = {"image_sha256": image.image_sha256, "features": features.tolist()}
                        yield TableRows(image.key, [row])
                    else:
                        yield Rejected(image.key, "feature-not-finite")

    def _picture(self, image: ImageCandidate, stored: Stored[Any]) -> Image:
        self.earlier().check_images(image.tar, stored, {image.role: image.image_sha256})
        return decode(stored.images[image.role], f"{self.earlier().where}/{image.tar}: {image.sample}.{image.role}")

    @cached_property
    def _tower(self) -> Callable[[Sequence[object]], Floats]:
        return open_tower(self.model, InBuild(self.device, self.batch_size(), self.threads))


def nearest(features: Tensor, k: int, rows: slice = slice(None)) -> tuple[Tensor, Tensor]:
    """The rows of features that are most similar to each of some, best first; a row is not its own neighbour.

    Args:
        features: of norm 1, float32, shape (n, d).
        k: neighbours of a row; at most n − 1 exist.
        rows: whose neighbours are looked for, r of them.

    Returns:
        Places, int64, and cosines, float32; shape (r, min(k, n − 1)).
    """
    import torch

    first, last, _ = rows.indices(len(features))
    k, nearest_of = min(k, len(features) - 1), []
    for start in range(first, last, ROWS):
        block, own = features[start : min(start + ROWS, last)], torch.arange(start, last, device=features.device)
        cosines, places = [], []
        for column in range(0, len(features), COLUMNS):
            alike = block @ features[column : column + COLUMNS].T
            numbers = torch.arange(column, column + alike.shape[1], device=features.device)
            top = alike.masked_fill_(own[: len(block), None] == numbers, -torch.inf).topk(min(k, alike.shape[1]))
            cosines.append(top.values)
            places.append(numbers[top.indices])
        best = torch.cat(cosines, 1).topk(k)
        nearest_of.append((torch.cat(places, 1).gather(1, best.indices), best.values))
    return torch.cat([places for places, _ in nearest_of]), torch.cat([cosines for _, cosines in nearest_of])


class ImageNeighbours(OnDevice, RowStage):
    """The images most similar to each image, by the cosine of features; all their captions are its hard negatives.

    features: the stage of ``image-features``, or the folder of a finished one. neighbours: of an image, 128 in EqBen
    (C). device, threads: as `OnDevice`. licence: of the images.
    """

    kind: Literal["image-neighbours"]
    features: StageName
    neighbours: int = Field(default=128, ge=1, le=10_000)
    licence: str = ""

    paper = EQBEN
    group = "image"
    verb = "mined from"

    version = 2
    isolation = "process"  # torch's number of threads is its process's
    read_columns = ("image_sha256",)
    row_schema = pa.schema(
        [
            pa.field("image_sha256", pa.string(), nullable=False),
            pa.field("number", pa.int32(), nullable=False),
            pa.field("neighbours", pa.list_(pa.int32()), nullable=False),
            pa.field("cosines", pa.list_(pa.float32()), nullable=False),
        ]
    )
    micro_batch: ClassVar[int] = ROWS

    def runs_on(self) -> str:
        return self.device_name("source.device")

    def rows(self, batch: Sequence[RowCandidate]) -> Iterator[list[dict[str, Any]]]:
        """A row each. Raises `OutOfMemory`: features or cosines do not fit."""
        from twinset.models.device import inference, within_memory

        numbers, features = self._features
        images = [candidate.values["image_sha256"] for candidate in batch]
        first = numbers[images[0]]
        with inference(self.threads):
            alike = within_memory(lambda: nearest(features, self.neighbours, slice(first, first + len(batch))))
        for image, *row in zip(images, *(values.tolist() for values in alike), strict=True):
            yield [dict(zip(self.row_schema.names, (image, numbers[image], *row), strict=True))]

    @cached_property
    def _features(self) -> tuple[Mapping[str, int], Tensor]:
        """The number of each image in the order of the features, and these."""
        import torch

        images, features = read_features(self.earlier())
        numbers = {image: number for number, image in enumerate(images)}
        return numbers, torch.from_numpy(features).to(GPU if self.device == "gpu" else "cpu")
