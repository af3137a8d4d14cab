"""Queries of an image with a text that all rank one large gallery: CIRCO and LaSCo."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, list_of, text_of
from twinset.evaluation.benchmarks.reader import Item, Submission, image_group
from twinset.evaluation.benchmarks.records import REFETCH, Record, Records, present
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset_extras.benchmarks.one_image import COCO_DIGITS


class Galleries(Records):
    """Records that name images of one gallery.

    listing: file of all images, in one of ``folders``. identity: field of a query's number. excluding: whether the
    reference is not ranked.
    """

    listing: ClassVar[str]
    folders: ClassVar[Sequence[str]] = ("", "annotations")
    identity: ClassVar[str] = "id"
    excluding: ClassVar[bool] = False

    @abstractmethod
    def listed(self, path: Path) -> Iterator[str]:
        """The names of the images of the gallery."""

    def tags(self, record: Record) -> Sequence[str]:
        """Kinds of queries that a record is one of."""
        return ()

    @abstractmethod
    def asked(self, record: Record) -> tuple[str, str, Sequence[str]]:
        """The name of the reference, the text, and the names of all targets."""

    def found(self) -> Sequence[str]:
        return super().found() if self.in_folders(self.listing, *self.folders) else []

    def files(self) -> Sequence[Path]:
        return [*super().files(), *filter(None, [self.in_folders(self.listing, *self.folders)])]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing leave the gallery, and with them the queries that need them."""
        path, found = self._found
        yield from (LeftOut(f"{path}: {name}", "missing gallery image") for name, one in found.items() if one is None)
        yield from super().items(subset)

    def example(self, record: Record) -> Item:
        path, found = self._found
        gallery, places = self._gallery
        reference, text, targets = self.asked(record)
        if unknown := [name for name in (reference, *targets) if name not in found]:
            raise WrongUse(f"{record.where}: {unknown[0]!r} is not an image of {path}; fetch both files again")
        for name in (reference, *targets):
            present(found[name], name)
        return Query(
            key=f"{record.subset}/{record.whole(self.identity)}",
            subset=record.subset,
            group=image_group(reference),
            image=found[reference],
            text=text,
            gallery=gallery,
            targets=frozenset(places[name] for name in targets),
            excluded=frozenset({places[reference]} if self.excluding else ()),
            tags=tuple(self.tags(record)),
        )

    @cached_property
    def _found(self) -> tuple[Path, Mapping[str, Picture | None]]:
        """The list, and the images that it names."""
        path = self.files()[-1]
        return path, {name: self.images.find(name, str(path)) for name in self.listed(path)}

    @cached_property
    def _gallery(self) -> tuple[Sequence[Picture], Mapping[str, int]]:
        there = {name: picture for name, picture in self._found[1].items() if picture is not None}
        return tuple(there.values()), {name: at for at, name in enumerate(there)}


class Circo(Galleries):
    """Several targets a query among COCO's 123,403 unlabelled images (Baldrati et al., 2023): mean average precision.

    The released evaluation ranks all images, the reference too. Its recall is about the first target alone; here it is
    about any of them.
    """

    name = "circo"
    title = "CIRCO (2023), validation"
    citation = "https://arxiv.org/abs/2303.15247"
    licence = "CC BY-NC 4.0"
    counts: ClassVar = {"val": 220}
    metrics = ("map", "semantic-map")
    expects = "annotations/val.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"
    obtained = "The annotations are in the repository miccunifi/CIRCO, list and images at COCO's site"

    every: ClassVar = {"val": "annotations/val.json"}
    listing = "image_info_unlabeled2017.json"
    folders = ("", "annotations", "COCO2017_unlabeled/annotations")

    def listed(self, path: Path) -> Iterator[str]:
        return (text_of(one, "file_name", f"{path} image {number}") for number, one in json_items(path, "images"))

    def tags(self, record: Record) -> Sequence[str]:
        """Its semantic aspects, which the first release lacks."""
        return record.texts("semantic_aspects") if "semantic_aspects" in record.fields else ()

    def asked(self, record: Record) -> tuple[str, str, Sequence[str]]:
        targets = self.targets(record)
        if not all(isinstance(one, int) for one in targets):
            raise WrongUse(f"{record.where}: gt_img_ids are not numbers of images; {REFETCH}")
        reference, *names = (f"{one:0{COCO_DIGITS}d}.jpg" for one in (record.whole("reference_img_id"), *targets))
        return reference, record.text("relative_caption"), names

    def targets(self, record: Record) -> Sequence[int]:
        """The numbers of all right images."""
        return list_of(record.fields, "gt_img_ids", record.where)


class CircoTest(Circo):
    """Queries without targets, whose answers a server measures: ``{QUERY: [NUMBER of 50 images]}``."""

    name = "circo-test"
    title = "CIRCO (2023), test"
    counts: ClassVar = {"test": 800}
    expects = "annotations/test.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"

    every: ClassVar = {"test": "annotations/test.json"}
    submissions: ClassVar = {"test": Submission("test.json", 50, lambda name: int(image_group(name)))}

    def targets(self, record: Record) -> Sequence[int]:
        return ()


class Lasco(Galleries):
    """Queries made of questions about COCO's images (Levy et al., 2024): 39,826 images of val2014 are ranked.

    The reference is not ranked, as in CIRR; the paper does not say.
    """

    name = "lasco"
    title = "LaSCo (2024), validation"
    citation = "https://arxiv.org/abs/2303.09429"
    licence = "MIT"
    expects = "lasco_val.json, lasco_val_corpus.json, and the images of COCO val2014 below"
    obtained = "Both are in the folder downloads of the repository levymsn/LaSCo"

    every: ClassVar = {"val": "lasco_val.json"}
    listing = "lasco_val_corpus.json"
    identity = "qid"
    excluding = True

    def listed(self, path: Path) -> Iterator[str]:
        return (self._name(text_of(one, "path", f"{path} {number}")) for number, one in json_items(path))

    def asked(self, record: Record) -> tuple[str, str, Sequence[str]]:
        named = [list_of(record.fields, field, record.where)[-1:] for field in ("query-image", "target-image")]
        reference, target = (
            self._name(text_of(dict(zip(["path"], one, strict=False)), "path", record.where)) for one in named
        )
        return reference, record.text("query-text"), [target]

    def _name(self, path: str) -> str:
        return path.rpartition("/")[2]
