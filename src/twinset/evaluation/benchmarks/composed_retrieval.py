"""Which image of a gallery is meant by a reference and a text that changes it: GeneCIS, CIRR, CIRCO, MIT-States."""

from collections.abc import Iterator, Mapping, Sequence
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


class ImageSet(BaseModel):
    """The six images that one of CIRR's was collected with."""

    id: StrictInt
    members: list[Text]


class Modified(BaseModel):
    """A record of CIRR. In the test split a caption is blank, whose answer the server wants too; targets are absent."""

    pairid: StrictInt
    reference: Text
    caption: str = Field(min_length=1)
    img_set: ImageSet
    target_hard: str = ""


MODIFIED = TypeAdapter(Modified)
GLOBAL, SUBSET = "global", "subset"
MISSING_ENTRY = "missing gallery image"  # every query is asked among fewer


class Cirr(Reader):
    """Captions of the validation split (Liu et al., 2021), which has public targets; images are NLVR2's dev images.

    ``global`` ranks all images of the split, without the reference; ``subset`` the other five members of the
    reference's set (Recall_subset). The target is ``target_hard``.
    """

    name, title = "cirr", "CIRR (2021), validation"
    citation, licence = "https://arxiv.org/abs/2108.04024", "MIT"
    counts: ClassVar = {GLOBAL: 4181, SUBSET: 4181}
    expects = "captions/cap.rc2.val.json, image_splits/split.rc2.val.json, and the images dev-….png in a folder below"
    obtained = "Annotations: branch cirr_dataset of the repository Cuberick-Orion/CIRR; images: from NLVR2's authors"
    apart = True
    files: ClassVar = dict.fromkeys((GLOBAL, SUBSET), "cap.rc2.val.json")
    folders: ClassVar[Sequence[str]] = ("", "captions", "cirr/captions")
    listing = "split.rc2.val.json"  # names all images of the split
    listing_folders: ClassVar[Sequence[str]] = ("", "image_splits", "cirr/image_splits")

    def listed(self, path: Path) -> Iterator[str]:
        """The names of the images of the gallery."""
        return (name for _, name, _ in read_values(path))

    def annotations(self) -> Sequence[Path]:
        return [*super().annotations(), *filter(None, [self._listing])]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing leave the gallery, and with them the queries that need them."""
        if subset != SUBSET:
            absent = (name for name, picture in self._pictures.items() if picture is None)
            yield from (LeftOut(f"{self._listing}: {name}", MISSING_ENTRY) for name in absent)
        yield from super().items(subset)

    def example(self, row: Row) -> Item:
        record = checked(row.fields, MODIFIED, row.where)
        if not (record.target_hard and record.caption.strip()) and not self.submissions:
            raise WrongUse(f"{row.where}: no target_hard or no caption; {REFETCH}")
        members = record.img_set.members if row.subset == SUBSET else []
        asked = [name for name in (record.reference, record.target_hard) if name]
        shown = {name: self._shown(name, row.where) for name in (*asked, *members)}
        gallery, places = self._gallery
        if members:
            gallery, places = [shown[name] for name in members], {name: at for at, name in enumerate(members)}
        if len({*asked}) < len(asked) or not places.keys() >= {*asked}:
            raise WrongUse(f"{row.where}: reference and target are not two images of its gallery; {REFETCH}")
        reference, *targets = asked
        return Query(
            key=f"{row.subset}/{record.pairid}",
            subset=row.subset,
            group=f"set-{record.img_set.id}",
            image=shown[reference],
            text=record.caption,
            gallery=gallery,
            targets=frozenset(places[name] for name in targets),
            excluded=frozenset({places[reference]}),
        )

    def _shown(self, name: str, where: str) -> Picture:
        if name not in self._pictures:
            raise WrongUse(f"{where}: {name!r} is not an image of {self._listing}; fetch both files again")
        if (picture := self._pictures[name]) is None:
            raise AbsentImage(name)
        return picture

    @cached_property
    def _listing(self) -> Path | None:
        return self.in_folders(self.listing, *self.listing_folders)

    @cached_property
    def _pictures(self) -> Mapping[str, Picture | None]:
        """The images of the split by name; None where one is missing."""
        if self._listing is None:
            raise self.refused(f"lacks {self.listing}")
        return {name: self.images.find(name, str(self._listing)) for name in self.listed(self._listing)}

    @cached_property
    def _gallery(self) -> tuple[Sequence[Picture], Mapping[str, int]]:
        there = {name: picture for name, picture in self._pictures.items() if picture is not None}
        return tuple(there.values()), {name: at for at, name in enumerate(there)}


class CirrTest(Cirr):
    """Captions of the test split without targets, whose answers a server measures."""

    name, title = "cirr-test", "CIRR (2021), test"
    counts: ClassVar = {GLOBAL: 4148, SUBSET: 4148}
    expects = "captions/cap.rc2.test1.json, image_splits/split.rc2.test1.json, and the images test1-….png below"
    files: ClassVar = dict.fromkeys((GLOBAL, SUBSET), "cap.rc2.test1.json")
    listing = "split.rc2.test1.json"
    submissions: ClassVar = {
        GLOBAL: Submission("recall.json", 50, {"version": "rc2", "metric": "recall"}),
        SUBSET: Submission("recall_subset.json", 3, {"version": "rc2", "metric": "recall_subset"}),
    }


class SeveralTargets(BaseModel):
    """A record of CIRCO. Aspects are absent from the first release, targets from the test split."""

    id: StrictInt
    reference_img_id: StrictInt
    relative_caption: Text
    semantic_aspects: tuple[Text, ...] = ()
    gt_img_ids: list[StrictInt] = []


class ListedImage(BaseModel):
    """An image of COCO's list."""

    file_name: Text


SEVERAL, LISTED = TypeAdapter(SeveralTargets), TypeAdapter(ListedImage)


class Circo(Cirr):
    """Several targets a query among COCO's 123,403 unlabelled images (Baldrati et al., 2023): mean average precision.

    The released evaluation ranks all images, the reference too. Its recall is about the first target alone; here it is
    about any of them.
    """

    name, title = "circo", "CIRCO (2023), validation"
    citation, licence = "https://arxiv.org/abs/2303.15247", "CC BY-NC 4.0"
    counts: ClassVar = {"val": 220}
    metrics, apart = ("map", "semantic-map"), False
    expects = "annotations/val.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"
    obtained = "The annotations are in the repository miccunifi/CIRCO, list and images at COCO's site"
    files: ClassVar = {"val": "val.json"}
    folders: ClassVar[Sequence[str]] = ("", "annotations")
    listing = "image_info_unlabeled2017.json"
    listing_folders = ("", "annotations", "COCO2017_unlabeled/annotations")

    def listed(self, path: Path) -> Iterator[str]:
        return (checked(image, LISTED, where).file_name for where, _, image in read_values(path, "images"))

    def example(self, row: Row) -> Item:
        record = checked(row.fields, SEVERAL, row.where)
        if not record.gt_img_ids and not self.submissions:
            raise WrongUse(f"{row.where}: no gt_img_ids; {REFETCH}")
        numbers = (record.reference_img_id, *record.gt_img_ids)
        reference, *targets = (f"{number:0{COCO_DIGITS}d}.jpg" for number in numbers)
        shown = {name: self._shown(name, row.where) for name in (reference, *targets)}
        gallery, places = self._gallery
        return Query(
            key=f"{row.subset}/{record.id}",
            subset=row.subset,
            group=reference.partition(".")[0],
            image=shown[reference],
            text=record.relative_caption,
            gallery=gallery,
            targets=frozenset(places[name] for name in targets),
            tags=record.semantic_aspects,
        )


class CircoTest(Circo):
    """Queries without targets, whose answers a server measures: ``{QUERY: [NUMBER of 50 images]}``."""

    name, title = "circo-test", "CIRCO (2023), test"
    counts: ClassVar = {"test": 800}
    expects = "annotations/test.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"
    files: ClassVar = {"test": "test.json"}
    submissions: ClassVar = {"test": Submission("test.json", 50, entry=int)}


# The test split of Vo et al. (2019), which GeneCIS takes over (Table 3): nouns that training never shows.
_NOUNS = """
armor bracelet bush camera candy castle ceramic cheese clock clothes coffee fan fig fish foam forest fruit furniture
garden gate glass horse island laptop lead lightning mirror orange paint persimmon plastic plate potato road rubber
sand shell sky smoke steel stream table tea tomato vacuum wax wheel window wool
"""
NOUNS = frozenset(_NOUNS.split())


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
        shown: list[tuple[str, str, Picture]] = []  # adjective and noun of each image of the gallery
        for folder, files in self._files.items():
            adjective, noun = folder.name.split(" ")
            for path in files:
                picture = self.images.find(self.relative(path), str(path))
                if picture is None:  # a link to nothing
                    yield LeftOut(str(path), MISSING)
                else:
                    shown.append((adjective, noun, picture))
        gallery = [picture for _, _, picture in shown]
        places: dict[str, dict[str, list[int]]] = {}  # in the gallery, by noun and adjective
        for place, (adjective, noun, _) in enumerate(shown):
            places.setdefault(noun, {}).setdefault(adjective, []).append(place)
        for place, (adjective, noun, picture) in enumerate(shown):
            group = f"{adjective} {noun}/{Path(picture.where).name}"
            for wanted, targets in places[noun].items():
                if wanted != adjective:
                    yield Query(
                        key=f"{group}/{wanted}",
                        subset=subset,
                        group=group,
                        category=noun,
                        image=picture,
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
    return noun in NOUNS and adjective not in ("", "adj")  # which stands for no particular state
