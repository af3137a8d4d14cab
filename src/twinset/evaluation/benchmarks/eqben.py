"""Two images and a caption of each: EqBen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, TypeAdapter

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.pictures import ARRAY
from twinset.evaluation.benchmarks.reader import MISSING, AbsentImage, Item, Reader
from twinset.evaluation.benchmarks.rows import Text, checked, read_values
from twinset.evaluation.examples import LeftOut, Matching, Picture

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


def _first(value: Any) -> Any:
    """Of several captions the first, as in the released loader of Action Genome."""
    return value[0] if isinstance(value, list) and value else value


@dataclass(frozen=True, slots=True)
class Pair:
    """Two images and a caption of each. key: of what twinset exported."""

    image0: Text
    image1: Text
    caption0: Annotated[Text, BeforeValidator(_first)]
    caption1: Annotated[Text, BeforeValidator(_first)]
    key: Any = None


PAIR = TypeAdapter(Pair)
PAIR_FIELDS, SINGLE_FIELDS = {"image0", "image1", "caption0", "caption1"}, {"image", "caption"}


@dataclass(frozen=True, slots=True)
class Found:
    """A pair, the file and the place that it is read from, and its video, empty where the file has none."""

    path: Path
    where: str
    video: str
    pair: Pair


class EqBen(Reader):
    """Images that differ little, in seven subsets (Wang et al., 2023).

    Every JSON file of pairs: ``[pair]``, ``{video: [pair]}`` or ``{video: {object: [pair]}}``.

    A pair is ``{image0, image1, caption0, caption1}``; of a list of captions the first counts, as in the released
    loader. Its subset follows from the first folder of its images. Other JSON is passed over, such as the file of
    single rows in random order. Frames of YouCook2 are arrays, blue first.
    """

    name, title = "eqben", "EqBen (2023)"
    citation = "https://arxiv.org/abs/2303.14465"
    counts: ClassVar = {
        **{"eq-ag": 195872, "eq-gebc": 1814, "eq-youcook2": 45849, "eq-kubric-location": 2000},
        **{"eq-kubric-counting": 2000, "eq-kubric-attribute": 2000, "eq-sd": 1513},
    }
    expects = "annotation/*.json with pairs, and the images in a folder image, or what `export --format eqben` wrote"
    obtained = (
        "The repository Wangt-CN/EqBen links images and annotations: take the original annotation (in Winoground's "
        "style), the 10 % subset or the one for MLLMs, not the randomised one"
    )
    folders = ("", "annotation", "annotations", "ann", "eqben_ann")

    def found(self) -> Sequence[str]:
        """As `Reader.found`, in the paper's order, others last."""
        known = [name for name in SUBSETS.values() if name in self._read]
        return [*known, *sorted(self._read.keys() - {*known})]

    def paths(self, subset: str) -> Sequence[Path]:
        return list(dict.fromkeys(entry.path for entry in self._read[subset]))

    def items(self, subset: str) -> Iterator[Item]:
        files: dict[Pair, Path] = {}
        for number, entry in enumerate(self._read[subset]):
            pair, key = entry.pair, entry.pair.key
            if (first := files.setdefault(replace(pair, key=None), entry.path)) != entry.path:
                raise WrongUse(f"{entry.where}: this pair is in {first} too, and would count twice; remove one file")
            try:
                images = self._find(pair.image0, entry.where), self._find(pair.image1, entry.where)
            except AbsentImage as absent:
                yield LeftOut(f"{entry.where}: {absent}", MISSING)
                continue
            yield Matching(
                key=f"{subset}/{key}" if isinstance(key, str) else f"{subset}/{number:06d}",
                subset=subset,
                group=entry.video or _group_of(subset, pair.image0),
                category=subset,
                images=images,
                captions=(pair.caption0, pair.caption1),
            )

    def _find(self, name: str, where: str) -> Picture:
        """The image of a name; the light release has JPEG under the annotation's names of PNG."""
        if name.endswith(ARRAY):  # arrays are where their path says: they are no images to search for
            paths = [f"{folder}{name}" for folder in ("image/", "images/", "image_subset/", "")]
        else:
            paths = [name, str(PurePosixPath(name).with_suffix(".jpg"))]
        for path in paths:
            if (picture := self.images.find(path, where)) is not None:
                return picture
        raise AbsentImage(name)

    @cached_property
    def _read(self) -> Mapping[str, list[Found]]:
        """The pairs of all files, by subset."""
        names = sorted(path for folder in self.folders for path in (self.data / folder).glob("*.json"))
        by_subset: dict[str, list[Found]] = {}
        for entry in (entry for path in names for entry in _pairs(path)):
            folder = PurePosixPath(entry.pair.image0).parts[0]
            by_subset.setdefault(SUBSETS.get(folder, entry.path.stem), []).append(entry)
        return by_subset


def _pairs(path: Path) -> Iterator[Found]:
    """The pairs of a file; none where it begins with others. Raises `WrongUse` for what is no pair behind one."""
    known = False
    for place, key, value in read_values(path):
        flat = isinstance(value, dict) and value.keys() & (PAIR_FIELDS | SINGLE_FIELDS)
        nested = not flat and isinstance(value, dict | list)
        for where, fields in _of_video(place, value) if nested else [(place, value)]:
            if not known and not (isinstance(fields, dict) and fields.keys() >= PAIR_FIELDS):
                return
            known = True
            yield Found(path, where, key if nested else "", checked(fields, PAIR, where))


def _of_video(place: str, value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """What should be pairs of a video, with places: ``{object: [pair]}`` of Action Genome, ``[pair]`` of others."""
    for name, pairs in (value if isinstance(value, dict) else {"": value}).items():
        for number, pair in enumerate(pairs if isinstance(pairs, list) else [pairs]):
            yield f"{place} {name!r} pair {number}", pair


def _group_of(subset: str, image: str) -> str:
    """The video of a frame where only its path tells: the folder below the subset's. Synthetic pairs share nothing."""
    folders = PurePosixPath(image).parts
    return folders[1] if subset in FILMED and len(folders) > 2 else image
