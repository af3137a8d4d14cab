"""Draws pictures of prompts with a pipeline of diffusers, which is loaded once a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
from PIL import Image

from twinset.contracts.kinds.samples import Json, Pixels, Rejected
from twinset.models.diffusion.settings import DiffusersImages, PipelineSettings
from twinset.models.engines import Engine
from twinset.models.image_engine import Drawn, ImageGenerator, Request

if TYPE_CHECKING:
    from twinset.models.diffusion.pipeline import OpenPipeline

P = TypeVar("P", bound=PipelineSettings)


class PipelineWorker(Engine, Generic[P]):
    """An engine with a pipeline, which it opens when it is first needed."""

    # Torch's number of threads is its process's, and a pipeline is in the midst of one call at a time.
    isolation = "process"
    # Torch, diffusers and transformers belong to the runtime class: GPU workers have other builds, and planners none.
    libraries = ("numpy",)

    def __init__(self, settings: P) -> None:
        self.settings, self.threads = settings, settings.threads

    def weights(self) -> Mapping[str, str]:
        """Digest of the model's files; raises `WrongUse` naming those that are not on this machine."""
        return {"model": self.settings.found().digest()}

    def device(self) -> str:
        return self.settings.device_name("source.engine.device")

    def with_micro_batch(self, micro_batch: int) -> Self:
        self.pipeline  # noqa: B018 - the copy shares it
        return super().with_micro_batch(micro_batch)

    @cached_property
    def pipeline(self) -> OpenPipeline:
        """The pipeline; raises `BuildFailed` where it does not fit into memory."""
        # Torch is heavy: a plan does without it.
        from twinset.models.device import load_within_memory
        from twinset.models.diffusion.pipeline import OpenPipeline

        return load_within_memory(self.settings.model, lambda: OpenPipeline(self.settings))

    def provenance(self) -> dict[str, Json]:
        """How its pictures are made."""
        return {"engine": self.settings.kind, **self.pipeline.provenance()}

    def unread(self, key: str, prompt: str) -> Rejected | None:
        """Why a prompt is not read as it stands."""
        if mark := self.pipeline.steers(prompt):
            return Rejected(key, "special-token", f"the prompt holds {mark}")
        over = 0 if self.settings.cut else self.pipeline.over(prompt)
        return Rejected(key, "prompt-too-long", f"{over} tokens more than the model reads") if over else None


def broken(key: str, pixels: Pixels, finite: bool) -> Rejected | None:
    """Why a picture is plainly none."""
    if not finite or (pixels == pixels[0, 0]).all():
        return Rejected(key, "blank" if finite else "not-finite")
    return None


class PipelinePainter(PipelineWorker[DiffusersImages], ImageGenerator):
    """Pictures in passes of one size: the last bits of a picture depend on how many are drawn with it, and a short pass
    is filled up with its last request.
    """

    version = 2

    def __init__(self, settings: DiffusersImages) -> None:
        super().__init__(settings)
        self.micro_batch = settings.micro_batch

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        """As `ImageGenerator.draw`; rejected are prompts that are too long, and what is plainly broken.

        Raises:
            OutOfMemory: a pass does not fit.
            BuildFailed: the model does not.
        """
        results = {request.key: self.unread(request.key, request.prompt) for request in requests}
        drawn = self._drawn([request for request in requests if results[request.key] is None])
        for request in requests:
            yield results[request.key] or self._kept(request.key, *next(drawn))

    def _kept(self, key: str, pixels: Pixels, finite: bool) -> Drawn | Rejected:
        """A picture at its final size."""
        side, size = self.settings.output_resolution, pixels.shape[0]
        how = {**self.provenance(), "resolution": size, "resampling": "none"}
        rejected = broken(key, pixels, finite)
        if side is not None and side != size:
            how["resampling"] = self.settings.resampling
            resampling = Image.Resampling[self.settings.resampling.upper()]
            pixels = np.asarray(Image.fromarray(pixels).resize((side, side), resampling))
        return rejected or Drawn(key, pixels, how, sources=self.pipeline.files)

    def _drawn(self, requests: Sequence[Request]) -> Iterator[tuple[Pixels, bool]]:
        from twinset.models.device import within_memory

        side = self.settings.resolution
        for batch in self._passes(requests):
            full = [*batch, *[batch[-1]] * (self.micro_batch - len(batch))]
            prompts, seeds = [request.prompt for request in full], [request.seed for request in full]
            yield from within_memory(partial(self.pipeline, prompts, seeds, height=side, width=side))[: len(batch)]

    def _passes(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Requests that are drawn together."""
        alone, batch = self.pipeline.found.row.alone, list[Request]()
        for request in requests:
            if batch and (len(batch) == self.micro_batch or (alone and request.prompt != batch[-1].prompt)):
                yield batch
                batch = []
            batch.append(request)
        if batch:
            yield batch
