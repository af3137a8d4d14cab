"""The settings of EQ-SD, and what its card says (EqBen, section B.5 and Figure 15)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, generator_for, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Pixels, Rejected
from twinset.contracts.locations import is_model_folder
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place
from twinset.generators.licences import DerivingTerms
from twinset.generators.papers import EQBEN
from twinset.generators.prompt_to_prompt.vocabulary import (
    FIGURE_15,
    EditedCandidate,
    draw_edits,
    load_captions,
    vocabulary_file,
)
from twinset.generators.reasons import reasons_beside
from twinset.models.diffusion.folder import PipelineFolder
from twinset.models.diffusion.settings import DiffusionModel
from twinset.models.files import ModelFolder, brought_model
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import Media, MediaFolder

if TYPE_CHECKING:
    from twinset.generators.prompt_to_prompt.edits import Alignment
    from twinset.generators.prompt_to_prompt.pipeline import DrawnPair, PromptToPrompt

T = TypeVar("T")


def broken(image0: Pixels, image1: Pixels, finite: bool) -> str:
    """The reason why a pair cannot be used whatever its captions say, or "". Images are (height, width, 3).

    No limit is drawn that a good picture could fall short of: a picture is ``blank`` when all its pixels are equal, and
    a pair ``identical`` when no pixel differs.
    """
    if not finite:
        return "not-finite"
    if any((image == image[0, 0]).all() for image in (image0, image1)):
        return "blank"
    return "identical" if np.array_equal(image0, image1) else ""


class DrawnPairs(DerivingTerms, DiffusionModel, Source):
    """Settings of pairs that prompt-to-prompt draws: the second image of a pair under the attention of the first.

    model, unet, resolution, steps, precision: as `DiffusionModel`; device, threads: as `OnDevice`.
    guidance: scale of classifier-free guidance; at 1 or less there is none. scheduler: the sampler.
    micro_batch: pairs that are drawn at a time; halved for a shard when memory runs out.
    cross_replace_steps, self_replace_steps: share of the steps in which the edited image takes cross- and
    self-attention of the other one (`generators.prompt_to_prompt.edits.Edit`).
    licence: of what the model draws, copied into every sample and the card.
    """

    steps: int = Field(default=50, ge=1, le=1000)
    guidance: float = Field(default=7.5, ge=0, le=50)
    scheduler: Literal["ddim", "dpm-solver++"] = "ddim"
    cross_replace_steps: float = Field(default=0.8, ge=0, le=1)
    self_replace_steps: float = Field(default=0.4, ge=0, le=1)
    micro_batch: int = Field(default=4, ge=1, le=1024)
    licence: str

    execution = (*DiffusionModel.execution, "micro_batch")
    reference = Reference(
        "prompt-to-prompt", "https://arxiv.org/abs/2208.01626", bibtex("hertz2023prompt", "rombach2022high")
    )
    group = "drawing"
    verb = "drawn with"
    synthetic = True
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "stable-diffusion")

    @property
    def brought_model(self) -> ModelFolder | None:
        """The model that a package brings, where it is one."""
        return brought_model(self.model)

    @property
    def whose_captions(self) -> str:
        """Where the captions come from, for the card."""
        raise NotImplementedError

    def media_files(self) -> Media | None:
        """The model's files; None where the hub's cache holds them, under names that are their digests, or another
        folder the UNet.
        """
        if self.unet is not None:
            return None
        if (brought := self.brought_model) is not None:
            return MediaFolder(brought.folder)
        return MediaFolder(Path(self.model)) if is_model_folder(self.model) else None

    def found(self) -> PipelineFolder:
        """As `DiffusionModel.found`; raises `WrongUse` too where the model has no UNet."""
        folder = super().found()
        if folder.denoiser != "unet":
            raise WrongUse(
                f"{self.model}: prompt-to-prompt works on Stable Diffusion and SDXL; {folder.name} has no UNet"
            )
        return folder

    # Torch's number of threads is its process's, and attention processors are their network's, of one call at a time.
    isolation = "process"
    candidate = EditedCandidate
    # Torch, diffusers and transformers belong to the runtime class: GPU workers have other builds, and planners none.
    libraries = ("numpy",)

    def weights(self) -> dict[str, str]:
        """Digests of the models' files; raises `WrongUse` naming those that are not on this machine."""
        return {"model": self.found().digest()}

    def runs_on(self) -> str:
        return self.device_name("source.device")

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Drawn pairs, a micro-batch at a time, or why a pair is broken: ``caption-unfit`` for captions that the model
        cannot read, and the reasons of `broken`.

        Raises `contracts.parts.OutOfMemory` when a micro-batch does not fit, `BuildFailed` when the model does not.
        """
        planned, size = cast(Sequence[EditedCandidate], candidates), self.batch_size()
        for start in range(0, len(planned), size):
            yield from self._drawn(planned[start : start + size], size)

    def _drawn(self, batch: Sequence[EditedCandidate], size: int) -> list[Pair | Rejected]:
        """All of a batch, in one pass of ``size`` pairs."""
        import torch

        from twinset.generators.prompt_to_prompt.edits import Edit, EditError
        from twinset.models.device import within_memory

        aligned: list[tuple[EditedCandidate, Alignment]] = []
        results: dict[str, Pair | Rejected] = {}
        for candidate in batch:
            try:
                edit = Edit(
                    captions=_in_order(candidate.captions0[0], candidate.captions1[0], candidate.plain),
                    cross_replace_steps=self.cross_replace_steps,
                    self_replace_steps=self.self_replace_steps,
                )
                aligned.append((candidate, self._model.align(edit)))
            except EditError as error:
                results[candidate.key] = Rejected(candidate.key, "caption-unfit", str(error))
        if aligned:
            # The last bits of a pair depend on how many are drawn with it: a short pass is filled up, so that neither
            # captions that do not fit nor a larger count change the others' bytes.
            full = aligned + aligned[-1:] * (size - len(aligned))
            noise = torch.from_numpy(np.stack([self._noise(candidate) for candidate, _ in full]))
            alignments = [alignment for _, alignment in full]
            drawn = within_memory(lambda: self._model(alignments, noise))
            for (candidate, alignment), pair in zip(aligned, drawn, strict=False):
                results[candidate.key] = self._judged(candidate, alignment, pair)
        return [results[candidate.key] for candidate in batch]

    def _noise(self, candidate: EditedCandidate) -> NDArray[np.float32]:
        """Of both images of a pair, from the sample's key, on the CPU, so that machines begin alike."""
        random = generator_for(self.stage.seed, self.stage.name, candidate.key)
        return random.standard_normal(self._latents, dtype=np.float32)

    def _judged(self, candidate: EditedCandidate, alignment: Alignment, drawn: DrawnPair) -> Pair | Rejected:
        image0, image1 = _in_order(*drawn.images, candidate.plain)
        if reason := broken(image0, image1, drawn.finite):
            return Rejected(candidate.key, reason)
        unet, *other_files = self._model.opened.files
        return Pair(
            **candidate.placed,
            change=candidate.change,
            image0=Frame(f"{candidate.key}#0", image0, -1.0, unet),
            image1=Frame(f"{candidate.key}#1", image1, -1.0, unet),
            provenance=self._provenance(candidate, alignment.kind),
            sources=tuple(other_files),
        )

    def _provenance(self, candidate: EditedCandidate, alignment: str) -> dict[str, Json]:
        settings = ("scheduler", "steps", "guidance", "cross_replace_steps", "self_replace_steps")
        return {
            **self.names,
            "weights": self._model.opened.digest,
            **{name: getattr(self, name) for name in settings},
            "alignment": alignment,
            "plain": candidate.plain,
            "words0": candidate.words0,
            "words1": candidate.words1,
            "seed": self.stage.seed,
        }

    @cached_property
    def _model(self) -> PromptToPrompt:
        # Torch is heavy: a plan does without it.
        from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt
        from twinset.models.device import load_within_memory
        from twinset.models.diffusion.pipeline import OpenPipeline

        return load_within_memory(f"{self.model} of {self.stage.name}", lambda: PromptToPrompt(OpenPipeline(self)))

    @property
    def _latents(self) -> tuple[int, int, int]:
        """Shape of the noise of an image."""
        opened = self._model.opened
        side = (self.resolution or opened.side) // opened.pipeline.vae_scale_factor
        return opened.denoiser.config.in_channels, side, side


def _in_order(first: T, second: T, plain: int) -> tuple[T, T]:
    """From image 0 and image 1 to the plain image and the edited one, or back."""
    return (second, first) if plain else (first, second)


class StableDiffusion(DrawnPairs):
    """Pairs of captions of a vocabulary, drawn with a text-to-image model (EqBen's EQ-SD, section B.5).

    model, unet, resolution, precision: as `DiffusionModel`; device, threads: as `OnDevice`. steps, guidance, scheduler,
    cross_replace_steps, self_replace_steps, micro_batch, licence: as `DrawnPairs`.
    vocabulary: of captions: ``figure-15`` (the paper's), a name that a package brings with its model, or the path of a
    YAML file in the form of ``manifests/vocabularies/eq_sd.yaml``.
    """

    kind: Literal["stable-diffusion"]
    vocabulary: Annotated[str, Place("words", "annotations")] = Field(default=FIGURE_15, min_length=1)

    paper = EQBEN
    unbounded = True

    @model_validator(mode="after")
    def _model_knows_the_words(self) -> StableDiffusion:
        # One that knows few words would draw something else for others.
        brought = self.brought_model
        known = brought.vocabularies if brought is not None else {}
        if known and self.vocabulary not in known and not is_model_folder(self.vocabulary):
            raise ValueError(
                f"{self.model} knows only the words of vocabulary {' or '.join(known)}; leave vocabulary out"
            )
        return self

    @property
    def whose_captions(self) -> str:
        if is_model_folder(self.vocabulary):
            return "those of a file"
        return "the paper's (Figure 15)" if self.vocabulary == FIGURE_15 else f"words of {self.vocabulary}"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "annotations" in needs:
            with naming(f"{key}.vocabulary"):
                load_captions(vocabulary_file(self.vocabulary))
        super().check_inputs(key, needs)

    version = 6

    def inputs(self) -> str:
        return digest([sha256_of_file(vocabulary_file(self.vocabulary))[0]])

    def plan(self) -> Iterator[EditedCandidate]:
        """Pairs without end; how many are taken does not change the first ones."""
        for drawn in draw_edits(load_captions(vocabulary_file(self.vocabulary)), self.stage.seed, self.stage.name):
            yield EditedCandidate(
                **self.identified(drawn.index, group=f"drawing-{drawn.index:06d}"),
                captions0=(drawn.captions[0],),
                captions1=(drawn.captions[1],),
                change=drawn.kind,
                words0=drawn.words[0],
                words1=drawn.words[1],
                plain=drawn.plain,
            )
