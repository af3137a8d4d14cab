"""The fusion encoder of a run, opened as evaluation opens it, and the files with which evaluation opens it again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Running
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.models.encoders.transformers_encoders import LAYOUT
from twinset.models.files import ModelFiles, find_model
from twinset.shards.storage.whole_file import whole_file
from twinset.training.fusion.settings import JOINT, FusionSettings

PASS = 32  # images or pairs of a pass without gradients, as `twinset eval run` has it by default
#: The name under which transformers and `evaluation` look for the weights of a folder.
PUBLISHED = "model.safetensors"
#: Parts of the names of the parameters in heads and cross-modal layers. ViLT's layers are all cross-modal: its head.
CROSS_MODAL = {
    "blip": ("crossattention", "itm_head", "vision_proj", "text_proj"),
    "vilt": ("rank_output",),
    "flava": ("flava.multimodal_model", "_to_mm_projection", "itm_head"),
}


@dataclass(frozen=True, slots=True)
class Start:
    """A model before its first step.

    kind: as ``--model`` has it. files: of its folder. encoder: by whose features images are similar; None: its own.
    resized: whether it reads images of another size than its files say.
    """

    scorer: FusionScorer
    kind: str
    files: ModelFiles
    encoder: DualEncoder | None
    resized: bool = False

    def identity(self) -> dict[str, Any]:
        """What decides weights at the first step and neighbours, as JSON."""
        encoder = self.encoder.digest() if self.encoder else "its own image tower"
        return {"kind": self.kind, "files": self.files.digest(), "neighbours_by": encoder}

    def faster(self) -> Sequence[str]:
        """Parts of the names of the parameters in heads and cross-modal layers."""
        return CROSS_MODAL[self.scorer.types[0]]

    def read(self, pixels: dict[str, Tensor], texts: Sequence[str]) -> Shown:
        """Some images and texts; all that no text changes is computed once an image."""
        tokens = self.scorer.tokens(texts, max(self.scorer.lengths(texts)))
        return Shown(self.scorer, self.scorer.see(pixels), tokens)

    def write_files(self, out: Path) -> None:
        """Copy tokenizer, configuration and image processor to beside the weights; the last two with the size of
        images, where it was set.
        """
        for path in self.files.paths:
            if path.suffix in (".json", ".txt", ".model") and not path.name.endswith(".index.json"):
                with whole_file(out / path.name) as beside:
                    shutil.copyfile(path, beside)
        if self.resized:
            self.scorer.model.config.save_pretrained(out)
            self.scorer.processor.save_pretrained(out)


@dataclass(frozen=True, slots=True)
class Shown:
    """Images and texts of a part. seen, tokens: as the scorer has them, a row each."""

    scorer: FusionScorer
    seen: dict[str, Tensor]
    tokens: dict[str, Tensor]

    def score(self, images: Tensor, texts: Tensor) -> Tensor:
        """What the matching head gives of image and text of these places, (n,)."""
        images, texts = images.to(self.scorer.device), texts.to(self.scorer.device)
        return self.scorer.match(_taken(self.seen, images), _taken(self.tokens, texts))

    def features(self) -> tuple[Tensor, Tensor]:
        """Of all images and all texts, as `FusionScorer.contrasted`."""
        return self.scorer.contrasted(self.seen, self.tokens)


def open_start(settings: FusionSettings) -> Start:
    """The models that settings name. Raises `WrongUse`: there are no such models, or they are of other kinds."""
    running = Running(settings.device, PASS, settings.threads)
    scorer = open_model(settings.model, running)
    if not isinstance(scorer, FusionScorer) or scorer.types[0] not in CROSS_MODAL:
        raise WrongUse(
            f"model: {settings.model} is not trained by its matching head; name blip-itm:, vilt: or flava: and a folder"
        )
    if settings.objective == JOINT and type(scorer).contrasted is FusionScorer.contrasted:
        raise WrongUse(f"objective: {settings.model} has no contrastive head, which {JOINT} trains; name blip-itm:")
    if settings.image_size is not None:
        scorer.resize(settings.image_size)
    encoder = open_model(settings.neighbours_by, running) if settings.neighbours_by else None
    if encoder is not None and not isinstance(encoder, DualEncoder):
        raise WrongUse(f"neighbours_by: {settings.neighbours_by} does not encode images; name open_clip:NAME:TAG")
    kind, _, folder = settings.model.partition(":")
    return Start(scorer, kind, find_model(folder, LAYOUT), encoder, settings.image_size is not None)


def _taken(rows: dict[str, Tensor], places: Tensor) -> dict[str, Tensor]:
    return {name: value[places] for name, value in rows.items()}
