"""Image, caption and foil: SugarCrepe (Hsieh et al., 2023), VALSE (Parcalabescu et al., 2022), and BiVLC."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from twinset.evaluation.benchmarks.json_items import json_items, object_of, text_of
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows, parquet_splits
from twinset.evaluation.benchmarks.reader import MISSING, FileReader, Item, Reader, image_group
from twinset.evaluation.examples import LeftOut, Matching
from twinset.manifests.errors import WrongUse

KINDS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
INSTRUMENTS = (
    *("existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations"),
    *("action-replacement", "actant-swap", "coreference-standard", "coreference-hard", "foil-it"),
)
VALID = 2  # of three annotators, who chose the caption and not the foil (section 4.4)


class Foils(FileReader):
    """``SUBSET.json``, records by number; two subsets may use the same numbers, so keys name the subset.

    fields: of a record that name image, caption and wrong caption.
    """

    folders = ("", "data")
    fields: ClassVar[tuple[str, str, str]]

    @abstractmethod
    def refusal(self, record: Any, where: str) -> str | None:
        """Why a record does not count; None if it does. where: file and number, for messages."""

    def file_name(self, subset: str) -> str:
        return f"{subset}.json"

    def items(self, subset: str) -> Iterator[Item]:
        path = self.file(subset)
        for number, record in json_items(path):
            where = f"{path} record {number!r}"
            if (reason := self.refusal(record, where)) is not None:
                yield LeftOut(where, reason)
                continue
            name, caption, foil = (text_of(record, field, where) for field in self.fields)
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
                captions=(caption, foil),
            )


class SugarCrepe(Foils):
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

    every = KINDS
    fields = ("filename", "caption", "negative_caption")

    def refusal(self, record: Any, where: str) -> str | None:
        return None


class Valse(Foils):
    """``INSTRUMENT.json``: ``{ID: {image_file, caption, foil, mturk: {caption, foil, other}}}``.

    Only valid foils count; the others are left out.
    """

    name = "valse"
    title = "VALSE (2022)"
    citation = "https://arxiv.org/abs/2112.07566"
    licence = "MIT"
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
