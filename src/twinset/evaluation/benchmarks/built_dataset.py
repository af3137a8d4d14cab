"""What twinset built: subsets of pairs, text pairs, triplets and templates, read from tars where they lie."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.contracts.kinds.template import GALLERY
from twinset.contracts.recipe import recipe_from_json
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.captioned_images import DIRECTIONS, SPLIT, CaptionedGallery
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
#: By kind of sample: what follows in the name of a part, and in its title.
PARTS: Mapping[str, tuple[str, str]] = {
    "pair": ("pairs", "two images, two captions"),
    "text-pair": ("text-pairs", "one image, two captions"),
    "triplet": ("triplets", "an image and a text that modifies it, target or distractor"),
    "template": ("galleries", "an image and a text that modifies it"),
    "image-text": ("retrieval", "captions of images, and images of captions"),
}

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
    expects = (
        "SUBSET/_meta and SUBSET/SPLIT/00000.tar with images, those of triplets with a distractor (--set "
        "subsets.NAME.source.distractors=true), as `twinset build` writes them"
    )
    obtained = "`twinset build RECIPE --out DIR` makes one"
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
        of = {name: self._receipts(name).columns("kept", "tar_sha256", "rows_sha256") for name in self.subsets}
        return self.digest_of({subset: [list(row) for row in rows] for subset, rows in of.items()})

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`. Images with captions ask for each other; memory holds their captions."""
        gallery, receipts = CaptionedGallery(), self._receipts(subset)
        splits = {split for _, split, kept in receipts.columns("split", "kept") if kept}
        asked = splits if self.every_split else splits & {SPLIT} or splits - {"train"} or splits
        for number, split, kept, tar_size in receipts.columns("split", "kept", "tar_size"):
            tar = layout.tar(subset, split, number)
            if split not in asked or not tar_size:
                reason = NO_IMAGES if split in asked else TRAINED
                yield from itertools.repeat(LeftOut(f"{self.store.root}/{tar}", reason), kept)
                continue
            for where, sample, pictures in self._samples(tar, kept, tar_size):
                if sample.kind.name == IMAGE_TEXT.name:
                    picture = next(picture for field, picture in pictures.items() if field in EXTENSIONS)
                    gallery.add(sample.json.group, picture, sample.json.captions)
                else:
                    yield _asked(sample, pictures, subset, where)
        for direction in DIRECTIONS:
            yield from gallery.queries(direction, f"{subset}/{direction}")

    def _receipts(self, subset: str) -> Receipts:
        with naming(f"{self.place}: {REBUILD}", BrokenTar):
            receipts, planned = finished(self.store, subset), planned_stage(self.store, subset).shards
        if len(receipts) != planned:
            there = f"{len(receipts)} of {planned} shards are finished"
            raise WrongUse(f"{self.place}/{subset}: {there}; run its build again")
        return receipts

    def _samples(self, tar: str, kept: int, size: int) -> Iterator[tuple[str, Stored[Any], Pictures]]:
        """Places and samples of a tar, their images empty, with the pictures that read these."""
        where, count = f"{self.store.root}/{tar}", 0
        if (actual := self.store.size(tar)) != size:
            state = "absent" if actual is None else f"{actual:,} bytes, its receipt says {size:,}"
            raise WrongUse(f"{where}: {state}; {REBUILD}")
        with naming(REBUILD, BrokenTar), self.store.open(tar) as stream:
            members = member_slices(stream, where)
            for key, of_sample in itertools.groupby(members, key=lambda member: member[0].partition(".")[0]):
                fields: dict[str, bytes] = {}
                pictures: dict[str, Picture] = {}
                for name, place, length in of_sample:
                    field = name.partition(".")[2]
                    if field in fields:
                        raise BrokenTar(f"{where}: member {name!r} occurs twice")
                    stream.seek(place)
                    fields[field] = stream.read(length) if field == "json" or field.endswith(WORDS) else b""
                    read = partial(_read_member, self.store, tar, place, length)
                    pictures[field.partition(".")[0]] = Picture(f"{where}/{name}", read)
                count += 1
                yield f"{where}: {key}", stored(key, fields, where), pictures
        if count != kept:
            raise WrongUse(f"{where}: {count} samples instead of {kept}; {REBUILD}")


class Part(BuiltDataset):
    """The subsets of one kind of a built dataset as a benchmark of its own. kind: of samples, a key of `PARTS`."""

    def __init__(self, data: str, subsets: Sequence[str], kind: str, name: str, title: str) -> None:
        super().__init__(data, subsets)
        self.kind, self.name, self.title = kind, name, title


def parts_of(dataset: BuiltDataset, name: str, title: str) -> list[Part]:
    """The parts of a dataset, in the order of `PARTS`: a table of scores asks one kind of question.

    Args:
        name, title: of the whole; those of a part are ``NAME-pairs`` and ``TITLE: two images, two captions``.
    """
    kind_of = {subset: planned_stage(dataset.store, subset).facts["makes"] for subset in dataset.subsets}
    return [
        Part(dataset.place, subsets, kind, f"{name}-{ending}", f"{title}: {asked}")
        for kind, (ending, asked) in PARTS.items()
        if (subsets := [subset for subset, made in kind_of.items() if made == kind])
    ]


def open_benchmarks(
    name: str, data: Path | str, subsets: Sequence[str] = (), captions_only: bool = False
) -> Sequence[Reader]:
    """As `evaluation.benchmarks.open_benchmark`, but a dataset of several `PARTS` becomes a benchmark for each."""
    opened = open_benchmark(name, data, subsets, captions_only)
    parts = parts_of(opened, opened.name, opened.title) if isinstance(opened, BuiltDataset) else []
    return parts if len(parts) > 1 else [opened]


def _read_member(store: Store, tar: str, place: int, size: int) -> bytes:
    with store.open(tar) as stream:
        stream.seek(place)
        content = stream.read(size)
    if len(content) < size:
        raise WrongUse(f"{store.root}/{tar}: cut short since its headers were read; {REBUILD}")
    return bytes(content)


def _asked(sample: Stored[Any], pictures: Pictures, subset: str, where: str) -> Item:
    """What a pair, a text pair, a triplet or a template asks."""
    record, texts = sample.json, sample.texts
    match sample.kind.name:
        case "pair":
            # A video is the same in every subset; scenes and drawings are numbered again in each.
            media = PurePosixPath(record.source.image0.path)
            filmed = record.group in {*media.parts, *(PurePosixPath(part).stem for part in media.parts)}
            return Matching(
                key=sample.key,
                subset=subset,
                group=record.group if filmed else f"{subset}/{record.group}",
                category=category_of(record),
                images=(pictures["image0"], pictures["image1"]),
                captions=(texts["caption0"], texts["caption1"]),
            )
        case "text-pair":
            return Matching(
                key=sample.key,
                subset=subset,
                group=record.image_id or record.group,
                category=f"{record.type}_{record.subtype}" if record.type and record.subtype else "",
                images=(pictures["image"],),
                captions=(texts["caption"], texts["negative_caption"]),
            )
        case "triplet":
            if "distractor" not in pictures:
                return LeftOut(where, NO_DISTRACTOR)
            group, category, other_roles = record.image_ids["reference"], "", ["distractor"]
        case _:  # many templates share a reference
            group, category, other_roles = record.source.files["reference"].path, record.task, [*GALLERY]
    return Query(
        key=sample.key,
        subset=subset,
        group=group,
        category=category,
        image=pictures["reference"],
        text=texts["condition"],
        gallery=[pictures[role] for role in ("target", *other_roles) if role in pictures],
        targets=frozenset({0}),
    )
