"""A benchmark as it lies in a folder: which subsets are there, what their rows ask, what is counted and refused."""

import hashlib
from abc import ABC
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.errors import WrongUse, suggested
from twinset.evaluation.benchmarks.pictures import Images
from twinset.evaluation.benchmarks.rows import NAME, Row, parquet_splits, read_rows
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Picture, Query, Statement
from twinset.shards.media.media_folder import COCO_PREFIXES

Item = Matching | Query | Statement | Grounding | LeftOut

VERSION = 5  # part of digests; raised when a reader asks other examples of the same files
MISSING, SAME_CAPTIONS = "missing image", "both captions are the same"


class NothingAsked(WrongUse):
    """No example of a benchmark can be asked, such as of triplets without a distractor."""


class AbsentImage(Exception):
    """The image that a row names is not there: the row is left out."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a server takes of a subset whose targets are not public: the names of the first ``places`` entries of each
    query, in a JSON object with the members of ``header``. entry: what stands there for a name.
    """

    file: str
    places: int
    header: Mapping[str, str] = field(default_factory=dict)
    entry: Callable[[str], str | int] = str


class Reader(Benchmark, ABC):
    """One benchmark as it lies in a folder. Most declare the files of their subsets, and say what a row asks.

    name, title, citation, metrics, asks, apart: as `evaluation.examples.Benchmark`. expects: the files that are looked
    for; obtained: where people get them; both for messages. licence: of the release, as it says. counts: examples of
    the release by subset, where they are known. submissions: by subset, where a server has the targets.

    files: file of each subset, in one of the ``folders``, plain or packed (``packings``): see `rows.read_values`.
    splits: subsets that may be Parquet files of this split instead. image_columns: that name images or, in Parquet,
    hold them.

    captions_only: as `evaluation.benchmarks.open_benchmark`. categories: those read; all when empty. limit: as `draw`.
    """

    title: str
    expects: ClassVar[str]
    obtained: ClassVar[str]
    licence: ClassVar[str] = "none stated"
    counts: ClassVar[Mapping[str, int]] = {}
    metrics: Sequence[str] = ()
    submissions: ClassVar[Mapping[str, Submission]] = {}
    files: ClassVar[Mapping[str, str]] = {}
    folders: ClassVar[Sequence[str]] = ("", "data")
    packings: ClassVar[Sequence[str]] = ("", ".gz")
    splits: ClassVar[Sequence[str]] = ()
    image_columns: ClassVar[Sequence[str]] = ()
    captions_only = False
    categories: frozenset[str] = frozenset()
    limit: tuple[int, int] | None = None

    def __init__(self, data: Path | str, subsets: Sequence[str] = ()) -> None:
        """
        Args:
            data: the folder.
            subsets: those that are read, in this order; all that lie there when empty.

        Raises:
            WrongUse: the folder is absent, holds nothing of the benchmark, or lacks a subset.
        """
        self.data, self.place = Path(data), str(data)
        there = self.found()
        if not there:
            raise self.refused("holds no annotation of it" if self.data.exists() else "there is no such folder")
        for subset in subsets:
            if subset not in there:
                raise WrongUse(f"{data}: no subset {subset!r} of {self.title}; {suggested(subset, there)}")
        self.subsets = tuple(dict.fromkeys(subsets)) or tuple(there)

    def draw(self, limit: int, seed: int) -> None:
        """Read at most ``limit`` examples of each subset, drawn by a digest of ``seed`` and key: neither order nor the
        other examples matter, and a larger limit keeps those of a smaller one. The annotation is read twice.
        """
        if limit < 1:
            raise WrongUse(f"limit {limit}: name the examples of each subset, 1 or more")
        self.limit = limit, seed
        self.title = f"{self.title}, {limit:,} of each subset (seed {seed})"

    def found(self) -> Sequence[str]:
        """The subsets that lie in the folder, in a fixed order."""
        return [subset for subset in self.files if self.paths(subset)]

    def paths(self, subset: str) -> Sequence[Path]:
        """The annotation files of a subset."""
        path = self.in_folders(self.files[subset], *self.folders)
        if path is not None:
            return [path]
        return self.parquet.get(subset, []) if subset in self.splits else []

    def annotations(self) -> Sequence[Path]:
        """The annotation files of all chosen subsets, each once."""
        return list(dict.fromkeys(path for subset in self.subsets for path in self.paths(subset)))

    def columns(self) -> Sequence[str]:
        """Those that a table must have; of Parquet no others are read."""
        return ()

    def rows(self, subset: str) -> Iterator[Row]:
        """The rows of a subset, in order; raises `WrongUse` for one that cannot be read."""
        number = 0
        for path in self.paths(subset):
            for row in read_rows(path, subset, self.columns(), self.image_columns):
                name = row.number if row.stored is None else str(number)
                yield Row(subset, row.where, name, row.fields, row.stored, row.at)
                number += 1

    def items(self, subset: str) -> Iterator[Item]:
        """The examples of a subset, and what is left out of it, in a fixed order; streams."""
        for row in self.rows(subset):
            try:
                yield self.example(row)
            except AbsentImage as absent:
                yield LeftOut(f"{row.where}: {absent}", MISSING)

    def example(self, row: Row) -> Item:
        """What a row asks."""
        raise NotImplementedError

    def image_name(self, row: Row, column: str) -> str:
        """The name of the file that a column of a row names."""
        return row.value(column, NAME)

    def picture(self, row: Row, column: str) -> Picture:
        """The image of a column; raises `AbsentImage`."""
        if row.stored is not None:
            return row.stored.picture(row.at, column)
        return self.named(row, self.image_name(row, column))

    def named(self, row: Row, name: str, **crop: Any) -> Picture:
        """The image of a name that a row has, or a box of it, as `Images.find`; raises `AbsentImage`."""
        picture = self.images.find(name, row.where, **crop)
        if picture is None:
            raise AbsentImage(name)
        return picture

    def examples(self) -> Iterator[Item]:
        """As `evaluation.examples.Benchmark.examples`. Raises `WrongUse`: a file is not what it should be, a subset is
        empty, every example is left out, or two examples have one key.
        """
        if self.limit is None:
            yield from self._all()
            return
        limit, seed = self.limit
        ranks = defaultdict[str, dict[bytes, str]](dict)
        for item in self._all():
            if not isinstance(item, LeftOut):
                seeded = f"{seed}:{item.key}".encode("utf-8", "surrogatepass")
                ranks[item.subset][hashlib.blake2b(seeded, digest_size=16).digest()] = item.key
        drawn = {of_subset[rank] for of_subset in ranks.values() for rank in nsmallest(limit, of_subset)}
        yield from (item for item in self._all() if isinstance(item, LeftOut) or item.key in drawn)

    def _all(self) -> Iterator[Item]:
        keys, left_out, first = set[str](), 0, LeftOut("", "")
        for subset in self.subsets:
            before = len(keys) + left_out
            for item in self.items(subset):
                if isinstance(item, LeftOut):
                    left_out += 1
                    first = first if first.where else item
                elif self.categories and item.category not in self.categories:
                    continue
                elif item.key in keys:
                    raise WrongUse(f"{self.place}: two examples of {self.title} have the key {item.key!r}; remove one")
                else:
                    keys.add(item.key)
                yield item
            if len(keys) + left_out == before:
                asked = " or ".join(sorted(self.categories)) or "records"
                raise WrongUse(f"{self.place}: subset {subset!r} of {self.title} has no {asked}; {self.obtained}")
        if not keys:
            why = f"all {left_out:,} examples are left out, the first because of {first.where}: {first.reason}"
            raise NothingAsked(str(self.refused(why)))

    def digest(self) -> str:
        """sha256 over the annotation files of the chosen subsets, whose images in folders are not read."""
        return self.digest_of({self.relative(path): sha256_of_file(path)[0] for path in self.annotations()})

    def digest_of(self, read: object) -> str:
        """sha256 of what was read, as JSON, with the name of the benchmark and its subsets in any order."""
        name = type(self).name  # of the reader: a part of what twinset built has a name of its own
        described = {"benchmark": name, "version": VERSION, "subsets": sorted(self.subsets), "read": read}
        described |= {"categories": sorted(self.categories)} if self.categories else {}
        described |= {"asks": self.asks} if self.asks else {}
        described |= {"limit": list(self.limit)} if self.limit else {}
        return hashlib.sha256(canonical_json(described)).hexdigest()

    @cached_property
    def images(self) -> Images:
        """The images below the folder, which is walked once."""
        return Images(self.data, self.captions_only)

    @cached_property
    def parquet(self) -> Mapping[str, Sequence[Path]]:
        """Parquet files by split."""
        return parquet_splits(self.data)

    def relative(self, path: Path) -> str:
        """A file below the folder as messages and keys name it."""
        return path.relative_to(self.data).as_posix()

    def refused(self, problem: str) -> WrongUse:
        """The error for a folder that is not the benchmark: what it should hold, and where that can be had."""
        return WrongUse(f"{self.place}: {problem} ({self.title}). Expected: {self.expects}. {self.obtained}")

    def in_folders(self, name: str, *folders: str) -> Path | None:
        """The first file of a name, packed or not, in one of some folders of the data; None for "" too."""
        paths = (self.data / folder / f"{name}{packing}" for folder in folders for packing in self.packings if name)
        return next((path for path in paths if path.is_file()), None)


class Pairs(Reader):
    """A set of pairs, a row each: two captions of one image or of two, of which the first belongs to the first image.

    image_columns: one or two. caption_columns: the caption and its negative, or those of both images. key_column: what
    tells rows apart; their numbers when empty. category_column: the subset is the category when empty. group_column:
    rows of one group, such as those that share a photo, are resampled together; `group` says what they are when empty.
    """

    image_columns: ClassVar[Sequence[str]] = ("image",)
    caption_columns: ClassVar[Sequence[str]] = ("caption", "negative_caption")
    key_column: ClassVar[str] = ""
    category_column: ClassVar[str] = ""
    group_column: ClassVar[str] = ""

    def columns(self) -> Sequence[str]:
        more = self.key_column, self.category_column, self.group_column
        return [name for name in (*self.caption_columns, *more) if name]

    def captions(self, row: Row) -> Sequence[str]:
        """The captions of a row."""
        return [row.text(column) for column in self.caption_columns]

    def category(self, row: Row) -> str:
        """The category of a row."""
        return (row.word(self.category_column) if self.category_column else "") or row.subset

    def group(self, row: Row) -> str:
        """What is resampled together: rows of a ``group_column``, of one image by its name, or each row of two."""
        if self.group_column:
            return row.value(self.group_column, NAME)
        alone = len(self.image_columns) == 1 and row.stored is None
        return image_group(str(row.fields[self.image_columns[0]])) if alone else self.key(row)

    def key(self, row: Row) -> str:
        """What tells a row from all others of the benchmark."""
        return f"{row.subset}/{row.value(self.key_column, NAME) if self.key_column else row.number}"

    def example(self, row: Row) -> Item:
        pictures = tuple(self.picture(row, column) for column in self.image_columns)
        first, second = self.captions(row)
        if first == second:
            return LeftOut(row.where, SAME_CAPTIONS)
        return Matching(images=pictures, captions=(first, second), **self.identity(row))

    def identity(self, row: Row) -> dict[str, Any]:
        """What every example has of a row."""
        return {"key": self.key(row), "subset": row.subset, "group": self.group(row), "category": self.category(row)}


class Ranked(Pairs):
    """An image asks for its captions among all of its row; recall@1 is the accuracy."""

    def right(self, row: Row) -> frozenset[int]:
        """The places of the captions that are right."""
        return frozenset({0})

    def example(self, row: Row) -> Item:
        image, captions = self.picture(row, self.image_columns[0]), tuple(self.captions(row))
        targets = all_alike(captions, self.right(row))
        return Query(image=image, text=None, gallery=captions, targets=targets, **self.identity(row))


def all_alike(gallery: Sequence[str], targets: Iterable[int]) -> frozenset[int]:
    """Targets, and the other entries that say the same as one of them: they cannot be wrong."""
    texts = {gallery[target] for target in targets}
    return frozenset(place for place, text in enumerate(gallery) if text in texts)


def image_group(name: str) -> str:
    """The group of an image by its path; COCO called the same image differently in 2014 and 2017, with 12 digits."""
    path = PurePosixPath(name).with_suffix("")
    stem = path.name
    for prefix in COCO_PREFIXES:
        stem = stem.removeprefix(prefix)
    return stem if len(stem) == 12 and stem.isdecimal() else path.as_posix()
