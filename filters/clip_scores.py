"""Filters that score pairs by a CLIP model.

Opt-in: no paper asks for them, and a limit favours what one model of the kind that is tested takes for right. So pairs
are scored; dropping needs a setting of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Score, Verdict
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need, Place
from twinset.models.device import OnDevice
from twinset.models.encoders.contract import DualEncoder, Floats
from twinset.models.encoders.image_towers import InBuild, clip_files, open_clip_encoder
from twinset.models.files import ModelMissing, sha256_once


class ClipFilter(OnDevice, Filter):
    """A base of filters that judge each pair by the unit embeddings of its images and first captions.

    The last bits of a score depend on device, threads and micro-batch. A pass that is short of pairs is filled up, so
    that they do not depend on the other pairs.

    model: an id of the Hugging Face hub whose files are in the local cache, a folder (a path that is absolute or begins
    with ``.`` or ``~``) in the layout of transformers or of open_clip, or a name that an installed package brings.
    device, threads: as `OnDevice`. micro_batch: pairs a pass.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=1, ge=1, le=1024)

    version: ClassVar[int] = 2
    isolation = "process"  # torch's number of threads is its process's
    judges = "pairs"
    execution = (*OnDevice.execution, "micro_batch")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            with naming(f"{key}.model", ModelMissing):
                clip_files(self.model)

    def runs_on(self) -> str:
        return self.device_name(f"device of filter {self.kind}")

    def weights(self) -> dict[str, str]:
        """One digest of all files that decide the scores, read once a process; raises `ModelMissing`."""
        used = clip_files(self.model).paths
        return {"model": digest({path.name: sha256_once(path) for path in used})}

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Verdicts in the order of the pairs.

        Raises:
            WrongUse: a caption has more tokens than the model reads; its beginning alone would be scored. Or the model
                gives no number.
            OutOfMemory: a pass does not fit.
        """
        from twinset.models.device import inference, within_memory

        size, values = self.batch_size(), list[float]()
        with inference(self.threads):
            for start in range(0, len(pairs), size):
                batch = list(pairs[start : start + size])
                full = batch + batch[-1:] * (size - len(batch))
                values += within_memory(partial(self._pass, full))[: len(batch)]
        for pair, value in zip(pairs, values, strict=True):
            if not np.isfinite(value):
                raise WrongUse(
                    f"filter {self.kind}: the model {self.model} gives {value} for {pair.key}: its weights "
                    "are damaged or not meant for float32; name another model"
                )
        return [self.verdict(value) for value in values]

    @abstractmethod
    def measure(self, images: Floats, captions: Floats) -> NDArray[np.floating]:
        """One number a pair. images, captions: (pairs, 2, channels) unit embeddings."""

    @abstractmethod
    def verdict(self, value: float) -> Verdict:
        """What a pair's number means."""

    def _pass(self, pairs: Sequence[Pair]) -> list[float]:
        images = [Image.fromarray(frame.pixels) for pair in pairs for frame in (pair.image0, pair.image1)]
        captions = [caption for pair in pairs for caption in (pair.captions0[0], pair.captions1[0])]
        if over := self._clip.too_long(captions):
            raise WrongUse(
                f"filter {self.kind}: the model {self.model} reads only the beginning of the caption "
                f"{over[0]!r}; name another model, or leave the filter out"
            )
        features = self._clip.encode_images(images), self._clip.encode_texts(captions)
        return [float(value) for value in self.measure(*(each.reshape(len(pairs), 2, -1) for each in features))]

    @cached_property
    def _clip(self) -> DualEncoder:
        return open_clip_encoder(self.model, InBuild(self.device, self.batch_size(), self.threads))


REASON = "true-of-both"


class TrueOfBoth(ClipFilter):
    """Scores how much the captions of a pair prefer their own images, by a CLIP model.

    A pair whose captions are true of both images has no right answer. Natural pairs have them: Action Genome lacks
    relations, YouCook2 says one sentence of two steps.

    model, device, threads, micro_batch: as `ClipFilter`.
    drop_at_most: pairs of at most this ``preference``, a difference of cosines (-2 to 2), are dropped; without it none
    is. Of 0 or less: a caption does not prefer its own image.
    """

    kind: Literal["true-of-both"]
    drop_at_most: float | None = Field(default=None, ge=-2, le=2)

    scored: ClassVar[Mapping[str, str]] = {
        "preference": "how much nearer a caption is to its own image than to the other one, of the two captions the "
        "smaller, by CLIP (-2 to 2)"
    }
    reasons: ClassVar[Mapping[str, str]] = {
        REASON: "a CLIP model does not tell that a caption belongs to its own image rather than to the other one: it "
        "may be true of both"
    }

    def measure(self, images: Floats, captions: Floats) -> NDArray[np.floating]:
        """Preference of each pair: with unit embeddings e of captions and images, the smaller one of

        e(caption0) . (e(image0) - e(image1))  and  e(caption1) . (e(image1) - e(image0))
        """
        step = (images[:, 0] - images[:, 1])[:, None]
        preferences: NDArray[np.floating] = ((captions * step).sum(axis=2) * (1, -1)).min(axis=1)
        return preferences

    def verdict(self, value: float) -> Score | Drop:
        if self.drop_at_most is not None and value <= self.drop_at_most:
            return Drop(REASON, value)
        return Score("preference", value)
