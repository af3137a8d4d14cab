"""Which image of a gallery is meant by a reference and a text that changes it: GeneCIS, CIRR and MIT-States."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, list_of, number_of, object_of, text_of
from twinset.evaluation.benchmarks.pictures import Images
from twinset.evaluation.benchmarks.reader import MISSING, FileReader, Item, Reader, Submission
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.shards.media.media_folder import COCO_DIGITS, IMAGE_SUFFIXES


class GeneCis(FileReader):
    """``TASK.json``: ``[{condition, reference, target, gallery}]``, as released (Vaze et al., 2023) and as exported.

    Attribute tasks show crops of Visual Genome's images (``image_id``, ``instance_bbox``), object tasks whole images of
    COCO's val2017 (``val_image_id``). The target stands first, the gallery follows in the order of the file, as in
    the released loader. A gallery image that is the target again is right too.
    """

    name = "genecis"
    title = "GeneCIS (2023)"
    citation = "https://arxiv.org/abs/2306.07969"
    licence = "CC BY-NC 4.0"
    counts: ClassVar = {"focus-attribute": 2000, "change-attribute": 2112, "focus-object": 1960, "change-object": 1960}
    expects = (
        "focus_attribute.json, change_attribute.json, focus_object.json or change_object.json, and in folders below "
        "the images of Visual Genome (1.jpg …) and COCO val2017 (000000000139.jpg …)"
    )
    obtained = "The templates are in the folder genecis of the repository facebookresearch/genecis"

    every = ("focus-attribute", "change-attribute", "focus-object", "change-object")
    folders = ("", "genecis")

    def file_name(self, subset: str) -> str:
        return f"{subset.replace('-', '_')}.json"

    def items(self, subset: str) -> Iterator[Item]:
        path = self.file(subset)
        for number, record in json_items(path):
            where = f"{path} record {number}"
            condition = text_of(record, "condition", where)
            entries = [record.get("reference"), record.get("target"), *list_of(record, "gallery", where)]
            if len(entries) < 3:
                raise WrongUse(f"{where}: its gallery is empty; fetch the file again")
            shown = [_picture(entry, self.images, where) for entry in entries]
            names, pictures = zip(*shown, strict=True)
            if None in pictures:
                yield LeftOut(f"{where}: {names[pictures.index(None)]}", MISSING)
                continue
            gallery = [one for one in pictures[1:] if one is not None]
            yield Query(
                key=f"{subset}/{int(number):05d}",
                subset=subset,
                group=names[0],  # 1,960 templates of Change an Object have 218 references
                category=subset,
                image=pictures[0],
                text=condition,
                gallery=gallery,
                targets=frozenset(at for at, one in enumerate(gallery) if one.where == gallery[0].where),
            )


def _picture(entry: Any, images: Images, where: str) -> tuple[str, Picture | None]:
    """The name of an image's file, and the picture that a template shows of it."""
    fields = object_of(entry, f"{where}, an image of it")
    number = fields.get("val_image_id", fields.get("image_id"))
    if not isinstance(number, int | str) or isinstance(number, bool):
        raise WrongUse(f"{where}: an image has neither val_image_id nor image_id; fetch the file again")
    if "val_image_id" in fields:
        # Both data sets may lie here, and both have an image 139.
        name = f"{str(number).zfill(COCO_DIGITS)}.jpg"
        return name, images.find(name, where)
    box = fields.get("instance_bbox")
    if not isinstance(box, list) or len(box) != 4 or not all(type(side) in (int, float) for side in box):
        raise WrongUse(f"{where}: instance_bbox is not [x, y, width, height]; fetch the file again")
    x, y, width, height = map(float, box)
    return f"{number}.jpg", images.find_crop(f"{number}.jpg", (x, y, width, height), where)


GLOBAL, SUBSET = "global", "subset"


class Cirr(FileReader):
    """Captions of the validation split (Liu et al., 2021), which has public targets; images are NLVR2's dev images.

    ``global`` ranks all images of the split, without the reference; ``subset`` the other five members of the
    reference's set (Recall_subset). The target is ``target_hard``.
    """

    name = "cirr"
    title = "CIRR (2021), validation"
    citation = "https://arxiv.org/abs/2108.04024"
    expects = "captions/cap.rc2.val.json, image_splits/split.rc2.val.json, and the images dev-….png in a folder below"
    obtained = "Annotations: branch cirr_dataset of the repository Cuberick-Orion/CIRR; images: from NLVR2's authors"

    licence = "MIT"
    counts: ClassVar = {GLOBAL: 4181, SUBSET: 4181}

    apart = True
    every = (GLOBAL, SUBSET)
    folders = ("", "captions", "cirr/captions")
    split: ClassVar[str] = "val"

    def file_name(self, subset: str) -> str:
        return f"cap.rc2.{self.split}.json"

    def files(self) -> Sequence[Path]:
        return [*super().files(), *filter(None, [self._split()])]

    def items(self, subset: str) -> Iterator[Item]:
        path = self.file(subset)
        names = self._names(path)
        found = {name: self.images.find(name, str(path)) for name in names}
        there = {name: picture for name, picture in found.items() if picture is not None}
        if subset == GLOBAL:
            for name in sorted(found.keys() - there.keys()):
                yield LeftOut(f"{path}: {name}", "missing gallery image")
        everything, places = tuple(there.values()), {name: at for at, name in enumerate(there)}
        for number, record in json_items(path):
            where = f"{path} record {number}"
            members = _members(record, where)
            reference, targets = text_of(record, "reference", where), self.targets(record, where)
            wanted = {reference, *targets} if subset == GLOBAL else {reference, *members}
            if absent := sorted(wanted - there.keys()):
                if absent[0] not in found:
                    raise WrongUse(f"{where}: {absent[0]!r} is no image of {self._split_name}; fetch both files again")
                yield LeftOut(f"{where}: {absent[0]}", MISSING)
                continue
            gallery: tuple[Picture, ...] = everything
            at: Mapping[str, int] = places
            if subset == SUBSET:
                gallery, at = tuple(there[name] for name in members), {name: n for n, name in enumerate(members)}
            if not {reference, *targets} <= at.keys() or reference in targets:
                raise WrongUse(f"{where}: reference and target are not two images of its gallery; fetch it again")
            yield Query(
                key=f"{subset}/{number_of(record, 'pairid', where)}",
                subset=subset,
                group=f"set-{number_of(record['img_set'], 'id', where)}",
                image=there[reference],
                text=self.caption(record, where),
                gallery=gallery,
                targets=frozenset(at[name] for name in targets),
                excluded=frozenset({at[reference]}),
            )

    def targets(self, record: Any, where: str) -> Sequence[str]:
        """The name of the right image."""
        return [text_of(record, "target_hard", where)]

    def caption(self, record: Any, where: str) -> str:
        """What changes the reference into the target."""
        return text_of(record, "caption", where)

    def _names(self, path: Path) -> Sequence[str]:
        """All images of the split; without its list, all that captions name, which are the same ones in the release."""
        if (split := self._split()) is not None:
            return [name for name, _ in json_items(split)]
        records = ((number, record) for number, record in json_items(path))
        return sorted({name for number, record in records for name in _members(record, f"{path} record {number}")})

    def _split(self) -> Path | None:
        return self.in_folders(self._split_name, "", "image_splits", "cirr/image_splits")

    @property
    def _split_name(self) -> str:
        return f"split.rc2.{self.split}.json"


class CirrTest(Cirr):
    """Captions of the test split without targets, whose answers a server measures."""

    name = "cirr-test"
    title = "CIRR (2021), test"
    counts: ClassVar = {GLOBAL: 4148, SUBSET: 4148}
    expects = "captions/cap.rc2.test1.json, image_splits/split.rc2.test1.json, and the images test1-….png below"
    split = "test1"
    submissions: ClassVar = {
        GLOBAL: Submission("recall.json", 50, header={"version": "rc2", "metric": "recall"}),
        SUBSET: Submission("recall_subset.json", 3, header={"version": "rc2", "metric": "recall_subset"}),
    }

    def targets(self, record: Any, where: str) -> Sequence[str]:
        return ()

    def caption(self, record: Any, where: str) -> str:
        """As it is: a caption of the release is blank, and the server wants its answer too."""
        return str(record.get("caption", "")) or super().caption(record, where)


def _members(record: Any, where: str) -> list[str]:
    members = list_of(object_of(record, where).get("img_set"), "members", where)
    if not all(isinstance(name, str) for name in members):
        raise WrongUse(f"{where}: a member of img_set is not text; fetch the file again")
    return members


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

    name = "mit-states"
    title = "MIT-States (2015), compositional retrieval"
    citation = "https://arxiv.org/abs/1812.07119"
    expects = "images/ADJECTIVE NOUN/….jpg, such as 'images/ancient castle/castle.jpg'"
    obtained = "It is the release of 'Discovering States and Transformations in Image Collections' at MIT"

    def found(self) -> Sequence[str]:
        return ["test"] if self._folders else []

    def files(self) -> Sequence[Path]:
        return []

    def digest(self) -> str:
        """sha256 over the names of all test images, which say what they show."""
        return self.digest_of({folder.name: [path.name for path in files] for folder, files in self._folders.items()})

    def items(self, subset: str) -> Iterator[Item]:
        gallery: list[Picture] = []
        shown: dict[tuple[str, str], list[int]] = {}  # places by noun and adjective
        for folder, files in self._folders.items():
            adjective, noun = folder.name.split(" ")
            for path in files:
                picture = self.images.find(self.relative(path), str(path))
                if picture is None:  # a link to nothing
                    yield LeftOut(str(path), MISSING)
                    continue
                shown.setdefault((noun, adjective), []).append(len(gallery))
                gallery.append(picture)
        targets = {state: frozenset(places) for state, places in shown.items()}
        adjectives: dict[str, list[str]] = {}
        for noun, adjective in shown:
            adjectives.setdefault(noun, []).append(adjective)
        ranked = tuple(gallery)
        for (noun, adjective), places in shown.items():
            for place in places:
                name = Path(ranked[place].where).name
                for wanted in adjectives[noun]:
                    if wanted != adjective:
                        yield Query(
                            key=f"{adjective} {noun}/{name}/{wanted}",
                            subset=subset,
                            group=f"{adjective} {noun}/{name}",
                            category=noun,
                            image=ranked[place],
                            text=wanted,
                            gallery=ranked,
                            targets=targets[noun, wanted],
                            excluded=frozenset({place}),
                        )

    @cached_property
    def _folders(self) -> Mapping[Path, list[Path]]:
        """Folders of test nouns in a known state, each with its images; both in alphabetical order."""
        for parent in ("images", "release_dataset/images", "."):
            found = {}
            for folder in sorted((self.data / parent).glob("* *")):
                words = folder.name.split(" ")
                if len(words) == 2 and words[1] in NOUNS and words[0] != ANY_STATE and folder.is_dir():
                    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
                    if files:
                        found[folder] = files
            if found:
                return found
        return {}
