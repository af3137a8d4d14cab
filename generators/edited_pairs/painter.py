"""Draws micro-batches of edited pairs with a text-to-image model; models are loaded once a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels
from twinset.generators.edited_pairs.source import DrawnPairs
from twinset.generators.edited_pairs.vocabulary import EditedCandidate
from twinset.generators.prompt_to_prompt.alignment import Edit, EditError
from twinset.generators.prompt_to_prompt.pipeline import load_model
from twinset.models.device import GPU, load_within_memory, round_alike, within_memory
from twinset.models.diffusion.model_files import model_digest, weight_files
from twinset.models.diffusion.models import be_quiet

if TYPE_CHECKING:
    from twinset.generators.prompt_to_prompt.pipeline import PromptToPromptPipeline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Painted:
    """A pair as drawn.

    images: of caption 0 and caption 1, (height, width, 3). finite: False where the network's numbers were not.
    region: (height, width), where the edited thing is; everywhere where the whole picture changes. alignment: how the
    captions' words were matched.
    """

    images: tuple[Pixels, Pixels]
    finite: bool
    region: NDArray[np.bool_]
    alignment: str


class Painter:
    """A loaded model.

    files: the weights that draw, the UNet's first, by their paths in the model's folder. digest: of all that it draws
    with.
    """

    def __init__(self, name: str, source: DrawnPairs, seed: int) -> None:
        be_quiet()
        round_alike(source.threads)
        self._name, self._source, self._seed = name, source, seed
        self._pipeline = load_within_memory(f"{source.model} of {name}", self._load)
        self._shape = self._latents()
        self.files, self.digest = weight_files(source.model), model_digest(source.model)

    def _load(self) -> PromptToPromptPipeline:
        source = self._source
        device = "cpu" if source.device == "cpu" else GPU
        dtype = None if source.precision == "auto" else getattr(torch, source.precision)
        return load_model(source.model, device, dtype, source.scheduler)

    def paint(self, candidates: Sequence[EditedCandidate], size: int) -> list[Painted | str]:
        """One result a candidate: what was drawn, or why its captions do not fit the model.

        All are drawn in one pass of ``size`` pairs; raises `OutOfMemory` when that needs more memory than there is.
        """
        fit: dict[str, tuple[Edit, str]] = {}
        results: dict[str, Painted | str] = {}
        for one in candidates:
            try:
                edit = self._edit(one)
                fit[one.key] = edit, self._pipeline.align(edit).kind
            except EditError as error:
                results[one.key] = str(error)
        chosen = [one for one in candidates if one.key in fit]
        if chosen:
            # The last bits of a pair depend on how many are drawn with it: a short pass is filled up, so that neither
            # captions that do not fit nor a larger count change the others' bytes.
            full = chosen + chosen[-1:] * (size - len(chosen))
            # The noise of both images of a pair comes from the sample's key, on the CPU, so that machines begin alike.
            random = [generator_for(self._seed, self._name, one.key) for one in full]
            noise = torch.from_numpy(np.stack([one.standard_normal(self._shape, dtype=np.float32) for one in random]))
            edits, source = [fit[one.key][0] for one in full], self._source
            made = within_memory(lambda: self._pipeline(edits, noise, steps=source.steps, guidance=source.guidance))
            for number, one in enumerate(chosen):
                plain, edited = made.images[number]
                results[one.key] = Painted(
                    _in_order(plain, edited, one.plain),
                    bool(made.finite[number]),
                    np.ones(plain.shape[:2], np.bool_) if made.masks is None else made.masks[number],
                    fit[one.key][1],
                )
        return [results[one.key] for one in candidates]

    def _edit(self, candidate: EditedCandidate) -> Edit:
        region = _in_order(candidate.region0, candidate.region1, candidate.plain) if candidate.region0 else None
        return Edit(
            captions=_in_order(candidate.captions0[0], candidate.captions1[0], candidate.plain),
            cross_replace_steps=self._source.cross_replace_steps,
            self_replace_steps=self._source.self_replace_steps,
            blend=region if self._source.blend else None,
            region=region,
        )

    def _latents(self) -> tuple[int, int, int]:
        unet, vae = self._pipeline.unet.config, self._pipeline.vae.config
        scale = 2 ** (len(vae.block_out_channels) - 1)
        side = unet.sample_size if self._source.resolution is None else self._source.resolution // scale
        if side * scale != (self._source.resolution or side * scale):
            raise WrongUse(f"{self._name}: source.resolution must be a multiple of {scale} for {self._source.model}")
        timesteps = self._pipeline.scheduler.config.num_train_timesteps
        if self._source.steps > timesteps:
            raise WrongUse(f"{self._name}: source.steps must be at most {timesteps} for {self._source.model}")
        return unet.in_channels, side, side


def _in_order(first: T, second: T, plain: int) -> tuple[T, T]:
    """From image 0 and image 1 to the plain image and the edited one, or back."""
    return (second, first) if plain else (first, second)
