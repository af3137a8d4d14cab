"""Export to the CSV that NegCLIP's training reads (Yuksekgonul et al. 2023, section 4; code: vinid/neg_clip).

    DIR/SPLIT.csv   filepath, title, neg_caption, neg_image     --train-data SPLIT.csv, run in DIR
    DIR/images/

``neg_caption`` is a Python list of captions, ``neg_image`` one of the numbers of lines in the same file, from 0. Of
each the training picks one at random, so that none may be empty; it reads the picked line's captions too.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.shards.export.captioned import Row, TabTable, caption_rows, write_image
from twinset.shards.export.formats import BySplit, Format, Shard

COLUMNS = ("filepath", "title", "neg_caption", "neg_image", *TERMS)


def write_negclip(shards: Iterator[Shard], folder: Path) -> None:
    """Write ``SPLIT.csv`` and ``images/``.

    A line is an image with a caption. Of a pair, the negatives are the other caption and the other image's line; of a
    text pair, its negative captions and the line of the next group's image, since no similar image is known.

    Raises `WrongUse` when a split of text pairs has one group: its image has no negative.
    """
    with BySplit(lambda split: _lines_of(split, folder)) as files:
        for shard in shards:
            for _, rows in groupby(caption_rows(shard.samples), key=lambda row: row.group):
                files[shard.split].add(rows)


@dataclass(slots=True)
class _Line:
    """negatives: captions. opposites: keys of rows. Dictionaries keep their order and no repetitions."""

    number: int
    terms: Terms
    negatives: dict[str, None] = field(default_factory=dict)
    opposites: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Lines:
    """Lines of a file. Those of a group wait until the number of the next group's first line is known."""

    table: TabTable
    folder: Path
    split: str
    written: int = 0
    waiting: dict[tuple[str, str], _Line] = field(default_factory=dict)  # by path and caption
    numbers: dict[str, int] = field(default_factory=dict)  # lines by key of their rows

    def add(self, rows: Iterable[Row]) -> None:
        """Take the rows of a group: pairs that share an image and its caption share a line."""
        self.write(self.written + len(self.waiting))
        for row in rows:
            shared = write_image(row.image, self.folder, row.extension), row.caption
            line = self.waiting.setdefault(shared, _Line(self.written + len(self.waiting), row.terms))
            self.numbers[row.key] = line.number
            line.negatives |= dict.fromkeys(row.wrong)
            line.opposites |= dict.fromkeys([row.opposite] if row.opposite else [])

    def write(self, another: int) -> None:
        """Write the lines that wait. another: number of a line of another group."""
        for (path, caption), line in self.waiting.items():
            images = sorted({self.numbers[key] for key in line.opposites}) or [another]
            if not line.opposites and another == self.written:
                raise WrongUse(
                    f"--format negclip: the split {self.split} has text pairs of one group only, and NegCLIP wants "
                    "another image for each; build pairs of more images"
                )
            self.table.append(path, caption, repr(list(line.negatives)), repr(images), *line.terms)
        self.written += len(self.waiting)
        self.waiting.clear()
        self.numbers.clear()


@contextmanager
def _lines_of(split: str, folder: Path) -> Iterator[_Lines]:
    with TabTable(folder / f"{split}.csv", COLUMNS) as table:
        lines = _Lines(table, folder, split)
        yield lines
        lines.write(0)


NEGCLIP_FORMAT = Format((PAIR, TEXT_PAIR), write_negclip)
