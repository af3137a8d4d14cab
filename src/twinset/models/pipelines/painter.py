"""Draws pictures of prompts with a pipeline of diffusers, which is loaded once a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.models.engines import Engine
from twinset.models.image_engine import Drawn, ImageGenerator, Request
from twinset.models.pipelines.settings import DiffusersImages, PipelineSettings

if TYPE_CHECKING:
    from twinset.models.pipelines.opening import OpenPipeline

P = TypeVar("P", bound=PipelineSettings)


class PipelineWorker(Engine, Generic[P]):
    """An engine with a pipeline, which it opens when it is first needed."""

    # Torch's number of threads is its process's, and a pipeline is in the midst of one call at a time.
    isolation = "process"
    # Torch, diffusers and transformers belong to the runtime class: GPU workers have other builds, and planners none.
    libraries = ("numpy",)

    def __init__(self, settings: P) -> None:
        self.settings, self.threads = settings, settings.threads
        self._opened: list[OpenPipeline] = []  # none or one, shared with those of another micro-batch

    def weights(self) -> Mapping[str, str]:
        """Digest of the model's files; raises `WrongUse` naming those that are not on this machine."""
        return {"model": self.settings.found().digest()}

    def device(self) -> str:
        return self.settings.device_name("source.engine.device")

    @property
    def pipeline(self) -> OpenPipeline:
        """The pipeline; raises `BuildFailed` where it does not fit into memory."""
        if not self._opened:
            # Torch is heavy: a plan does without it.
            from twinset.models.device import load_within_memory
            from twinset.models.pipelines.opening import OpenPipeline

            self._opened.append(load_within_memory(self.settings.model, lambda: OpenPipeline(self.settings)))
        return self._opened[0]

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

    version = 1

    def __init__(self, settings: DiffusersImages) -> None:
        super().__init__(settings)
        self.micro_batch = settings.micro_batch

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        """As `ImageGenerator.draw`; rejected are prompts that are too long, and what is plainly broken.

        Raises:
            OutOfMemory: a pass does not fit.
            BuildFailed: the model does not.
        """
        from twinset.models.diffusion.model import resized

        pipeline, settings = self.pipeline, self.settings
        refused = {prompt: self.unread("", prompt) for prompt in {one.prompt for one in requests}}
        drawn = self._drawn([one for one in requests if refused[one.prompt] is None])
        for one in requests:
            if (refusal := refused[one.prompt]) is not None:
                yield Rejected(one.key, refusal.reason, refusal.detail)
                continue
            pixels, finite = next(drawn)
            size, kept = pixels.shape[0], resized(pixels, settings.output_resolution, settings.resampling)
            how = {"resolution": size, "resampling": "none" if kept is pixels else settings.resampling}
            yield broken(one.key, pixels, finite) or Drawn(
                one.key, kept, {**pipeline.provenance(), **how}, sources=pipeline.files
            )

    def _drawn(self, requests: Sequence[Request]) -> Iterator[tuple[Pixels, bool]]:
        from twinset.models.device import within_memory

        side = self.settings.resolution
        for some in self._passes(requests):
            full = [*some, *[some[-1]] * (self.micro_batch - len(some))]
            prompts, seeds = [one.prompt for one in full], [one.seed for one in full]
            yield from within_memory(lambda: self.pipeline(prompts, seeds, height=side, width=side))[: len(some)]  # noqa: B023

    def _passes(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Requests that are drawn together."""
        alone, some = self.pipeline.found.row.alone, list[Request]()
        for one in requests:
            if some and (len(some) == self.micro_batch or (alone and one.prompt != some[-1].prompt)):
                yield some
                some = []
            some.append(one)
        if some:
            yield some
