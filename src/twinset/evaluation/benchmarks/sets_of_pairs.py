"""Sets of pairs, most of them a declaration each: Winoground, SugarCrepe, VALSE and BiVLC."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, StrictInt, TypeAdapter

from twinset.evaluation.benchmarks.reader import MISSING, Item, Pairs
from twinset.evaluation.benchmarks.rows import Row
from twinset.evaluation.examples import LeftOut


class Winoground(Pairs):
    """Captions of the same words in another order (Thrush et al., 2022)."""

    name, title = "winoground", "Winoground (2022)"
    citation, licence = "https://arxiv.org/abs/2204.03162", "research only"
    counts: ClassVar = {"test": 400}
    expects = "examples.jsonl and a folder of the images that it names (ex_0_img_0.png …), or Parquet files"
    obtained = "Both are in the data set facebook/winoground of Hugging Face, once its terms are accepted"
    files: ClassVar = {"test": "examples.jsonl"}
    splits = ("test",)
    image_columns, caption_columns = ("image_0", "image_1"), ("caption_0", "caption_1")
    key_column, category_column = "id", "collapsed_tag"


class SugarCrepe(Pairs):
    """``KIND.json``: ``{NUMBER: {filename, caption, negative_caption}}`` (Hsieh et al., 2023)."""

    name, title = "sugarcrepe", "SugarCrepe (2023)"
    citation, licence = "https://arxiv.org/abs/2306.14610", "MIT"
    counts: ClassVar = {
        **{"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406, "swap_obj": 245, "swap_att": 666},
        **{"add_obj": 2062, "add_att": 692},
    }
    expects = "replace_obj.json … add_att.json, and the images of COCO val2017 in any folder below"
    obtained = "The annotations are in the folder data of the repository RAIVNLab/sugar-crepe, images at COCO's site"
    files: ClassVar = {kind: f"{kind}.json" for kind in counts}
    image_columns = ("filename",)


class Votes(BaseModel):
    """How many of three annotators chose the caption and not the foil."""

    caption: StrictInt


VOTES, VALID = TypeAdapter(Votes), 2  # section 4.4


class Valse(Pairs):
    """``INSTRUMENT.json``: ``{ID: {image_file, caption, foil, mturk: {caption, foil, other}}}``.

    Only valid foils count; the others are left out (Parcalabescu et al., 2022). ``counts`` are those of the released
    files.
    """

    name, title = "valse", "VALSE (2022)"
    citation, licence = "https://arxiv.org/abs/2112.07566", "MIT"
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
    files: ClassVar = {instrument: f"{instrument}.json" for instrument in counts}
    image_columns, caption_columns = ("image_file",), ("caption", "foil")

    def example(self, row: Row) -> Item:
        """As `Pairs.example`: foils that too few annotators found wrong do not count."""
        votes = row.value("mturk", VOTES)
        return LeftOut(row.where, "foil not validated") if votes.caption < VALID else super().example(row)


class BiVlc(Pairs):
    """SugarCrepe's pairs with an image generated from each negative caption (Miranda et al., 2024).

    Parquet: ``image, caption, negative_caption, negative_image, type, subtype``, as released and as exported.
    The release does not say which of COCO's images a row has, and several rows share one. Their group is the digest of
    the image, which is read for it.
    """

    name, title = "bivlc", "BiVLC (2024)"
    citation, licence = "https://arxiv.org/abs/2406.09952", "MIT"
    counts: ClassVar = {"test": 2933}
    expects = "data/test-00000-of-00002.parquet and the other part, or what `twinset export --format bivlc` wrote"
    obtained = "They are in the data set imirandam/BiVLC of Hugging Face"
    image_columns = ("image", "negative_image")

    def found(self) -> Sequence[str]:
        return sorted(self.parquet)

    def paths(self, subset: str) -> Sequence[Path]:
        return self.parquet[subset]

    def columns(self) -> Sequence[str]:
        return [*super().columns(), "type", "subtype"]

    def example(self, row: Row) -> Item:
        """As `Pairs.example`, with the digest of the photograph."""
        assert row.stored is not None
        if not (photo := row.stored.content(row.at, "image")):
            return LeftOut(row.where, MISSING)
        return super().example(replace(row, fields={**row.fields, "photo": sha256(photo).hexdigest()[:16]}))

    def key(self, row: Row) -> str:
        return f"{row.subset}/{int(row.number):06d}"

    def category(self, row: Row) -> str:
        kind = [row.word(column) for column in ("type", "subtype")]
        return "_".join(kind) if all(kind) else ""

    def group(self, row: Row) -> str:
        return str(row.fields["photo"])
