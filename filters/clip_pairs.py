"""What filters with a CLIP model share: its settings, its files, and unit embeddings of pairs, a pass at a time."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from PIL import Image
from pydantic import Field

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Verdict
from twinset.contracts.parts import Filter, Isolation, PairFilter
from twinset.contracts.source import Need, Place
from twinset.models.device import OnDevice
from twinset.models.encoders.contract import DualEncoder, Floats
from twinset.models.encoders.image_towers import InBuild, clip_files, is_open_clip
from twinset.models.encoders.open_clip_models import OpenClip, open_open_clip
from twinset.models.encoders.transformers_encoders import ClipEncoder
from twinset.models.files import ModelMissing, sha256_once

if TYPE_CHECKING:
    from torch import Tensor


class ClipSettings(OnDevice, Filter):
    """A base of filters that judge pairs by a CLIP model.

    model: an id of the Hugging Face hub whose files are in the local cache, a folder (a path that is absolute or begins
    with ``.`` or ``~``) in the layout of transformers or of open_clip, or a name that an installed package brings.
    device, threads: as `OnDevice`. micro_batch: pairs a pass.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=1, ge=1, le=1024)

    judges = "pairs"
    execution = (*OnDevice.execution, "micro_batch")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            with naming(f"{key}.model", ModelMissing):
                clip_files(self.model)


class ClipFilter(PairFilter):
    """A base of filters that judge each pair by the unit embeddings of its images and first captions.

    The last bits of a score depend on device, threads and micro-batch. A pass that is short of pairs is filled up, so
    that they do not depend on the other pairs.
    """

    libraries: ClassVar[tuple[str, ...]] = ()  # torch, transformers and open_clip belong to the runtime class
    isolation: ClassVar[Isolation] = "process"  # torch's number of threads is its process's

    def __init__(self, settings: ClipSettings, kind: str) -> None:
        self.settings, self.kind = settings, kind
        self.threads, self.micro_batch = settings.threads, settings.micro_batch

    def device(self) -> str:
        return self.settings.device_name(f"device of filter {self.kind}")

    def weights(self) -> dict[str, str]:
        """One digest of all files that decide the scores, read once a process; raises `ModelMissing`."""
        used = clip_files(self.settings.model).paths
        return {"model": digest({path.name: sha256_once(path) for path in used})}

    def __call__(self, samples: Sequence[Pair]) -> list[Verdict]:
        """Verdicts in the order of the pairs.

        Raises:
            WrongUse: a caption has more tokens than the model reads; its beginning alone would be scored. Or the model
                gives no number.
            OutOfMemory: a pass does not fit.
        """
        from twinset.models.device import inference, within_memory

        size, values = self.settings.micro_batch, list[float]()
        with inference(self.threads):
            for start in range(0, len(samples), size):
                some = list(samples[start : start + size])
                full = some + some[-1:] * (size - len(some))
                values += within_memory(partial(self._pass, full))[: len(some)]
        for sample, value in zip(samples, values, strict=True):
            if not math.isfinite(value):
                raise WrongUse(
                    f"filter {self.kind}: the model {self.settings.model} gives {value} for {sample.key}: its weights "
                    "are damaged or not meant for float32; name another model"
                )
        return [self.verdict(value) for value in values]

    @abstractmethod
    def measure(self, images: Tensor, captions: Tensor) -> Tensor:
        """One number a pair. images, captions: (pairs, 2, channels) unit embeddings."""

    @abstractmethod
    def verdict(self, value: float) -> Verdict:
        """What a pair's number means."""

    def _pass(self, pairs: Sequence[Pair]) -> list[float]:
        images = [np.asarray(frame.pixels) for pair in pairs for frame in (pair.image0, pair.image1)]
        captions = [caption for pair in pairs for caption in (pair.captions0[0], pair.captions1[0])]
        if over := self._clip.too_long(captions):
            raise WrongUse(
                f"filter {self.kind}: the model {self.settings.model} reads only the beginning of the caption "
                f"{over[0]!r}; name another model, or leave the filter out"
            )
        seen = self._clip.image_features([self._clip.prepare(Image.fromarray(image)) for image in images])
        said = self._clip.text_features(captions)
        both = (self._unit(features).reshape(len(pairs), 2, -1) for features in (seen, said))
        return [float(value) for value in self.measure(*both)]

    def _unit(self, features: Floats) -> Tensor:
        """Features divided by their norm, to the last bit as the library of the model divides them."""
        import torch

        rows = torch.from_numpy(features)
        if isinstance(self._clip, OpenClip):
            return torch.nn.functional.normalize(rows, dim=-1)
        return rows / rows.pow(2).sum(dim=-1, keepdim=True).pow(0.5)

    @cached_property
    def _clip(self) -> DualEncoder:
        settings, folder = self.settings, clip_files(self.settings.model).folder
        running, parts = InBuild(settings.device, settings.micro_batch, settings.threads), [str(folder)]
        if is_open_clip(folder):
            return open_open_clip(settings.model, parts, running)
        return _ClipEncoder(settings.model, parts, running)


class _ClipEncoder(ClipEncoder):
    """With the library's own choice of an image processor, which the filters' scores were made with."""

    images = None
