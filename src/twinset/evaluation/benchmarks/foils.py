"""Image, caption and foil: SugarCrepe (Hsieh et al., 2023), VALSE (Parcalabescu et al., 2022), and BiVLC."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import object_of, text_of
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows, parquet_splits
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.benchmarks.records import OneImage, Record
from twinset.evaluation.examples import LeftOut, Matching

KINDS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
INSTRUMENTS = (
    *("existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations"),
    *("action-replacement", "actant-swap", "coreference-standard", "coreference-hard", "foil-it"),
)
VALID = 2  # of three annotators, who chose the caption and not the foil (section 4.4)


class SugarCrepe(OneImage):
    """``KIND.json``: ``{NUMBER: {filename, caption, negative_caption}}``; images are COCO's val2017."""

    name = "sugarcrepe"
    title = "SugarCrepe (2023)"
    citation = "https://arxiv.org/abs/2306.14610"
    licence = "MIT"
    counts: ClassVar = {
        **{"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406, "swap_obj": 245, "swap_att": 666},
        **{"add_obj": 2062, "add_att": 692},
    }
    expects = "replace_obj.json … add_att.json, and the images of COCO val2017 in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository RAIVNLab/sugar-crepe, the images at COCO's site"
    )

    every: ClassVar = {kind: f"{kind}.json" for kind in KINDS}
    image_of = "filename"

    def options(self, record: Record) -> Sequence[str]:
        return record.text("caption"), record.text("negative_caption")


class Valse(OneImage):
    """``INSTRUMENT.json``: ``{ID: {image_file, caption, foil, mturk: {caption, foil, other}}}``.

    Only valid foils count; the others are left out. ``counts`` are those of the released files (Heidelberg-NLP/VALSE).
    """

    name = "valse"
    title = "VALSE (2022)"
    citation = "https://arxiv.org/abs/2112.07566"
    licence = "MIT"
    counts: ClassVar = {
        **{"existence": 505, "plurals": 851, "counting-hard": 868, "counting-small-quant": 900},
        **{"counting-adversarial": 691, "relations": 535, "action-replacement": 648, "actant-swap": 949},
        **{"coreference-standard": 708, "coreference-hard": 104, "foil-it": 943},
    }
    expects = "existence.json, plurals.json … foil-it.json, and the images of their data sets in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository Heidelberg-NLP/VALSE; images come from Visual7W, "
        "COCO, SWiG, VisDial and FOIL-it"
    )

    every: ClassVar = {instrument: f"{instrument}.json" for instrument in INSTRUMENTS}
    image_of = "image_file"

    def options(self, record: Record) -> Sequence[str]:
        return record.text("caption"), record.text("foil")

    def example(self, record: Record) -> Item:
        """As `OneImage.example`: foils that too few annotators found wrong do not count."""
        votes = object_of(record.fields.get("mturk"), f"{record.where}, field 'mturk'").get("caption")
        if not isinstance(votes, int):
            raise WrongUse(f"{record.where}: no number of votes in mturk.caption; fetch the file again")
        return LeftOut(record.where, "foil not validated") if votes < VALID else super().example(record)


IMAGES = ("image", "negative_image")
WORDS = ("caption", "negative_caption", "type", "subtype")


class BiVlc(Reader):
    """SugarCrepe's pairs with an image generated from each negative caption (Miranda et al., 2024).

    Parquet: ``image, caption, negative_caption, negative_image, type, subtype``, as released and as exported.
    The release does not say which of COCO's images a row has, and several rows share one. Their group is the digest of
    the image, so the column of images is read once for it, in batches, before the rows of a file.
    """

    name = "bivlc"
    title = "BiVLC (2024)"
    citation = "https://arxiv.org/abs/2406.09952"
    licence = "MIT"
    counts: ClassVar = {"test": 2933}
    expects = "data/test-00000-of-00002.parquet and the other part, or what `twinset export --format bivlc` wrote"
    obtained = "They are in the data set imirandam/BiVLC of Hugging Face"

    def found(self) -> Sequence[str]:
        return sorted(self._splits)

    def files(self) -> Sequence[Path]:
        return [path for split in self.subsets for path in self._splits[split]]

    def items(self, subset: str) -> Iterator[Item]:
        row = 0
        for path in self._splits[subset]:
            rows = ParquetRows(path, IMAGES, WORDS)
            photos = rows.digests(IMAGES[0])
            for number, (record, photo) in enumerate(zip(rows.rows(), photos, strict=True)):
                where = f"{path} row {number}"
                if photo:
                    kind = [str(record[field] or "") for field in WORDS[2:]]
                    yield Matching(
                        key=f"{subset}/{row:06d}",
                        subset=subset,
                        group=photo[:16],
                        category="_".join(kind) if all(kind) else "",
                        images=(rows.picture(number, IMAGES[0]), rows.picture(number, IMAGES[1])),
                        captions=(text_of(record, WORDS[0], where), text_of(record, WORDS[1], where)),
                    )
                else:
                    yield LeftOut(where, MISSING)
                row += 1

    @cached_property
    def _splits(self) -> dict[str, list[Path]]:
        return parquet_splits(self.data)
