"""Winoground: two images and two captions of the same words in another order (Thrush et al., 2022)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinset.evaluation.benchmarks.json_items import text_of
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows, parquet_splits
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Matching, Picture
from twinset.generators.annotation_files import Skipped, read_json_lines
from twinset.manifests.errors import WrongUse

LINES = "examples.jsonl"
IMAGES = ("image_0", "image_1")
CAPTIONS = ("caption_0", "caption_1")
TAG = "collapsed_tag"
SUBSET = "test"


class Winoground(Reader):
    """``examples.jsonl`` with a folder of images, ``IMAGE.png``; or Parquet with the images in it."""

    name = "winoground"
    image_folders = ("images", "data/images")
    title = "Winoground (2022)"
    citation = "https://arxiv.org/abs/2204.03162"
    expects = "examples.jsonl and a folder of the images that it names (ex_0_img_0.png …), or Parquet files"
    obtained = "Both are in the data set facebook/winoground of Hugging Face, once its terms are accepted"

    def found(self) -> Sequence[str]:
        return [SUBSET] if self._lines() is not None or SUBSET in parquet_splits(self.data) else []

    def files(self) -> Sequence[Path]:
        lines = self._lines()
        return [lines] if lines is not None else parquet_splits(self.data)[SUBSET]

    def items(self, subset: str) -> Iterator[Item]:
        lines = self._lines()
        return self._of_lines(lines) if lines is not None else self._of_parquet()

    def _of_lines(self, path: Path) -> Iterator[Item]:
        for number, record in read_json_lines(path):
            where = f"{path} line {number}"
            if isinstance(record, Skipped):
                raise WrongUse(f"{where}: {record.reason}; fetch the file again")
            names = [text_of(record, field, where) for field in IMAGES]
            pictures = [self.images.find(name, where) for name in names]
            if None in pictures:
                yield LeftOut(f"{where}: {names[pictures.index(None)]}", MISSING)
                continue
            yield _example(record, [one for one in pictures if one is not None], where)

    def _of_parquet(self) -> Iterator[Item]:
        for path in parquet_splits(self.data)[SUBSET]:
            rows = ParquetRows(path, IMAGES, ("id", *CAPTIONS, TAG))
            for number, record in enumerate(rows.rows()):
                pictures = [rows.picture(number, column) for column in IMAGES]
                yield _example(record, pictures, f"{path} row {number}")

    def _lines(self) -> Path | None:
        return self.in_folders(LINES, "", "data")


def _example(record: Mapping[str, Any], pictures: Sequence[Picture], where: str) -> Matching:
    if not isinstance(record.get("id"), int):
        raise WrongUse(f"{where}: no number in the field 'id'; fetch the file again")
    key = f"{SUBSET}/{record['id']}"
    return Matching(
        key=key,
        subset=SUBSET,
        group=key,  # no two examples share an image
        category=str(record.get(TAG) or ""),
        images=tuple(pictures),
        captions=(text_of(record, CAPTIONS[0], where), text_of(record, CAPTIONS[1], where)),
    )
