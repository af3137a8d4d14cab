"""What the readers of all benchmarks share: which subsets lie there, what is counted, what is refused."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import ClassVar

from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.errors import WrongUse, suggested
from twinset.evaluation.benchmarks.pictures import Images, UnreadImages
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Query, Statement
from twinset.shards.media.media_folder import COCO_PREFIXES

Item = Matching | Query | Statement | Grounding | LeftOut

VERSION = 2  # part of digests; raised when a reader asks other examples of the same files
MISSING, SAME_CAPTIONS = "missing image", "both captions are the same"


class NothingAsked(WrongUse):
    """No example of a benchmark can be asked, such as of triplets without a distractor."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a server takes of a subset whose targets are not public: the first ``places`` entries of each query.

    file: its name. entry: what is written of an entry, from the name of its file without suffix. header: further
    members of the JSON object.
    """

    file: str
    places: int
    entry: Callable[[str], str | int] = str
    header: Mapping[str, str] = field(default_factory=dict)


class Reader(Benchmark, ABC):
    """One benchmark as it lies in a folder.

    name, title, citation, metrics, asks, apart: as `evaluation.examples.Benchmark`. expects: the files that are looked
    for; obtained: where people get them; both for messages. licence: of the release, as it says. counts: examples of
    the release by subset, where they are known. submissions: by subset, where a server has the targets. remedies: what
    to do where all examples are left out, by the reason; `obtained` for others. image_folders: where images are looked
    for first. captions_only: as `evaluation.benchmarks.open_benchmark`. categories: those read; all when empty.
    """

    expects: ClassVar[str]
    obtained: ClassVar[str]
    licence: ClassVar[str] = "none stated"
    counts: ClassVar[Mapping[str, int]] = {}
    metrics: Sequence[str] = ()
    submissions: ClassVar[Mapping[str, Submission]] = {}
    remedies: ClassVar[Mapping[str, str]] = {}
    image_folders: ClassVar[Sequence[str]] = ()
    captions_only = False
    categories: frozenset[str] = frozenset()

    def __init__(self, data: Path | str, subsets: Sequence[str] = ()) -> None:
        """
        Args:
            data: the folder.
            subsets: those that are read, in this order; all that lie there when empty.

        Raises:
            WrongUse: the folder is absent, holds nothing of the benchmark, or lacks a subset.
        """
        self.data, self.place = Path(data), str(data)
        self._check_place()
        found = self.found()
        if not found:
            raise self.refused("holds no annotation of it")
        for subset in subsets:
            if subset not in found:
                raise WrongUse(f"{data}: no subset {subset!r} of {self.title}; {suggested(subset, found)}")
        self.subsets = tuple(dict.fromkeys(subsets)) or tuple(found)

    @abstractmethod
    def found(self) -> Sequence[str]:
        """The subsets that lie in the folder, in a fixed order."""

    @abstractmethod
    def files(self) -> Sequence[Path]:
        """The annotation files that `items` reads, of all chosen subsets."""

    @abstractmethod
    def items(self, subset: str) -> Iterator[Item]:
        """The examples of a subset, and what is left out of it, in a fixed order; streams."""

    def examples(self) -> Iterator[Item]:
        """As `evaluation.examples.Benchmark.examples`. Raises `WrongUse`: a file is not what it should be, a subset is
        empty, every example is left out, or two examples have one key.
        """
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
                what = f"has no {' or '.join(sorted(self.categories))}" if self.categories else "is empty"
                raise WrongUse(f"{self.place}: subset {subset!r} of {self.title} {what}; {self.obtained}")
        if not keys:
            why = f"all {left_out:,} examples are left out, the first because of {first.where}: {first.reason}"
            if (remedy := self.remedies.get(first.reason)) is not None:
                raise NothingAsked(f"{self.place}: {why}; {remedy}")
            raise NothingAsked(str(self.refused(why)))

    def digest(self) -> str:
        """sha256 over the annotation files of the chosen subsets. Of images in folders only the names are read."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return self.digest_of({self.relative(path): sha256_of_file(path)[0] for path in self.files()})

    def digest_of(self, read: object) -> str:
        """sha256 of what was read, as JSON, with the name of the benchmark and its subsets."""
        name = type(self).name  # of the reader: a part of what twinset built has a name of its own
        described = {"benchmark": name, "version": VERSION, "subsets": list(self.subsets), "read": read}
        described |= {"categories": sorted(self.categories)} if self.categories else {}
        described |= {"asks": self.asks} if self.asks else {}
        return hashlib.sha256(canonical_json(described)).hexdigest()

    @cached_property
    def images(self) -> Images:
        """The images below the folder, which is walked once."""
        return UnreadImages() if self.captions_only else Images(self.data, self.image_folders)

    def relative(self, path: Path) -> str:
        """A file below the folder as messages and keys name it."""
        return path.relative_to(self.data).as_posix()

    def refused(self, problem: str) -> WrongUse:
        """The error for a folder that is not the benchmark: what it should hold, and where that can be had."""
        return WrongUse(f"{self.place}: {problem} ({self.title}). Expected: {self.expects}. {self.obtained}")

    def in_folders(self, name: str, *folders: str) -> Path | None:
        """The first file of a name in one of some folders of the data."""
        return next((path for folder in folders if (path := self.data / folder / name).is_file()), None)

    def _check_place(self) -> None:
        if not self.data.is_dir():
            raise self.refused("there is no such folder")


class FileReader(Reader):
    """A benchmark whose subsets are in annotation files.

    every: all subsets, in order. folders: below that of the data, in which their files are looked for.
    """

    every: ClassVar[Sequence[str]]
    folders: ClassVar[Sequence[str]] = ("",)

    @abstractmethod
    def file_name(self, subset: str) -> str:
        """The name of the file of a subset."""

    def found(self) -> Sequence[str]:
        return [subset for subset in self.every if self.in_folders(self.file_name(subset), *self.folders)]

    def files(self) -> Sequence[Path]:
        return list(dict.fromkeys(map(self.file, self.subsets)))

    def file(self, subset: str) -> Path:
        """The file of a subset; raises `WrongUse` where it is gone since the benchmark was opened."""
        path = self.in_folders(self.file_name(subset), *self.folders)
        if path is None:
            raise self.refused(f"{self.file_name(subset)} is gone since it was opened")
        return path


def image_group(name: str) -> str:
    """The group of an image by the name of its file; COCO called the same image differently in 2014 and 2017."""
    stem = PurePosixPath(name).stem
    for prefix in COCO_PREFIXES:
        stem = stem.removeprefix(prefix)
    return stem


def all_alike(gallery: Sequence[str], targets: Iterable[int]) -> frozenset[int]:
    """Targets, and the other entries that say the same as one of them: they cannot be wrong."""
    said = {gallery[target] for target in targets}
    return frozenset(place for place, text in enumerate(gallery) if text in said)
