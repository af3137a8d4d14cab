"""Two images and a caption of each: EqBen."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, number_of, text_of
from twinset.evaluation.benchmarks.pictures import ARRAY, Images
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Matching, Picture
from twinset.generators.annotation_files import read_json

#: The folders of the released images, and the subsets as the paper and twinset's recipes call them.
SUBSETS = {
    "eqbenag": "eq-ag",
    "eqbengebc": "eq-gebc",
    "eqbenyoucook2": "eq-youcook2",
    "eqbenkubric_loc": "eq-kubric-location",
    "eqbenkubric_cnt": "eq-kubric-counting",
    "eqbenkubric_attr": "eq-kubric-attribute",
    "eqbensd": "eq-sd",
}
FILMED = frozenset({"eq-ag", "eq-gebc", "eq-youcook2"})
ANNOTATIONS = ("annotation", "annotations", "ann", "eqben_ann")
ROWS = frozenset({"image", "caption"})  # of the file that the released loader of everything reads
SHUFFLED = "ann_json_finegrained_random.json"
ORDER = ("private_random_idx.json", "private_info.json")  # its repository's src_file lists them
PAIR = frozenset({"image0", "image1", "caption0", "caption1"})


class EqBen(Reader):
    """Images that differ little, in seven subsets (Wang et al., 2023).

    Every JSON file of pairs: ``[pair]``, ``{video: [pair]}`` or ``{video: {object: [pair]}}``.

    A pair is ``{image0, image1, caption0, caption1}``; of a list of captions the first counts, as in the released
    loader. Its subset follows from the first folder of its images. Single rows, ``{image, caption}`` in a random order,
    are put in order by `ORDER` where these lie there too, and are passed over otherwise. Frames of YouCook2 are arrays,
    blue first.
    """

    name = "eqben"
    _shuffled = False  # whether only the rows in random order are there
    image_folders = ("image", "images", "image_subset")
    title = "EqBen (2023)"
    citation = "https://arxiv.org/abs/2303.14465"
    counts: ClassVar = {
        **{"eq-ag": 195872, "eq-gebc": 1814, "eq-youcook2": 45849, "eq-kubric-location": 2000},
        **{"eq-kubric-counting": 2000, "eq-kubric-attribute": 2000, "eq-sd": 1513},
    }
    expects = "annotation/*.json with pairs, and the images in a folder image, or what `export --format eqben` wrote"
    obtained = (
        "The repository Wangt-CN/EqBen links images and annotations: take the original annotation (in Winoground's "
        "style), the 10 % subset or the one for MLLMs; the randomised one needs private_random_idx.json and "
        "private_info.json of its evaluation"
    )

    def found(self) -> Sequence[str]:
        """As `Reader.found`, in the paper's order, others last."""
        there = {subset for subsets in self._files.values() for subset in subsets}
        known = [name for name in SUBSETS.values() if name in there]
        return [*known, *sorted(there - {*known})]

    def files(self) -> Sequence[Path]:
        found = [path for path, subsets in self._files.items() if subsets & {*self.subsets}]
        return [*found, *(self._order if self._shuffled else ())]

    def items(self, subset: str) -> Iterator[Item]:
        numbers = Counter[str]()
        for path, subsets in self._files.items():
            if subset not in subsets:
                continue
            for where, video, pair in _ordered(path, *self._order) if self._shuffled else _pairs(path):
                if _subset_of(pair, path, where) == subset:
                    yield _example(subset, numbers[subset], video, pair, self.images, where)
                    numbers[subset] += 1

    @cached_property
    def _files(self) -> Mapping[Path, frozenset[str]]:
        """Annotation files with the subsets that each has pairs of; all are read through once for it."""
        folders = [self.data, *(self.data / name for name in ANNOTATIONS)]
        paths = sorted(path for folder in folders for path in folder.glob("*.json"))
        found = _by_file(paths, _pairs)
        if not found and self._order:
            self._shuffled = True
            found = _by_file(
                [path for path in paths if path.name == SHUFFLED], lambda path: _ordered(path, *self._order)
            )
        return found

    @cached_property
    def _order(self) -> Sequence[Path]:
        """Both files of `ORDER`, or none."""
        found = [self.in_folders(name, "", "src_file", *ANNOTATIONS) for name in ORDER]
        return [path for path in found if path is not None] if None not in found else []


_Pair = tuple[str, str, Mapping[str, Any]]  # place, video and fields


def _by_file(paths: Sequence[Path], read: Callable[[Path], Iterator[_Pair]]) -> dict[Path, frozenset[str]]:
    """The subsets of each file that has pairs."""
    found = {path: frozenset(_subset_of(pair, path, where) for where, _, pair in read(path)) for path in paths}
    return {path: subsets for path, subsets in found.items() if subsets}


def _ordered(path: Path, order: Path, info: Path) -> Iterator[_Pair]:
    """The pairs of rows in random order: row j is the row ``order[j]`` of the original, which ``info`` tells about, as
    ``evaluate_eqben_locally.py`` has it. Raises `WrongUse` where the three files do not belong together.
    """
    rows, places, told = (read_json(one) for one in (path, order, info))
    whole = all(isinstance(one, list) and len(one) == len(rows) for one in (rows, places, told))
    if not whole or {*map(str, places)} != {*map(str, range(len(rows)))}:
        raise WrongUse(
            f"{order}: not an order of the {len(rows):,} rows of {path}; fetch all three files of one version"
        )
    shuffled = {int(place): at for at, place in enumerate(places)}
    samples: dict[int, dict[str, tuple[str, Mapping[str, Any]]]] = {}
    for place, one in enumerate(told):
        where = f"{info} record {place}"
        number, name = number_of(one, "sample_cnt", where), text_of(one, "name", where)
        samples.setdefault(number, {})[name] = f"{path} record {shuffled[place]}", rows[shuffled[place]]
    for number, of in samples.items():
        names = [f"c{caption}i{image}" for caption in (0, 1) for image in (0, 1)]
        if {*of} != {*names}:
            raise WrongUse(
                f"{info}: sample {number} has {', '.join(sorted(of))}, not {', '.join(names)}; fetch it again"
            )
        said = [[of[name][1].get(field) for name in names] for field in ("caption", "image")]
        if said[0][0] != said[0][1] or said[0][2] != said[0][3] or said[1][0] != said[1][2] or said[1][1] != said[1][3]:
            raise WrongUse(
                f"{of[names[0]][0]}: sample {number} is not two images with two captions; fetch all files again"
            )
        pair = {"image0": said[1][0], "image1": said[1][1], "caption0": said[0][0], "caption1": said[0][3]}
        yield of[names[0]][0], "", pair


def _pairs(path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Place, video ("" where the file has none) and fields of each pair of a file; none where it begins with others.

    Raises `WrongUse` for what is no pair behind one.
    """
    known = False
    for key, value in json_items(path):
        for where, video, pair in _of_record(f"{path} record {key!r}", key, value):
            if not (isinstance(pair, dict) and pair.keys() >= PAIR):
                if known:
                    raise WrongUse(f"{where}: not a pair of two images and two captions; fetch the file again")
                return
            known = True
            yield where, video, pair


def _of_record(where: str, key: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """What should be pairs in one record of a file, with place and video."""
    if not isinstance(value, dict | list) or (isinstance(value, dict) and value.keys() & (PAIR | ROWS)):
        yield where, "", value
        return
    # {object: [pair]} of Action Genome, [pair] of other videos
    for name, pairs in value.items() if isinstance(value, dict) else [("", value)]:
        here = f"{where} {name!r}" if name else where
        for number, pair in enumerate(pairs if isinstance(pairs, list) else [pairs]):
            yield f"{here} pair {number}", key, pair


def _subset_of(pair: Mapping[str, Any], path: Path, where: str) -> str:
    folder = PurePosixPath(text_of(pair, "image0", where)).parts[0]
    return SUBSETS.get(folder, path.stem)


def _example(
    subset: str, number: int, video: str, pair: Mapping[str, Any], images: Images, where: str
) -> Matching | LeftOut:
    names = [text_of(pair, field, where) for field in ("image0", "image1")]
    pictures = [_find(images, name, where) for name in names]
    if None in pictures:
        return LeftOut(f"{where}: {names[pictures.index(None)]}", MISSING)
    key = pair.get("key")
    return Matching(
        key=f"{subset}/{key}" if isinstance(key, str) else f"{subset}/{number:06d}",
        subset=subset,
        group=video or _group_of(subset, names[0]),
        category=subset,
        images=tuple(one for one in pictures if one is not None),
        captions=(_caption(pair, "caption0", where), _caption(pair, "caption1", where)),
    )


def _find(images: Images, name: str, where: str) -> Picture | None:
    """The image of a name; the light release has JPEG under the annotation's names of PNG."""
    if (found := images.find(name, where)) is not None or name.endswith(ARRAY):
        return found
    return images.find(str(PurePosixPath(name).with_suffix(".jpg")), where)


def _caption(pair: Mapping[str, Any], field: str, where: str) -> str:
    """Of several the first, as in the released loader of Action Genome."""
    value = pair.get(field)
    if isinstance(value, list):
        if not value:
            raise WrongUse(f"{where}: no caption in {field!r}; fetch the file again")
        value = value[0]
    return text_of({field: value}, field, where)


def _group_of(subset: str, image: str) -> str:
    """The video of a frame where only its path tells: the folder below the subset's. Synthetic pairs share nothing."""
    folders = PurePosixPath(image).parts
    return folders[1] if subset in FILMED and len(folders) > 2 else image
