"""CLIP's directional similarity (Gal et al. 2021, arXiv 2108.00946): do the images change as their captions do?

Opt-in, and it rejects nothing: a limit would favour what one model of the kind that is tested takes for right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.source import Need, Place
from shards.contracts import Filter, Isolation, PairFilter
from shards.kinds.pair import Pair
from shards.kinds.samples import Score
from shards.models.files import TOKENIZERS, ModelMissing, local_folder, missing_tokenizer, sha256_once
from shards.models.on_device import OnDevice

FILES = ("config.json", "model.safetensors", "preprocessor_config.json")
#: Unit embeddings of equal inputs can be this far apart, by their places in a batch: such a step has no direction.
ROUNDING = 1e-5


class DirectionalSimilarity(OnDevice, Filter):
    """Scores how well the change of the images follows that of the captions, by a CLIP model; drops nothing.

    model: an id of the Hugging Face hub whose files are in the local cache, or a folder: a path that is absolute or
    begins with ``.`` or ``~``. device, threads: as `OnDevice`. micro_batch: pairs a pass.
    """

    kind: Literal["directional-similarity"]
    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=1, ge=1, le=1024)

    judges = "pairs"
    execution = (*OnDevice.execution, "micro_batch")

    def open(self) -> DirectionalSimilarityFilter:
        """As `shards.contracts.Filter.open`."""
        return DirectionalSimilarityFilter(self)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Filter.check_inputs`: the files of the model."""
        if "models" in needs:
            try:
                clip_folder(self.model)
            except ModelMissing as error:
                raise WrongUse(f"{key}.model: {error}") from error


class DirectionalSimilarityFilter(PairFilter):
    """Scores every pair as ``direction`` and drops none.

    The last bits of a score depend on device, threads and micro-batch. A pass that is short of pairs is filled up, so
    that they do not depend on the other pairs.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()  # torch and transformers belong to the runtime class
    isolation: ClassVar[Isolation] = "process"  # torch's number of threads is its process's

    def __init__(self, settings: DirectionalSimilarity) -> None:
        self.settings = settings
        self.threads, self.micro_batch = settings.threads, settings.micro_batch

    def device(self) -> str:
        """As `OnDevice.device_name`."""
        return self.settings.device_name("device of filter directional-similarity")

    def weights(self) -> dict[str, str]:
        """One digest of all files that decide the scores, read once a process; raises `ModelMissing`."""
        folder = clip_folder(self.settings.model)
        used = [folder / file for file in (*FILES, *TOKENIZERS) if (folder / file).is_file()]
        return {"model": digest({path.name: sha256_once(path) for path in used})}

    def __call__(self, samples: Sequence[Pair]) -> list[Score]:
        """Scores in the order of the pairs.

        Raises:
            WrongUse: a caption has more tokens than the model reads; its beginning alone would be scored.
            OutOfMemory: a pass does not fit.
        """
        from shards.models.device import inference, within_memory

        size, values = self.settings.micro_batch, list[float]()
        with inference(self.threads):
            for start in range(0, len(samples), size):
                some = list(samples[start : start + size])
                full = some + some[-1:] * (size - len(some))
                values += within_memory(partial(self._directions, full))[: len(some)]
        return [Score("direction", value) for value in values]

    def _directions(self, pairs: Sequence[Pair]) -> list[float]:
        return self._clip.directions(pairs)

    @cached_property
    def _clip(self) -> _Clip:
        return _Clip(self.settings)


class _Clip:
    """A loaded CLIP model, float32, from safetensors."""

    def __init__(self, settings: DirectionalSimilarity) -> None:
        from transformers import CLIPImageProcessor, CLIPModel, CLIPTokenizer

        from shards.models.device import GPU

        folder: Path = clip_folder(settings.model)
        options: dict[str, Any] = {"local_files_only": True}
        self.name = settings.model
        self.device = "cpu" if settings.device == "cpu" else GPU
        self.processor = CLIPImageProcessor.from_pretrained(folder, **options)
        self.tokenizer = CLIPTokenizer.from_pretrained(folder, **options)
        model: Any = CLIPModel.from_pretrained(folder, use_safetensors=True, dtype="float32", **options)
        self.model = model.to(self.device).eval()

    def directions(self, pairs: Sequence[Pair]) -> list[float]:
        """Directional similarity of each pair: with unit embeddings e,

            direction = cos(e(image1) - e(image0), e(caption1) - e(caption0))

        1 where the images change as the captions do; 0 where neither has to do with the other, or nothing changes.
        """
        import torch

        images = [np.asarray(frame.pixels) for pair in pairs for frame in (pair.image0, pair.image1)]
        captions = [caption for pair in pairs for caption in (pair.captions0[0], pair.captions1[0])]
        seen = self.processor(images=images, return_tensors="pt").to(self.device)
        out = self.model(**seen, **self._tokens(captions).to(self.device))
        # (2, pairs, channels): the step of the images and that of the captions
        steps = torch.stack([embeds[1::2] - embeds[0::2] for embeds in (out.image_embeds, out.text_embeds)])
        cosines = torch.nn.functional.cosine_similarity(steps[0], steps[1], dim=1)
        still = (steps.norm(dim=2) < ROUNDING).any(dim=0)
        return [float(value) for value in torch.where(still, 0.0, cosines)]

    def _tokens(self, captions: list[str]) -> Any:
        read = self.model.config.text_config.max_position_embeddings
        # Padded to what the model reads, whatever the other captions of the pass.
        said = self.tokenizer(captions, padding="max_length", max_length=read, return_tensors=None)
        for caption, ids in zip(captions, said["input_ids"], strict=True):
            if len(ids) > read:
                raise WrongUse(
                    f"filter directional-similarity: the caption {caption!r} has {len(ids)} tokens, the model "
                    f"{self.name} reads {read}; name another model, or leave the filter out"
                )
        return said.convert_to_tensors("pt")


def clip_folder(name: str) -> Path:
    """The folder of a CLIP model by its path or its hub id; `ModelMissing` where it, or a file of it, is absent."""
    layout = f"A CLIP model is a folder with {', '.join(FILES)} and tokenizer.json, or vocab.json and merges.txt"
    folder = local_folder(name, layout)
    missing = [file for file in FILES if not (folder / file).is_file()] + missing_tokenizer(folder)
    if missing:
        raise ModelMissing(f"the CLIP model {name} lacks {', '.join(missing)}: put them into {folder}. {layout}")
    return folder
