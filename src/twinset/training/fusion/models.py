"""The fusion encoder of a run, opened as evaluation opens it, and the files with which evaluation opens it again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Running
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.models.encoders.transformers_encoders import LAYOUT
from twinset.models.files import ModelFiles, find_model
from twinset.shards.storage.whole_file import whole_file
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.mining import Score

PASS = 32  # images or pairs of a pass without gradients, as `twinset eval run` has it by default
#: Parts of the names of the parameters in heads and cross-modal layers. ViLT's layers are all cross-modal: its head.
CROSS_MODAL = {
    "blip": ("crossattention", "itm_head", "vision_proj", "text_proj"),
    "vilt": ("rank_output",),
    "flava": ("flava.multimodal_model", "_to_mm_projection", "itm_head"),
}


@dataclass(frozen=True, slots=True)
class Start:
    """A model before its first step.

    kind: as ``--model`` has it. files: of its folder. resized: whether it reads images of another size than these say.
    """

    kind: str
    scorer: FusionScorer
    files: ModelFiles
    resized: bool

    @property
    def faster(self) -> Sequence[str]:
        """Parts of the names of the parameters in heads and cross-modal layers."""
        return CROSS_MODAL[self.scorer.types[0]]

    def digests(self) -> dict[str, str]:
        """What decides the weights at the first step."""
        return {"model": f"{self.kind}:{self.files.digest()}"}

    def read(self, pixels: dict[str, Tensor], texts: Sequence[str]) -> Score:
        """The matching head on these images and texts, by their places; what no text changes is computed once."""
        seen, tokens = self.scorer.see(pixels), self.scorer.tokens(texts, max(self.scorer.lengths(texts)))

        def score(images: Tensor, of_texts: Tensor) -> Tensor:
            images, of_texts = images.to(self.scorer.device), of_texts.to(self.scorer.device)
            shown, said = (
                {name: value[at] for name, value in rows.items()} for rows, at in ((seen, images), (tokens, of_texts))
            )
            return self.scorer.match(shown, said)

        return score

    def write_config(self, out: Path) -> None:
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


def open_start(settings: FusionSettings) -> Start:
    """The model that settings name. Raises `WrongUse`: there is no such model, or it is of another kind."""
    scorer = open_model(settings.model, Running(settings.device, PASS, settings.threads))
    if not isinstance(scorer, FusionScorer) or scorer.types[0] not in CROSS_MODAL:
        raise WrongUse(
            f"model: {settings.model} is not trained by its matching head; name blip-itm:, vilt: or flava: and a folder"
        )
    if settings.image_size is not None:
        scorer.resize(settings.image_size)
    kind, _, folder = settings.model.partition(":")
    return Start(kind, scorer, find_model(folder, LAYOUT), settings.image_size is not None)
