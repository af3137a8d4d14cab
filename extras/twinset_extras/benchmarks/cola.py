"""Cola's single objects: images of an object with several attributes, among those that have some of these."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.benchmarks.rows import REFETCH
from twinset.evaluation.examples import LeftOut, Query
from twinset.generators.annotation_files import read_json


class ColaSingle(Reader):
    """Each of the classes, such as ``square white plate``, among the images of its hard list (Ray et al., 2023).

    Average precision is over all of these, as in the released evaluation; classes without a right image are left out.
    An image that is missing leaves all galleries.
    """

    name = "cola-single"
    title = "Cola, single objects (2023)"
    citation = "https://arxiv.org/abs/2305.03689"
    licence = "MIT"
    metrics = ("average-precision",)
    expects = "COLA_singleobjects_benchmark_GQA.json, _CLEVR.json or _PACO.json, and the images that they name below"
    obtained = "The annotations are in the folder data of the repository arijitray1993/COLA"
    files: ClassVar = {name.lower(): f"COLA_singleobjects_benchmark_{name}.json" for name in ("GQA", "CLEVR", "PACO")}

    def items(self, subset: str) -> Iterator[Item]:
        (path,) = self.paths(subset)
        where, held = str(path), read_json(path)
        if isinstance(held, Mapping):
            held = [held.get("labels"), held.get("data")]
        if not isinstance(held, list) or len(held) != 2 or not all(isinstance(half, list) for half in held):
            raise WrongUse(f"{where}: not a list of labels and a list of images; {REFETCH}")
        labels, rows = held
        if not all(isinstance(label, str) and label.strip() for label in labels):
            raise WrongUse(f"{where}: a label is not a text; {REFETCH}")
        names = [_name(row, f"{where} image {number}") for number, row in enumerate(rows)]
        right, hard = (_flags(rows, at, len(labels), where) for at in (-2, -1))
        refs = [self.images.find(name, where) for name in names]
        yield from (LeftOut(f"{where}: {name}", MISSING) for name, ref in zip(names, refs, strict=True) if ref is None)
        there = np.array([ref is not None for ref in refs], np.bool_)
        for number, label in enumerate(labels):
            places = np.flatnonzero(hard[:, number] & there)
            targets = frozenset(np.flatnonzero(right[places, number]).tolist())
            if not targets:
                yield LeftOut(f"{where}: {label}", "no right image")
                continue
            yield Query(
                key=f"{subset}/{number}",
                subset=subset,
                group=f"{subset}/{label}",
                image=None,
                text=label,
                gallery=[ref for at in places if (ref := refs[at]) is not None],
                targets=targets,
            )


def _name(row: Any, where: str) -> str:
    """The last part of an image's path or address."""
    if not isinstance(row, list) or len(row) not in (3, 4) or not isinstance(row[0], str) or not row[0]:
        raise WrongUse(f"{where}: not an image with its labels and its hard list; {REFETCH}")
    return PurePosixPath(row[0]).name


def _flags(rows: Sequence[list[Any]], at: int, count: int, where: str) -> NDArray[np.bool_]:
    """A list of 0 and 1 of each image, one a label, shape (images, labels)."""
    flags_of = np.zeros((len(rows), count), np.bool_)
    for number, row in enumerate(rows):
        flags = row[at]
        if not isinstance(flags, list) or len(flags) != count or not all(flag in (0, 1) for flag in flags):
            raise WrongUse(f"{where} image {number}: not {count} labels of 0 or 1; {REFETCH}")
        flags_of[number] = flags
    return flags_of
