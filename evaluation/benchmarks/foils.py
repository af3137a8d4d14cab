"""Benchmarks of an image, its caption and a wrong one, with a JSON file for each subset."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evaluation.benchmarks.json_items import json_items, text_of
from evaluation.benchmarks.reader import MISSING, Item, Reader, image_group
from evaluation.examples import LeftOut, Matching

FOLDERS = ("", "data")


class Foils(Reader):
    """``SUBSET.json``, records by number; two subsets may use the same numbers, so keys name the subset.

    every: all subsets, in order. fields: of a record that name image, caption and wrong caption.
    """

    every: ClassVar[Sequence[str]]
    fields: ClassVar[tuple[str, str, str]]

    @abstractmethod
    def refusal(self, record: Any, where: str) -> str | None:
        """Why a record does not count; None if it does. where: file and number, for messages."""

    def found(self) -> Sequence[str]:
        """As `Reader.found`."""
        return [subset for subset in self.every if self._file(subset) is not None]

    def files(self) -> Sequence[Path]:
        """As `Reader.files`."""
        return [path for subset in self.subsets if (path := self._file(subset)) is not None]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`."""
        path = self._file(subset)
        assert path is not None
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

    def _file(self, subset: str) -> Path | None:
        return self.in_folders(f"{subset}.json", *FOLDERS)
