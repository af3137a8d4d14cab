"""VALSE: an image, its caption, and a foil that differs in one linguistic phenomenon (Parcalabescu et al., 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.benchmarks.json_items import json_items, object_of, text_of
from evaluation.benchmarks.reader import MISSING, Item, Reader, image_group
from evaluation.examples import LeftOut, Matching
from manifests.errors import WrongUse

INSTRUMENTS = (
    *("existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations"),
    *("action-replacement", "actant-swap", "coreference-standard", "coreference-hard", "foil-it"),
)
FOLDERS = ("", "data")
VALID = 2  # of three annotators, who chose the caption and not the foil (section 4.4)


class Valse(Reader):
    """``INSTRUMENT.json``: ``{ID: {image_file, caption, foil, mturk: {caption, foil, other}}}``.

    Only valid foils count; the others are left out. Two instruments use the same ids, so keys name the instrument.
    """

    name = "valse"
    title = "VALSE (2022)"
    citation = "https://arxiv.org/abs/2112.07566"
    expects = "existence.json, plurals.json … foil-it.json, and the images of their data sets in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository Heidelberg-NLP/VALSE; images come from Visual7W, "
        "COCO, SWiG, VisDial and FOIL-it"
    )

    def found(self) -> Sequence[str]:
        """As `Reader.found`."""
        return [name for name in INSTRUMENTS if self._file(name) is not None]

    def files(self) -> Sequence[Path]:
        """As `Reader.files`."""
        return [path for name in self.subsets if (path := self._file(name)) is not None]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`."""
        path = self._file(subset)
        assert path is not None
        for number, record in json_items(path):
            where = f"{path} record {number!r}"
            votes = object_of(object_of(record, where).get("mturk"), f"{where}, field 'mturk'").get("caption")
            if not isinstance(votes, int):
                raise WrongUse(f"{where}: no number of votes in mturk.caption; fetch the file again")
            if votes < VALID:
                yield LeftOut(where, "foil not validated")
                continue
            name = text_of(record, "image_file", where)
            captions = (text_of(record, "caption", where), text_of(record, "foil", where))
            image = self.images.find(name, where)
            if image is None:
                yield LeftOut(f"{where}: {name}", MISSING)
                continue
            yield Matching(
                key=f"{subset}/{number}",
                subset=subset,
                group=image_group(name),
                category=subset,
                images=(image,),
                captions=captions,
            )

    def _file(self, instrument: str) -> Path | None:
        return self.in_folders(f"{instrument}.json", *FOLDERS)
