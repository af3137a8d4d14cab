"""Samples as rows of one image and one caption, as other tools train on them; images as files; texts for pandas."""

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import Terms

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


def caption_rows(samples: Iterable[Stored[Any]]) -> Iterator[Row]:
    """The rows of samples: a pair is two, an image with captions one a caption. Text pairs of one image and caption are
    one row, with all their negative captions: repeated, it would be its own negative in a batch.
    """
    for (kind, _), group in groupby(samples, key=lambda sample: (sample.kind.name, sample.json.group)):
        yield from _ROWS[kind](group)


def _row(sample: Stored[Any], number: int, role: str, caption: str, **more: Any) -> Row:
    image, about = sample.images[role], sample.json
    return Row(f"{sample.key}-{number}", about.group, image, sample.extension, caption, about.terms, **more)


def _of_pairs(pairs: Iterable[Stored[Any]]) -> Iterator[Row]:
    for pair in pairs:
        captions = tuple(pair.texts.values())
        for this, role in enumerate(pair.images):
            wrong, opposite = (captions[1 - this],), f"{pair.key}-{1 - this}"
            yield _row(pair, this, role, captions[this], wrong=wrong, opposite=opposite)


def _of_text_pairs(group: Iterable[Stored[Any]]) -> Iterator[Row]:
    alike = dict[tuple[bytes, str], list[Stored[Any]]]()
    for sample in group:
        alike.setdefault((sample.images["image"], sample.texts["caption"]), []).append(sample)
    for (_, caption), same in alike.items():
        wrong = tuple(dict.fromkeys(sample.texts["negative_caption"] for sample in same))
        yield _row(same[0], 0, "image", caption, wrong=wrong)


def _of_image_texts(samples: Iterable[Stored[Any]]) -> Iterator[Row]:
    for sample in samples:
        for number, caption in enumerate(sample.json.captions):
            yield _row(sample, number, "image", caption)


_ROWS: Mapping[str, Callable[[Iterable[Stored[Any]]], Iterator[Row]]] = {
    PAIR.name: _of_pairs,
    TEXT_PAIR.name: _of_text_pairs,
    IMAGE_TEXT.name: _of_image_texts,
}


def write_image(content: bytes, folder: Path, extension: str, below: str = "images") -> str:
    """Write an image unless it is there; returns its path relative to ``folder``, which its sha256 names.

    The digest is computed here: a name from a sample's own JSON could lead out of the folder.
    """
    name = hashlib.sha256(content).hexdigest()
    relative = f"{below}/{name[:2]}/{name}.{extension}"
    path = folder / relative
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return relative


class TabTable(AbstractContextManager["TabTable"]):
    """A new file of columns with tabs between them that `pandas.read_csv` reads as they were written."""

    def __init__(self, path: Path, columns: Iterable[str]) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        # All is quoted: of line ends, the module quotes only its own, and pandas ends a line at each.
        self._writer = csv.writer(self._stream, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._writer.writerow(columns)

    def append(self, *values: str) -> None:
        """Write a line. A text that pandas takes for a missing value gets a space, which tokenizers strip."""
        self._writer.writerow(f"{value} " if value in _MISSING else value for value in values)

    def __exit__(self, *_: object) -> None:
        self._stream.close()


class JsonItems(AbstractContextManager["JsonItems"]):
    """A new file of a JSON array, or of an object (``brackets`` "{}"), written item by item.

    It is ASCII, because released loaders open files with whatever encoding the machine prefers.
    """

    def __init__(self, path: Path, brackets: str = "[]") -> None:
        self._stream, self._end, self.length = path.open("w", encoding="ascii"), brackets[1], 0
        self._stream.write(brackets[0])

    def append(self, item: Any, key: str | None = None) -> None:
        """Write one item, of an object with its key, on a line of its own."""
        named = "" if key is None else f"{json.dumps(key)}: "
        self._stream.write(("," if self.length else "") + f"\n{named}{json.dumps(item)}")
        self.length += 1

    def __exit__(self, *_: object) -> None:
        with self._stream:
            self._stream.write(f"\n{self._end}\n")
