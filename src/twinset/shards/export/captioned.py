"""Samples as rows of one image and one caption, as other tools train on them; images as files; texts for pandas."""

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.kind import Stored, Takes
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import Terms
from twinset.shards.read import of_kind, read_tar
from twinset.shards.storage.store import Store

#: What `pandas.read_csv` takes for a missing value, also in quotes.
_MISSING = frozenset({
    "", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None",
    "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """An image, encoded, and a caption of it.

    key: ``KEY-0``, ``KEY-1`` … of the sample KEY. wrong: captions that are wrong of the image. opposite: key of the
    row of a pair's other image, "" where there is none. terms: of the sample.
    """

    key: str
    group: str
    image: bytes
    extension: str
    caption: str
    terms: Terms
    wrong: tuple[str, ...] = ()
    opposite: str = ""


def caption_rows(store: Store, tar: str, takes: Takes, use: str) -> Iterator[Row]:
    """The rows of a tar: a pair is two, an image with captions one a caption. Text pairs of one image and caption are
    one row, with all their negative captions: repeated, it would be its own negative in a batch.

    Raises `WrongUse` for samples that ``use`` does not take, such as ``--format openclip``.
    """
    samples = of_kind(read_tar(store, tar), takes, use)
    for (kind, _), group in groupby(samples, key=lambda sample: (sample.kind.name, sample.json.group)):
        yield from _ROWS[kind](group)


def _of_pairs(pairs: Iterable[Stored[Any]]) -> Iterator[Row]:
    for pair in pairs:
        captions, group = tuple(pair.texts.values()), pair.json.group
        for this, image in enumerate(pair.images.values()):
            keys = f"{pair.key}-{this}", f"{pair.key}-{1 - this}"
            yield Row(
                keys[0], group, image, pair.extension, captions[this], pair.json.terms, (captions[1 - this],), keys[1]
            )


def _of_text_pairs(group: Iterable[Stored[Any]]) -> Iterator[Row]:
    first = dict[tuple[bytes, str], Stored[Any]]()
    wrong = dict[tuple[bytes, str], dict[str, None]]()
    for one in group:
        said = one.images["image"], one.texts["caption"]
        first.setdefault(said, one)
        wrong.setdefault(said, {})[one.texts["negative_caption"]] = None
    for said, one in first.items():
        yield Row(
            f"{one.key}-0", one.json.group, *(said[0], one.extension, said[1]), one.json.terms, tuple(wrong[said])
        )


def _of_image_texts(samples: Iterable[Stored[Any]]) -> Iterator[Row]:
    for one in samples:
        for number, caption in enumerate(one.json.captions):
            yield Row(
                f"{one.key}-{number}", one.json.group, one.images["image"], one.extension, caption, one.json.terms
            )


_ROWS: Mapping[str, Callable[[Iterable[Stored[Any]]], Iterator[Row]]] = {
    PAIR.name: _of_pairs,
    TEXT_PAIR.name: _of_text_pairs,
    IMAGE_TEXT.name: _of_image_texts,
}


def image_file(row: Row, folder: Path) -> str:
    """Write a row's image unless it is there; returns its path below ``folder``, which its sha256 names."""
    name = hashlib.sha256(row.image).hexdigest()
    relative = f"images/{name[:2]}/{name}.{row.extension}"
    path = folder / relative
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(row.image)
    return relative


class TabTable(AbstractContextManager["TabTable"]):
    """A new file of columns with tabs between them that `pandas.read_csv` reads as they were written."""

    def __init__(self, path: Path, columns: Iterable[str]) -> None:
        self._stream: TextIO = path.open("w", encoding="utf-8", newline="")
        # All is quoted: of line ends, the module quotes only its own, and pandas ends a line at each.
        self._writer = csv.writer(self._stream, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._writer.writerow(columns)

    def append(self, *values: str) -> None:
        """Write a line. A text that pandas takes for a missing value gets a space, which tokenizers strip."""
        self._writer.writerow(f"{value} " if value in _MISSING else value for value in values)

    def __exit__(self, *_: object) -> None:
        self._stream.close()
