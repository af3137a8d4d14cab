"""What twinset built: subsets of pairs, text pairs, triplets and templates, read from tars where they lie."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.image_text import IMAGE_TEXT, ImageTextRecord
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PairRecord
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.contracts.kinds.template import GALLERY, TemplateRecord
from twinset.contracts.kinds.text_pair import TextPairRecord
from twinset.contracts.kinds.triplet import TripletRecord
from twinset.contracts.recipe import recipe_from_json
from twinset.evaluation.benchmarks.captioned_images import DIRECTIONS, SPLIT, CaptionedGallery, CaptionedImage
from twinset.evaluation.benchmarks.reader import Item, Reader
from twinset.evaluation.examples import LeftOut, Matching, Picture, Query
from twinset.generators.copied_pairs import category_of
from twinset.shards.ledger import Receipts
from twinset.shards.read import finished
from twinset.shards.records import planned_stage, subsets_in
from twinset.shards.rows import stored
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, member_slices

WORDS = (".json", ".txt")
#: Why a sample asks nothing.
NO_DISTRACTOR, NO_IMAGES, TRAINED = "no distractor", "an index without images", "of a split that is not tested"
REBUILD = "run its build again, or fetch it again"

Pictures = Mapping[str, Picture]


class BuiltDataset(Reader):
    """A folder, or a URL such as ``s3://bucket/prefix``, that ``twinset build`` wrote.

    Of a tar only headers, captions and JSON are read. Pairs and text pairs are matchings. A triplet asks for its target
    against its distractor; a template for its target, which stands first in the gallery as GeneCIS's code has it.

    Models are asked the split ``test``; without it, what is not ``train``; without others, all. every_split: all is
    read, for what holds out groups of its own.
    """

    name, title = "twinset", "Built with twinset"
    citation = "https://arxiv.org/abs/2303.14465"
    expects = "SUBSET/_meta and SUBSET/SPLIT/00000.tar, as `twinset build` writes them"
    obtained = "`twinset build RECIPE --out DIR` makes one"
    remedies: ClassVar = {
        NO_DISTRACTOR: "build the triplets with --set subsets.NAME.source.distractors=true, in another --out",
        NO_IMAGES: "build the subset with its images, in another --out",
    }
    every_split = False

    def __init__(self, data: Path | str, subsets: Sequence[str] = ()) -> None:
        self.store = Store(str(data))
        super().__init__(data, subsets)
        planned = [planned_stage(self.store, subset) for subset in self.subsets]
        self.apart = any(stage.facts["makes"] == IMAGE_TEXT.name for stage in planned)
        with suppress(FileNotFoundError, ValueError):  # its recipe may name a source that is not installed here
            recipes = [recipe_from_json(self.store.read(layout.recipe(subset))) for subset in self.subsets]
            self.title = " and ".join(dict.fromkeys(recipe.title or recipe.name for recipe in recipes))

    def found(self) -> Sequence[str]:
        made = {name: planned_stage(self.store, name).facts.get("makes") for name in subsets_in(self.store)}
        return [name for name, makes in made.items() if makes in KINDS]

    def digest(self) -> str:
        """sha256 over what the receipts of all shards say of tars and rows: captions and images are in it."""
        receipts = {subset: self._receipts(subset) for subset in self.subsets}
        names = ("kept", "tar_sha256", "rows_sha256")
        return self.digest_of({subset: [list(row) for row in of.columns(*names)] for subset, of in receipts.items()})

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`. Images with captions ask for each other; memory holds their captions."""
        gallery = CaptionedGallery()
        for item in self._stored(subset):
            if isinstance(item, CaptionedImage):
                gallery.add(item)
            else:
                yield item
        for direction in DIRECTIONS:
            yield from gallery.queries(direction, f"{subset}/{direction}")

    def _stored(self, subset: str) -> Iterator[Item | CaptionedImage]:
        receipts = self._receipts(subset)
        splits = {split for _, split, kept in receipts.columns("split", "kept") if kept}
        asked = splits if self.every_split else splits & {SPLIT} or splits - {"train"} or splits
        for number, split, kept, tar_size in receipts.columns("split", "kept", "tar_size"):
            tar = layout.tar(subset, split, number)
            if split in asked and tar_size:
                yield from self._of_tar(subset, tar, kept, tar_size)
            else:
                reason = NO_IMAGES if split in asked else TRAINED
                yield from itertools.repeat(LeftOut(f"{self.store.root}/{tar}", reason), kept)

    def check_place(self) -> None:
        if not subsets_in(self.store):
            raise self.refused("holds no subset")

    def _receipts(self, subset: str) -> Receipts:
        with _telling():
            receipts, planned = finished(self.store, subset), planned_stage(self.store, subset).shards
        if len(receipts) != planned:
            raise WrongUse(
                f"{self.place}/{subset}: {len(receipts)} of {planned} shards are finished; run its build again"
            )
        return receipts

    def _of_tar(self, subset: str, tar: str, kept: int, size: int) -> Iterator[Item | CaptionedImage]:
        where, count = f"{self.store.root}/{tar}", 0
        found = self.store.size(tar)
        if found != size:
            state = "absent" if found is None else f"{found:,} bytes instead of {size:,}"
            raise WrongUse(f"{where}: {state}, and not what its receipt names; {REBUILD}")
        with _telling():
            for sample, pictures in _samples(self.store, tar, where):
                count += 1
                yield _ASKED[sample.kind.name](sample, pictures, subset, f"{where}: {sample.key}")
        if count != kept:
            raise WrongUse(f"{where}: {count} samples instead of {kept}; {REBUILD}")


def _samples(store: Store, tar: str, where: str) -> Iterator[tuple[Stored[Any], Pictures]]:
    """The samples of a tar, their images empty, with the pictures that read these."""
    with store.open(tar) as stream:
        for key, members in itertools.groupby(member_slices(stream, where), key=lambda one: one[0].partition(".")[0]):
            fields: dict[str, bytes] = {}
            pictures: dict[str, Picture] = {}
            for name, place, size in members:
                field = name.partition(".")[2]
                if field in fields:
                    raise BrokenTar(f"{where}: member {name!r} occurs twice")
                stream.seek(place)
                fields[field] = stream.read(size) if field == "json" or field.endswith(WORDS) else b""
                read = partial(_read_member, store, tar, place, size)
                pictures[field.partition(".")[0]] = Picture(f"{where}/{name}", read)
            yield stored(key, fields, where), pictures


def _read_member(store: Store, tar: str, place: int, size: int) -> bytes:
    where = f"{store.root}/{tar}"
    try:
        with store.open(tar) as stream:
            stream.seek(place)
            content = stream.read(size)
    except FileNotFoundError as error:
        raise WrongUse(f"{where}: gone since its headers were read; {REBUILD}") from error
    if len(content) < size:
        raise WrongUse(f"{where}: cut short since its headers were read; {REBUILD}")
    return bytes(content)


@contextmanager
def _telling() -> Iterator[None]:
    """A broken tar or receipt is an input that is wrong."""
    try:
        yield
    except BrokenTar as error:
        raise WrongUse(f"{error}; {REBUILD}") from error


def _pair(sample: Stored[PairRecord], pictures: Pictures, subset: str, where: str) -> Item:
    record = sample.json
    # A video is the same in every subset; scenes and drawings are numbered again in each.
    filmed = record.group in record.source.image0.path
    return Matching(
        key=sample.key,
        subset=subset,
        group=record.group if filmed else f"{subset}/{record.group}",
        category=category_of(record),
        images=(pictures["image0"], pictures["image1"]),
        captions=(sample.texts["caption0"], sample.texts["caption1"]),
    )


def _text_pair(sample: Stored[TextPairRecord], pictures: Pictures, subset: str, where: str) -> Item:
    record = sample.json
    return Matching(
        key=sample.key,
        subset=subset,
        group=record.image_id or record.group,
        category=f"{record.type}_{record.subtype}" if record.type and record.subtype else "",
        images=(pictures["image"],),
        captions=(sample.texts["caption"], sample.texts["negative_caption"]),
    )


def _triplet(sample: Stored[TripletRecord], pictures: Pictures, subset: str, where: str) -> Item:
    if "distractor" not in pictures:
        return LeftOut(where, NO_DISTRACTOR)
    return _query(sample, pictures, ("target", "distractor"), subset, sample.json.image_ids["reference"])


def _template(sample: Stored[TemplateRecord], pictures: Pictures, subset: str, where: str) -> Item:
    record = sample.json
    reference = record.source.files["reference"].path  # many templates share a reference
    return _query(sample, pictures, ("target", *GALLERY), subset, reference, record.task)


def _query(
    sample: Stored[Any], pictures: Pictures, gallery: Sequence[str], subset: str, group: str, category: str = ""
) -> Query:
    """The target stands first in a gallery."""
    return Query(
        key=sample.key,
        subset=subset,
        group=group,
        category=category,
        image=pictures["reference"],
        text=sample.texts["condition"],
        gallery=[pictures[role] for role in gallery if role in pictures],
        targets=frozenset({0}),
    )


def _image_text(sample: Stored[ImageTextRecord], pictures: Pictures, subset: str, where: str) -> CaptionedImage:
    picture = next(picture for field, picture in pictures.items() if field in EXTENSIONS)
    return CaptionedImage(sample.json.group, picture, sample.json.captions)


_ASKED: Mapping[str, Any] = {
    "pair": _pair,
    "text-pair": _text_pair,
    "triplet": _triplet,
    "template": _template,
    "image-text": _image_text,
}
