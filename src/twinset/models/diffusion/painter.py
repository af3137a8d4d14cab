"""Draws images of prompts with a latent diffusion model, which is loaded once a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from twinset.contracts.kinds.samples import Json, MediaFile, Pixels, Rejected
from twinset.contracts.locations import is_model_folder
from twinset.models.diffusion.model_files import model_digest
from twinset.models.diffusion.settings import DiffusionImages
from twinset.models.image_engine import Drawn, ImageGenerator, Request

if TYPE_CHECKING:
    import torch

    from twinset.models.diffusion.model import Model
    from twinset.models.diffusion.text import Text

T = TypeVar("T")


class DiffusionPainter(ImageGenerator):
    """Images in micro-batches. While one is decoded, resized and encoded, the next is denoised in a thread.

    Noise comes from a request's seed, on the CPU, so that machines begin alike. The last bits of an image depend on how
    many are drawn with it: a short pass is filled up, so that every pass has the same size.
    """

    version = 1
    # Torch's number of threads is its process's, and attention processors are their network's, of one call at a time.
    isolation = "process"
    # Torch, diffusers and transformers belong to the runtime class: GPU workers have other builds, and planners none.
    libraries = ("numpy",)

    def __init__(self, settings: DiffusionImages) -> None:
        self.settings = settings
        self.micro_batch = settings.micro_batch
        self.threads = settings.threads
        self._loaded: list[Model] = []  # none or one, shared with those of another micro-batch

    def weights(self) -> Mapping[str, str]:
        """Digest of the model's files; raises `WrongUse` naming those that are not on this machine."""
        return {"model": model_digest(self.settings.model, self.settings.unet)}

    def device(self) -> str:
        return self.settings.device_name("source.engine.device")

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        """As `ImageGenerator.draw`; rejected are prompts that are too long, and what is plainly broken.

        Raises:
            OutOfMemory: a pass does not fit.
            BuildFailed: the model does not.
        """
        texts = self._texts(requests)
        fit = [one for one in requests if self.settings.cut or not texts[one.prompt].cut]
        drawn = self._drawn(fit, texts)
        for one in requests:
            if texts[one.prompt].cut and not self.settings.cut:
                yield Rejected(one.key, "prompt-too-long", f"{texts[one.prompt].cut} tokens more than the model reads")
                continue
            pixels, finite = next(drawn)
            if not finite or (pixels == pixels[0, 0]).all():
                yield Rejected(one.key, "blank" if finite else "not-finite")
            else:
                yield Drawn(one.key, pixels, self._provenance(texts[one.prompt]), sources=self.files)

    @property
    def files(self) -> tuple[MediaFile, ...]:
        """The weights that draw."""
        return self._model.files

    def _texts(self, requests: Sequence[Request]) -> dict[str, Text]:
        from twinset.models.device import within_memory

        prompts = dict.fromkeys(one.prompt for one in requests)
        return within_memory(lambda: {prompt: self._model.encode(prompt) for prompt in prompts})

    def _drawn(self, requests: Sequence[Request], texts: Mapping[str, Text]) -> Iterator[tuple[Pixels, bool]]:
        """Pixels of each request, and whether all numbers were finite."""
        from twinset.models.device import within_memory

        size, stopped = self.micro_batch, Event()
        passes = [requests[start : start + size] for start in range(0, len(requests), size)]

        def latents(batch: Sequence[Request]) -> torch.Tensor:
            full = [*batch, *[batch[-1]] * (size - len(batch))]
            noise = np.stack([self._noise(one) for one in full])
            return within_memory(lambda: self._model.denoise(noise, [texts[one.prompt] for one in full], stopped))

        with ThreadPoolExecutor(1, "denoising") as thread:
            try:
                for batch, found in zip(passes, _one_ahead(thread, latents, passes), strict=True):
                    for one in found[: len(batch)]:
                        yield within_memory(partial(self._model.decode, one))
            finally:
                stopped.set()

    def _noise(self, request: Request) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        random = np.random.Generator(np.random.PCG64(request.seed))
        return random.standard_normal(self._model.latents, dtype=np.float32)

    def _provenance(self, text: Text) -> dict[str, Json]:
        settings, model = self.settings, self._model
        return {
            "engine": settings.kind,
            # Where a folder lies is no part of what is made.
            "model": "a folder" if is_model_folder(settings.model) else settings.model,
            "unet": "" if settings.unet is None else "a folder" if is_model_folder(settings.unet) else settings.unet,
            "weights": model.digest,
            "scheduler": model.scheduler,
            "steps": settings.steps,
            "guidance": settings.guidance,
            "precision": model.precision,
            "compiled": settings.compiled,
            "resolution": model.resolution,
            "resampling": settings.resampling if model.resizes else "none",
            "tokens_cut": text.cut,
        }

    @property
    def _model(self) -> Model:
        if not self._loaded:
            # Torch is heavy: a plan does without it.
            from twinset.models.device import load_within_memory
            from twinset.models.diffusion.model import Model

            self._loaded.append(load_within_memory(self.settings.model, lambda: Model(self.settings)))
        return self._loaded[0]


def _one_ahead(
    thread: ThreadPoolExecutor, work: Callable[[Sequence[Request]], T], passes: Sequence[Sequence[Request]]
) -> Iterator[T]:
    """What ``work`` gives for each pass; when one is given, the next is begun."""
    ahead: list[Future[T]] = [thread.submit(work, passes[0])] if passes else []
    for number in range(len(passes)):
        found = ahead.pop().result()
        if number + 1 < len(passes):
            ahead.append(thread.submit(work, passes[number + 1]))
        yield found
