"""What filters with a CLIP model share: its settings, its files, and unit embeddings of pairs, a pass at a time."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import small_clip_folder
from twinset.manifests.source import Need, Place
from twinset.models.device import OnDevice
from twinset.models.files import TOKENIZERS, ModelMissing, local_folder, missing_tokenizer, sha256_once
from twinset.models.loading import loading
from twinset.shards.contracts import Filter, Isolation, PairFilter
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Pixels, Verdict

if TYPE_CHECKING:
    from torch import Tensor

SMALL_CLIP = "small-clip"  # comes with twinset; it knows painted scenes alone
FILES = ("config.json", "model.safetensors", "preprocessor_config.json")
LONGER = 4  # times what a model reads, up to which the tokens of a caption are counted
OPEN_CLIP = ("open_clip_config.json", "open_clip_model.safetensors")


class ClipSettings(OnDevice, Filter):
    """A base of filters that judge pairs by a CLIP model.

    model: an id of the Hugging Face hub whose files are in the local cache, a folder (a path that is absolute or begins
    with ``.`` or ``~``) in the layout of transformers or of open_clip, or ``small-clip``, which comes with twinset and
    knows painted scenes alone. device, threads: as `OnDevice`. micro_batch: pairs a pass.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=1, ge=1, le=1024)

    judges = "pairs"
    execution = (*OnDevice.execution, "micro_batch")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Filter.check_inputs`: the files of the model."""
        if "models" in needs:
            try:
                clip_folder(self.model)
            except ModelMissing as error:
                raise WrongUse(f"{key}.model: {error}") from error


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
        """As `OnDevice.device_name`."""
        return self.settings.device_name(f"device of filter {self.kind}")

    def weights(self) -> dict[str, str]:
        """One digest of all files that decide the scores, read once a process; raises `ModelMissing`."""
        folder = clip_folder(self.settings.model)
        names = OPEN_CLIP if is_open_clip(folder) else FILES
        used = [folder / file for file in (*names, *TOKENIZERS) if (folder / file).is_file()]
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
            caption, tokens, reads = over
            raise WrongUse(
                f"filter {self.kind}: the caption {caption!r} has {tokens} tokens, the model {self.settings.model} "
                f"reads {reads}; name another model, or leave the filter out"
            )
        seen, said = self._clip.embed(images, captions)
        seen, said = (rows.reshape(len(pairs), 2, -1) for rows in (seen, said))
        return [float(value) for value in self.measure(seen, said)]

    @cached_property
    def _clip(self) -> _Clip | _OpenClip:
        folder = clip_folder(self.settings.model)
        return (_OpenClip if is_open_clip(folder) else _Clip)(folder, self.settings.device)


class _Clip:
    """A CLIP model of transformers, float32, from safetensors."""

    def __init__(self, folder: Path, device: str) -> None:
        from transformers import CLIPImageProcessor, CLIPModel, CLIPTokenizer

        from twinset.models.device import GPU

        options: dict[str, Any] = {"local_files_only": True}
        self.device = "cpu" if device == "cpu" else GPU
        self.processor = CLIPImageProcessor.from_pretrained(folder, **options)
        self.tokenizer = CLIPTokenizer.from_pretrained(folder, **options)
        model: Any = CLIPModel.from_pretrained(folder, use_safetensors=True, dtype="float32", **options)
        self.model = model.to(self.device).eval()
        self.reads = int(self.model.config.text_config.max_position_embeddings)

    def too_long(self, captions: Sequence[str]) -> tuple[str, int, int] | None:
        """The first caption that has more tokens than the model reads, with both numbers."""
        lengths = [len(ids) for ids in self.tokenizer(list(captions))["input_ids"]]
        return next(((one, n, self.reads) for one, n in zip(captions, lengths, strict=True) if n > self.reads), None)

    def embed(self, images: Sequence[Pixels], captions: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Unit embeddings of images and captions, a row each."""
        # Padded to what the model reads, whatever the other captions of the pass.
        said = self.tokenizer(list(captions), padding="max_length", max_length=self.reads, return_tensors="pt")
        seen = self.processor(images=list(images), return_tensors="pt")
        out = self.model(**seen.to(self.device), **said.to(self.device))
        return out.image_embeds, out.text_embeds


class _OpenClip:
    """A CLIP model of open_clip, float32, from safetensors."""

    def __init__(self, folder: Path, device: str) -> None:
        import open_clip  # type: ignore[import-untyped]

        from twinset.models.device import GPU

        name = f"local-dir:{folder}"
        self.device = "cpu" if device == "cpu" else GPU
        with loading(folder):
            model, self.transform = open_clip.create_model_from_pretrained(name, precision="fp32", device=self.device)
            self.tokens = open_clip.get_tokenizer(name)
        self.model = model.eval()
        self.reads = int(self.model.context_length)

    def too_long(self, captions: Sequence[str]) -> tuple[str, int, int] | None:
        """As `_Clip.too_long`."""
        room = LONGER * self.reads
        marks = set(self.tokens([""], room)[0].tolist())  # of begin and end, and what fills the rest
        for caption, row in zip(captions, self.tokens(list(captions), room).tolist(), strict=True):
            if (tokens := sum(token not in marks for token in row) + 2) > self.reads:
                return caption, tokens, self.reads
        return None

    def embed(self, images: Sequence[Pixels], captions: Sequence[str]) -> tuple[Tensor, Tensor]:
        """As `_Clip.embed`."""
        import torch
        from PIL import Image

        seen = torch.stack([self.transform(Image.fromarray(image)) for image in images]).to(self.device)
        said = self.tokens(list(captions), self.reads).to(self.device)
        return self.model.encode_image(seen, normalize=True), self.model.encode_text(said, normalize=True)


def is_open_clip(folder: Path) -> bool:
    """Whether a model is to be opened by open_clip: its files lie there, and those of transformers do not."""
    return (folder / OPEN_CLIP[0]).is_file() and not (folder / FILES[0]).is_file()


def clip_folder(name: str) -> Path:
    """The folder of a CLIP model by its name; `ModelMissing` where it, or a file of it, is absent."""
    layout = f"A CLIP model is a folder with {', '.join(FILES)} and tokenizer.json, or vocab.json and merges.txt"
    layout += f"; or, for open_clip, with {' and '.join(OPEN_CLIP)}"
    folder = small_clip_folder() if name == SMALL_CLIP else local_folder(name, layout)
    if is_open_clip(folder):
        missing = [file for file in OPEN_CLIP if not (folder / file).is_file()]
    else:
        missing = [file for file in FILES if not (folder / file).is_file()] + missing_tokenizer(folder)
    if missing:
        raise ModelMissing(f"the CLIP model {name} lacks {', '.join(missing)}: put them into {folder}. {layout}")
    return folder
