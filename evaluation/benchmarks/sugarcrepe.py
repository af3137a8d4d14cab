"""SugarCrepe: an image, its caption, and a hard negative caption of one of seven kinds (Hsieh et al., 2023)."""

from __future__ import annotations

from typing import Any

from evaluation.benchmarks.foils import Foils

KINDS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")


class SugarCrepe(Foils):
    """``KIND.json``: ``{NUMBER: {filename, caption, negative_caption}}``; images are COCO's val2017."""

    name = "sugarcrepe"
    title = "SugarCrepe (2023)"
    citation = "https://arxiv.org/abs/2306.14610"
    expects = "replace_obj.json … add_att.json, and the images of COCO val2017 in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository RAIVNLab/sugar-crepe, the images at COCO's site"
    )

    every = KINDS
    fields = ("filename", "caption", "negative_caption")

    def refusal(self, record: Any, where: str) -> str | None:
        """As `Foils.refusal`: every record counts."""
        return None
