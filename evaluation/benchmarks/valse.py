"""VALSE: an image, its caption, and a foil that differs in one linguistic phenomenon (Parcalabescu et al., 2022)."""

from __future__ import annotations

from typing import Any

from evaluation.benchmarks.foils import Foils
from evaluation.benchmarks.json_items import object_of
from manifests.errors import WrongUse

INSTRUMENTS = (
    *("existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations"),
    *("action-replacement", "actant-swap", "coreference-standard", "coreference-hard", "foil-it"),
)
VALID = 2  # of three annotators, who chose the caption and not the foil (section 4.4)


class Valse(Foils):
    """``INSTRUMENT.json``: ``{ID: {image_file, caption, foil, mturk: {caption, foil, other}}}``.

    Only valid foils count; the others are left out.
    """

    name = "valse"
    title = "VALSE (2022)"
    citation = "https://arxiv.org/abs/2112.07566"
    expects = "existence.json, plurals.json … foil-it.json, and the images of their data sets in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository Heidelberg-NLP/VALSE; images come from Visual7W, "
        "COCO, SWiG, VisDial and FOIL-it"
    )

    every = INSTRUMENTS
    fields = ("image_file", "caption", "foil")

    def refusal(self, record: Any, where: str) -> str | None:
        """As `Foils.refusal`: foils that too few annotators found wrong do not count."""
        votes = object_of(object_of(record, where).get("mturk"), f"{where}, field 'mturk'").get("caption")
        if not isinstance(votes, int):
            raise WrongUse(f"{where}: no number of votes in mturk.caption; fetch the file again")
        return "foil not validated" if votes < VALID else None
