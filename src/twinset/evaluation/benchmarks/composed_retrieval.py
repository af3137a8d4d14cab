"""Which image of a gallery is meant by a reference and a text that changes it: GeneCIS, CIRR and MIT-States."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field, StrictFloat, StrictInt, TypeAdapter

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.pictures import image_folders
from twinset.evaluation.benchmarks.reader import MISSING, AbsentImage, Item, Reader, Submission
from twinset.evaluation.benchmarks.rows import REFETCH, Row, Text, checked, read_values
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.generators.record_fields import Name
from twinset.shards.media.media_folder import COCO_DIGITS


class Entry(BaseModel):
    """An image of a template: a whole one of COCO, or a box of one of Visual Genome."""

    val_image_id: Name | None = None
    image_id: Name | None = None
    instance_bbox: tuple[StrictFloat, StrictFloat, StrictFloat, StrictFloat] | None = None


class Template(BaseModel):
    """A record of GeneCIS."""

    condition: Text
    reference: Entry
    target: Entry
    gallery: list[Entry] = Field(min_length=1)


TEMPLATE = TypeAdapter(Template)


class GeneCis(Reader):
    """``TASK.json``: ``[{condition, reference, target, gallery}]``, as released (Vaze et al., 2023) and as exported.

    Attribute tasks show crops of Visual Genome's images, object tasks whole images of COCO's val2017. The target stands
    first, the gallery follows in the order of the file, as in the released loader. A gallery image that is the target
    again is right too.
    """

    name, title = "genecis", "GeneCIS (2023)"
    citation, licence = "https://arxiv.org/abs/2306.07969", "CC BY-NC 4.0"
    counts: ClassVar = {"focus-attribute": 2000, "change-attribute": 2112, "focus-object": 1960, "change-object": 1960}
    expects = (
        "focus_attribute.json, change_attribute.json, focus_object.json or change_object.json, and in folders below "
        "the images of Visual Genome (1.jpg …) and COCO val2017 (000000000139.jpg …)"
    )
    obtained = "The templates are in the folder genecis of the repository facebookresearch/genecis"
    files: ClassVar = {task: f"{task.replace('-', '_')}.json" for task in counts}
    folders, packings = ("", "genecis"), ("",)

    def example(self, row: Row) -> Item:
        template = checked(row.fields, TEMPLATE, row.where)
        group, image = self._shown(row, template.reference)
        gallery = [self._shown(row, entry)[1] for entry in (template.target, *template.gallery)]
        return Query(
            key=f"{row.subset}/{int(row.number):05d}",
            subset=row.subset,
            group=group,  # 1,960 templates of Change an Object have 218 references
            category=row.subset,
            image=image,
            text=template.condition,
            gallery=gallery,
            targets=frozenset(at for at, picture in enumerate(gallery) if picture.where == gallery[0].where),
        )

    def _shown(self, row: Row, entry: Entry) -> tuple[str, Picture]:
        """The name of an image's file, and the picture that a template shows of it."""
        if entry.val_image_id is not None:  # both data sets may lie here, and both have an image 139
            name = f"{entry.val_image_id.zfill(COCO_DIGITS)}.jpg"
            return name, self.named(row, name)
        if entry.image_id is None or entry.instance_bbox is None:
            raise WrongUse(f"{row.where}: an image has neither val_image_id nor image_id, instance_bbox; {REFETCH}")
        name = f"{entry.image_id}.jpg"
        return name, self.named(row, name, box=entry.instance_bbox)


@dataclass(frozen=True, slots=True)
class Question:
    """What a row of `Galleries` asks, images by their names. members: its own gallery; that of all when empty."""

    key: int
    group: str
    reference: str
    text: str
    targets: Sequence[str]
    members: Sequence[str] = ()
    tags: tuple[str, ...] = ()


class Galleries(Reader):
    """Queries of an image with a text that rank one gallery of listed images, or a few of these each.

    listing: file of all images, in one of ``listing_folders``. excluding: whether the reference is not ranked.
    """

    listing: ClassVar[str]
    listing_folders: ClassVar[Sequence[str]] = ("", "annotations")
    excluding: ClassVar[bool] = False

    @abstractmethod
    def listed(self, path: Path) -> Iterable[str]:
        """The names of the images of the gallery."""

    @abstractmethod
    def question(self, row: Row) -> Question:
        """What a row asks."""

    def found(self) -> Sequence[str]:
        return super().found() if self.in_folders(self.listing, *self.listing_folders) else []

    def annotations(self) -> Sequence[Path]:
        return [*super().annotations(), self._pictures[0]]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing leave the gallery, and with them the queries that need them."""
        path, pictures = self._pictures
        yield from (LeftOut(f"{path}: {name}", "missing gallery image") for name in pictures if pictures[name] is None)
        yield from super().items(subset)

    def example(self, row: Row) -> Item:
        asked, (path, pictures) = self.question(row), self._pictures
        names = [asked.reference, *asked.targets, *asked.members]
        if unknown := [name for name in names if name not in pictures]:
            raise WrongUse(f"{row.where}: {unknown[0]!r} is not an image of {path}; fetch both files again")
        if absent := [name for name in names if pictures[name] is None]:
            raise AbsentImage(absent[0])
        gallery, places = self._gallery
        if asked.members:
            gallery = [picture for name in asked.members if (picture := pictures[name]) is not None]
            places = {name: at for at, name in enumerate(asked.members)}
        if not {asked.reference, *asked.targets} <= places.keys():
            raise WrongUse(f"{row.where}: reference and target are not images of its gallery; {REFETCH}")
        if self.excluding and asked.reference in asked.targets:
            raise WrongUse(f"{row.where}: reference and target are one image; {REFETCH}")
        return Query(
            key=f"{row.subset}/{asked.key}",
            subset=row.subset,
            group=asked.group,
            image=pictures[asked.reference],
            text=asked.text,
            gallery=gallery,
            targets=frozenset(places[name] for name in asked.targets),
            excluded=frozenset({places[asked.reference]} if self.excluding else ()),
            tags=asked.tags,
        )

    @cached_property
    def _pictures(self) -> tuple[Path, Mapping[str, Picture | None]]:
        """The list, and the images that it names."""
        path = self.in_folders(self.listing, *self.listing_folders)
        if path is None:
            raise self.refused(f"{self.listing} is gone since it was opened")
        return path, {name: self.images.find(name, str(path)) for name in self.listed(path)}

    @cached_property
    def _gallery(self) -> tuple[Sequence[Picture], Mapping[str, int]]:
        there = {name: picture for name, picture in self._pictures[1].items() if picture is not None}
        return tuple(there.values()), {name: at for at, name in enumerate(there)}


class ImageSet(BaseModel):
    """The six images that one of CIRR's was collected with."""

    id: StrictInt
    members: list[Text]


class Modified(BaseModel):
    """A record of CIRR's test split. A caption of the release is blank, and the server wants its answer too."""

    pairid: StrictInt
    reference: Text
    caption: str = Field(min_length=1)
    img_set: ImageSet
    target_hard: str = ""


class Aimed(Modified):
    """A record of the other splits."""

    caption: Text
    target_hard: Text


GLOBAL, SUBSET = "global", "subset"


class Cirr(Galleries):
    """Captions of the validation split (Liu et al., 2021), which has public targets; images are NLVR2's dev images.

    ``global`` ranks all images of the split, without the reference; ``subset`` the other five members of the
    reference's set (Recall_subset). The target is ``target_hard``.
    """

    name, title = "cirr", "CIRR (2021), validation"
    citation, licence = "https://arxiv.org/abs/2108.04024", "MIT"
    counts: ClassVar = {GLOBAL: 4181, SUBSET: 4181}
    expects = "captions/cap.rc2.val.json, image_splits/split.rc2.val.json, and the images dev-….png in a folder below"
    obtained = "Annotations: branch cirr_dataset of the repository Cuberick-Orion/CIRR; images: from NLVR2's authors"
    apart = excluding = True
    folders = ("", "captions", "cirr/captions")
    listing_folders = ("", "image_splits", "cirr/image_splits")
    split: ClassVar[str] = "val"
    form: ClassVar[TypeAdapter[Modified]] = TypeAdapter(Aimed)

    @property
    def listing(self) -> str:  # type: ignore[override]
        return f"split.rc2.{self.split}.json"

    def layout(self) -> Mapping[str, str]:
        return dict.fromkeys((GLOBAL, SUBSET), f"cap.rc2.{self.split}.json")

    def listed(self, path: Path) -> Iterable[str]:
        return (name for _, name, _ in read_values(path))

    def items(self, subset: str) -> Iterator[Item]:
        return super().items(subset) if subset == GLOBAL else Reader.items(self, subset)

    def question(self, row: Row) -> Question:
        record = checked(row.fields, self.form, row.where)
        targets = [record.target_hard] if record.target_hard else []
        members, group = record.img_set.members if row.subset == SUBSET else (), f"set-{record.img_set.id}"
        return Question(record.pairid, group, record.reference, record.caption, targets, members)


class CirrTest(Cirr):
    """Captions of the test split without targets, whose answers a server measures."""

    name, title = "cirr-test", "CIRR (2021), test"
    counts: ClassVar = {GLOBAL: 4148, SUBSET: 4148}
    expects = "captions/cap.rc2.test1.json, image_splits/split.rc2.test1.json, and the images test1-….png below"
    split = "test1"
    form = TypeAdapter(Modified)
    submissions: ClassVar = {
        GLOBAL: Submission("recall.json", 50, header={"version": "rc2", "metric": "recall"}),
        SUBSET: Submission("recall_subset.json", 3, header={"version": "rc2", "metric": "recall_subset"}),
    }


# The test split of Vo et al. (2019), which GeneCIS takes over (Table 3): nouns that training never shows.
_NOUNS = """
armor bracelet bush camera candy castle ceramic cheese clock clothes coffee fan fig fish foam forest fruit furniture
garden gate glass horse island laptop lead lightning mirror orange paint persimmon plastic plate potato road rubber
sand shell sky smoke steel stream table tea tomato vacuum wax wheel window wool
"""
NOUNS = frozenset(_NOUNS.split())
ANY_STATE = "adj"  # folders of a noun in no particular state


class MitStates(Reader):
    """``images/ADJECTIVE NOUN/*.jpg``: the names of the folders are the annotation (Isola et al., 2015).

    Every image of a test noun asks for every other adjective of that noun, with the adjective alone as its text. All
    test images but the reference are ranked, and any image of the wanted adjective and noun is right.
    """

    name, title = "mit-states", "MIT-States (2015), compositional retrieval"
    citation = "https://arxiv.org/abs/1812.07119"
    expects = "images/ADJECTIVE NOUN/….jpg, such as 'images/ancient castle/castle.jpg'"
    obtained = "It is the release of 'Discovering States and Transformations in Image Collections' at MIT"

    def found(self) -> Sequence[str]:
        return ["test"] if self._files else []

    def digest(self) -> str:
        """sha256 over the names of all test images, which say what they show."""
        return self.digest_of({folder.name: [path.name for path in files] for folder, files in self._files.items()})

    def items(self, subset: str) -> Iterator[Item]:
        gallery: list[Picture] = []
        places: dict[str, dict[str, list[int]]] = {}  # in the gallery, by noun and adjective
        for folder, files in self._files.items():
            adjective, noun = folder.name.split(" ")
            for path in files:
                picture = self.images.find(self.relative(path), str(path))
                if picture is None:  # a link to nothing
                    yield LeftOut(str(path), MISSING)
                    continue
                places.setdefault(noun, {}).setdefault(adjective, []).append(len(gallery))
                gallery.append(picture)
        for folder in self._files:
            adjective, noun = folder.name.split(" ")
            for place in places.get(noun, {}).get(adjective, ()):
                group = f"{adjective} {noun}/{Path(gallery[place].where).name}"
                for wanted, targets in places[noun].items():
                    if wanted != adjective:
                        yield Query(
                            key=f"{group}/{wanted}",
                            subset=subset,
                            group=group,
                            category=noun,
                            image=gallery[place],
                            text=wanted,
                            gallery=gallery,
                            targets=frozenset(targets),
                            excluded=frozenset({place}),
                        )

    @cached_property
    def _files(self) -> Mapping[Path, list[Path]]:
        """Folders of test nouns in a known state, each with its images."""
        return image_folders(self.data, ("images", "release_dataset/images", "."), _is_test_state)


def _is_test_state(name: str) -> bool:
    adjective, _, noun = name.partition(" ")
    return noun in NOUNS and adjective not in ("", ANY_STATE)
