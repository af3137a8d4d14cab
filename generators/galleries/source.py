"""GeneCIS's four tasks: a reference, a condition, a target and its distractors (GeneCIS, sections 4, A.1 and A.2).

Attributes, from labelled objects. Focus: reference and target are one object with one attribute, the condition is its
type, and the nine distractors are the same object, labelled not to have it; five types are left out. Change: reference
and target are one object with different attributes of one type, the condition is the target's; nine distractors have it
and are another object, five are the reference's object without it. Both are roughly balanced over types. Where the
paper is silent, so that there is one right answer:

* Without an attribute means labelled so. Focus: no distractor has any attribute of the type in common with the
  reference. Change: the reference is labelled not to have the conditioning attribute, and shares none of the type with
  the target; another object's name has no word in common with the reference's (a train car is a train to many eyes).
* No image comes twice in a template, and no distractor is from an image that shows a right answer anywhere.
* Types take turns, within a type its attributes, within an attribute the objects. Each reference is used at most once
  per condition. VAW's type ``other``, which the authors' cleaned taxonomy resolved, is no condition either.

Objects, from the categories of whole scenes. A reference shows at least ten categories; *close* images share at least
six of them, but not all, and are ranked by how many they share; *far* ones share very few. Nine distractors are close
and without the conditioning object, five are far and with it. Focus: the target is any close image, the condition one
of the shared categories. Change: the target is the most similar close image, the condition any of its categories that
the reference lacks. Where the paper is silent:

* Far is at most two shared categories, drawn evenly. Near distractors are the first of the ranking, as in the published
  files; what ties is ordered by the seed.
* A reference comes again once every other one has had its turn, always with another target, in Change the next most
  similar one; the condition is one that it has used least. No template is made twice.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, cast

import numpy as np
from numpy.random import Generator as Random
from numpy.typing import NDArray
from pydantic import PrivateAttr

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, generator_for, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample, SampleKind
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.kinds.template import ROLES, TEMPLATE
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.licences.terms import NOTHING, Terms, together
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Place
from twinset.generators.galleries.annotations import (
    Instance,
    OutsideImage,
    Scenes,
    crop,
    read_instances,
    read_scenes,
    read_taxonomy,
)
from twinset.generators.image_files import IMAGE_REASONS, ImageFiles, ImageFolderSource, UnusableImage
from twinset.generators.licences import DerivingTerms
from twinset.generators.papers import GENECIS
from twinset.generators.reasons import reasons_beside

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
#: An image, or an object in one, as GeneCIS's own JSON names it.
Entry = dict[str, Any]
Numbers = NDArray[np.int64]
Cell = tuple[str, str]  # name of an object, and an attribute

#: No clear visual categories (GeneCIS, A.2), and ours, ``other``.
NO_CONDITIONS = ("opinion", "other after", "other physical quality", "state", "type", "other")

#: Categories of a reference; those that a close image shares with it, and a far one; images of the gallery.
LEAST_CATEGORIES, LEAST_SHARED, MOST_SHARED_FAR = 10, 6, 2
NEAR, FAR = 9, 5


@dataclass(slots=True, kw_only=True)
class Template(Sample):
    """A template: which image of a gallery is most like the reference, given the condition.

    task: ``focus-attribute``, ``change-attribute``, ``focus-object`` or ``change-object``.
    gallery: the distractors, without the target, which is the right answer. entry: as in `TemplateRecord`.
    """

    kind: ClassVar[SampleKind] = TEMPLATE

    task: str
    condition: str
    reference: Frame
    target: Frame
    gallery: tuple[Frame, ...]
    entry: Mapping[str, Json]

    def pictures(self) -> dict[str, Frame]:
        return dict(zip(ROLES, (self.reference, self.target, *self.gallery), strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCandidate(Candidate):
    """One planned template.

    images: names of the files of reference, target and gallery. entry: the template as canonical JSON, as GeneCIS's
    released evaluation reads it. provenance: flat canonical JSON, the same keys for all of a task.
    """

    images: tuple[str, ...]
    entry: str
    provenance: str

    @property
    def media_names(self) -> tuple[str, ...]:
        return self.images


class Templates(ImageFolderSource):
    """A task of the benchmark.

    task: whether the condition names what to focus on, or what changes. annotations: the dataset's annotation file.
    media: folder of its images. licence: of these, copied into every sample and the card.
    """

    task: Literal["focus", "change"]

    about: ClassVar[str]  # what conditions name, ``attribute`` or ``object``
    makes = "template"
    paper = GENECIS
    card_template = Path(__file__).with_name("card.md.j2")

    version = 3
    candidate = TemplateCandidate
    libraries = ("numpy", "pillow", "polars")

    @cached_property
    def files(self) -> ImageFiles:
        """Its images, as they are stored: boxes and areas count these pixels."""
        return ImageFiles(self.media, upright=False)

    def inputs(self) -> str:
        annotations = (path for _, place, path in self.places() if place.need == "annotations")
        return digest([sha256_of_file(path)[0] for path in annotations])

    def plan(self) -> Iterator[TemplateCandidate]:
        """All templates that can be made. Raises `WrongUse` for annotations of another shape, or without a template."""
        templates = iter(self.templates())
        if (first := next(templates, None)) is None:
            raise WrongUse(
                f"{self.annotations}: no template of {self.task} can be made of it (left out: {dict(self.excluded)}); "
                "the tasks need many images alike: take the whole of a split"
            )
        yield from chain((first,), templates)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Template | Rejected]:
        """Templates with their images, or the reasons of `generators.image_files`, or ``box-outside``."""
        for planned in cast(Sequence[TemplateCandidate], candidates):
            read = self.files.read(planned.images)
            images = [read[name] for name in planned.images]
            if unusable := [image for image in images if isinstance(image, UnusableImage)]:
                yield unusable[0].rejected(planned.key)
                continue
            entry = json.loads(planned.entry)
            entries: list[Entry] = [entry["reference"], entry["target"], *entry["gallery"]]
            try:
                reference, target, *gallery = map(self.seen, cast(list[Frame], images), entries)
            except OutsideImage as error:
                yield Rejected(planned.key, "box-outside", str(error))
                continue
            yield Template(
                **planned.placed,
                task=f"{self.task}-{self.about}",
                condition=entry["condition"],
                reference=reference,
                target=target,
                gallery=tuple(gallery),
                entry=entry,
                provenance=json.loads(planned.provenance),
            )

    def templates(self) -> Iterable[TemplateCandidate]:
        """Those that can be made, the first ones the same however many are taken."""
        raise NotImplementedError

    def seen(self, whole: Frame, entry: Entry) -> Frame:
        """What is shown of an image; raises `OutsideImage`."""
        return whole

    def template(
        self,
        condition: str,
        entries: Sequence[Entry],
        images: Iterable[str],
        facts: Mapping[str, str | int],
        *identity: str | int,
        terms: Terms = NOTHING,
    ) -> TemplateCandidate:
        """A template, in the form of GeneCIS's own JSON.

        Args:
            condition: as it is asked.
            entries: of reference, target and distractors: ``{val_image_id}`` of COCO, or ``{image_id, instance_id,
                instance_bbox}`` of Visual Genome.
            images: names of their files, in this order.
            facts: for its provenance, the same keys for all of a task.
            identity: what tells it from all others of the task.
            terms: of all images together, as far as annotations state them.
        """
        reference, target, *gallery = entries
        entry = {"condition": condition, "reference": reference, "target": target, "gallery": gallery}
        return TemplateCandidate(
            **self.identified(f"{self.task}-{self.about}", *identity, terms=terms),
            images=tuple(images),
            entry=canonical_json(entry).decode(),
            provenance=canonical_json(facts).decode(),
        )

    def random(self, place: str) -> np.random.Generator:
        """The random numbers of one reference, object or order, by its name."""
        return generator_for(self.stage.seed, self.stage.name, place)


def in_turn(sources: Iterable[Iterator[T]]) -> Iterator[T]:
    """One item of each source after the other, again and again, leaving out those that have ended."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for item in source:
            yield item
            waiting.append(source)
            break


class ObjectTemplates(Templates):
    """Focus on, or change, an object of a scene: whole images by panoptic annotations in COCO's form."""

    kind: Literal["genecis-objects"]
    licence: str = UNKNOWN

    about = "object"
    reference = Reference(
        "COCO Panoptic", "https://cocodataset.org/#panoptic-2018", bibtex("lin2014coco", "kirillov2019panoptic")
    )
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "objects")}

    _scenes: Scenes = PrivateAttr()

    def templates(self) -> Iterator[TemplateCandidate]:
        self._scenes = read_scenes(self.annotations, self.excluded)
        enough = self._scenes.present.sum(axis=1) >= LEAST_CATEGORIES
        for image in np.flatnonzero(~enough).tolist():
            self.excluded.add("reference-few-categories", f"image {self._scenes.pictures[image].id}")
        references = np.flatnonzero(enough)
        self.random("references").shuffle(references)
        return in_turn(self._of_reference(reference) for reference in references.tolist())

    def _shared_with(self, reference: int) -> Numbers:
        """How many of a reference's categories each image shows, (images,)."""
        shared: Numbers = self._scenes.present[:, self._scenes.present[reference]].sum(axis=1)
        return shared

    def _of_reference(self, reference: int) -> Iterator[TemplateCandidate]:
        """All templates of one reference, each with another target."""
        pictures, present = self._scenes.pictures, self._scenes.present
        random = self.random(f"reference {pictures[reference].id}")
        shared = self._shared_with(reference)
        close = np.flatnonzero((shared >= LEAST_SHARED) & (shared < shared[reference]))
        random.shuffle(close)
        close = close[np.argsort(-shared[close], kind="stable")]
        wanted = present[reference] if self.task == "focus" else ~present[reference]
        wanted = wanted & ((~present[close]).sum(axis=0) >= NEAR)
        wanted = wanted & (present[shared <= MOST_SHARED_FAR].sum(axis=0) >= FAR)
        targets = close[(present[close] & wanted).any(axis=1)]
        if not len(targets):
            self.excluded.add("reference-without-gallery", f"image {pictures[reference].id}")
        if self.task == "focus":  # otherwise the most similar comes first
            random.shuffle(targets)
        uses = np.zeros(len(wanted), dtype=np.int64)
        for target in targets.tolist():
            options = np.flatnonzero(present[target] & wanted)
            condition = int(random.choice(options[uses[options] == uses[options].min()]))
            uses[condition] += 1
            # Counted again each time: all references wait for their turns, and together would fill the memory.
            shared, shows = self._shared_with(reference), present[:, condition]
            near = close[~shows[close]][:NEAR]
            far = random.choice(np.flatnonzero(shows & (shared <= MOST_SHARED_FAR)), FAR, replace=False)
            numbers = [reference, target, *near.tolist(), *far.tolist()]
            name, shown = self._scenes.names[condition], [pictures[number] for number in numbers]
            yield self.template(
                name,
                [{"val_image_id": picture.id} for picture in shown],
                [picture.file_name for picture in shown],
                {"reference_categories": int(shared[reference]), "shared_categories": int(shared[target])},
                *(shown[0].id, shown[1].id, name),
                terms=together([self._scenes.terms[number] for number in numbers]),
            )


class AttributeTemplates(DerivingTerms, Templates):
    """Focus on, or change, an attribute of an object: crops of images by annotations in VAW's form.

    taxonomy: JSON file of attribute types, each with its attributes.
    """

    kind: Literal["genecis-attributes"]
    taxonomy: Annotated[Location, Place("file", "annotations")]
    licence: str = UNKNOWN

    about = "attribute"
    reference = Reference("VAW", "https://vawdataset.com", bibtex("pham2021vaw", "krishna2017visual"))
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "attributes")}

    _instances: Sequence[Instance] = PrivateAttr()
    _image: Numbers = PrivateAttr()  # a number for the image of each instance
    _has: Mapping[Cell, Numbers] = PrivateAttr()  # which instances have an attribute, by object and attribute
    _lacks: Mapping[Cell, Numbers] = PrivateAttr()
    _names: Mapping[str, list[str]] = PrivateAttr()  # objects that have an attribute

    def templates(self) -> Iterator[TemplateCandidate]:
        import polars as pl

        types = read_taxonomy(self.taxonomy)
        self._instances = read_instances(self.annotations, types, self.excluded)
        self._image = np.unique([instance.image for instance in self._instances], return_inverse=True)[1]
        stated = (
            (instance.object_name, attribute, has, number, self._image[number])
            for number, instance in enumerate(self._instances)
            for has, attributes in ((True, instance.positive), (False, instance.negative))
            for attribute in attributes
        )
        labels = pl.DataFrame(stated, ["object", "attribute", "has", "number", "image"], orient="row")
        cells = labels.group_by("object", "attribute", "has", maintain_order=True).agg("number").sort("object")
        self._has, self._lacks = (
            {(name, own): np.array(numbers) for name, own, _, numbers in cells.filter(has=has).iter_rows()}
            for has in (True, False)
        )
        self._names = dict(cells.filter("has").group_by("attribute", maintain_order=True).agg("object").iter_rows())
        kinds = [kind for kind in types if self.task == "change" or kind not in NO_CONDITIONS]
        of_type = [(kind, attribute) for kind in kinds for attribute in types[kind]]
        references = self._references(labels, pl.DataFrame(of_type, ["type", "attribute"], orient="row"))
        made = set[str]()
        for template in in_turn(
            self._of_type(kind, types[kind], rows)
            for (kind,), rows in references.partition_by("type", maintain_order=True, as_dict=True).items()
        ):
            if template.identity not in made:  # an attribute can have several types
                made.add(template.identity)
                yield template

    def _references(self, labels: pl.DataFrame, types: pl.DataFrame) -> pl.DataFrame:
        """The instances that may be a reference; types take turns, within one its attributes, within these objects."""
        import polars as pl

        # Images with the attribute, and without it, that a template takes at least.
        with_it, without = (2, 9) if self.task == "focus" else (1, 6)
        images = (pl.col("image").filter(has=has).n_unique() for has in (True, False))
        counts = labels.group_by("object", "attribute").agg(*(count.alias(f"{n}") for n, count in enumerate(images)))
        enough = counts.filter(pl.col("0") >= with_it, pl.col("1") >= without)
        rows = labels.filter(has=self.task == "focus").join(enough, on=["object", "attribute"], how="semi")
        typed = labels.filter("has").join(types, on="attribute")  # a reference has some attribute of the type
        rows = rows.join(types, on="attribute").join(typed, on=["type", "number"], how="semi")
        rows = rows.sort("type", "attribute", "object", "number")
        rows = rows[self.random("references").permutation(len(rows))]
        for levels in (["type", "attribute", "object"], ["type", "attribute"]):
            rows = rows.sort(pl.int_range(pl.len()).over(levels), maintain_order=True)
        return rows

    def _of_type(self, kind: str, attributes: Sequence[str], rows: pl.DataFrame) -> Iterator[TemplateCandidate]:
        """The templates of references and attributes of a type. attributes: of the type."""
        gallery = self._focus if self.task == "focus" else self._change
        for name, attribute, number in rows.select("object", "attribute", "number").iter_rows():
            reference = self._instances[number]
            alike = [own for own in reference.positive if own in attributes]
            members = gallery(number, attribute, alike, self.random(f"{kind}/{attribute}/{reference.id}"))
            if members is None:
                self.excluded.add("reference-without-gallery", f"instance {reference.id} as {name} for {attribute}")
                continue
            condition = kind if self.task == "focus" else attribute
            shown = [reference, *(self._instances[member] for member in members.tolist())]
            yield self.template(
                condition,
                [{"image_id": each.image, "instance_bbox": [*each.box], "instance_id": each.id} for each in shown],
                [f"{each.image}.jpg" for each in shown],
                {"object": name, "attribute": attribute, "attribute_type": kind},
                *(reference.id, condition),
            )

    def _focus(self, reference: int, attribute: str, alike: Sequence[str], random: Random) -> Numbers | None:
        """Target and distractors of a reference that has an attribute. alike: its attributes of the type."""
        name = self._instances[reference].object_name
        matches = np.concatenate([self._has[name, own] for own in alike])
        target = self._pick(self._has[name, attribute], 1, [reference], random)
        lacking = np.setdiff1d(self._lacks[name, attribute], matches)
        distractors = self._pick(lacking, 9, np.append(matches, reference), random)
        return None if target is None or distractors is None else np.append(target, distractors)

    def _change(self, reference: int, attribute: str, alike: Sequence[str], random: Random) -> Numbers | None:
        """As `_focus`, of a reference that lacks the attribute; other objects come before the same one."""
        name = self._instances[reference].object_name
        matches = self._has[name, attribute]
        unlike = np.setdiff1d(matches, np.concatenate([self._has[name, own] for own in alike]))
        target = self._pick(unlike, 1, [reference], random)
        same = self._pick(self._lacks[name, attribute], 5, np.append(matches, reference), random)
        if target is None or same is None:
            return None
        names = [other_name for other_name in self._names[attribute] if _words(name).isdisjoint(_words(other_name))]
        having = np.concatenate([np.zeros(0, np.int64), *(self._has[other_name, attribute] for other_name in names)])
        different = self._pick(having, 9, np.concatenate([matches, [reference], same]), random)
        return None if different is None else np.concatenate([target, different, same])

    def _pick(self, pool: Numbers, count: int, used: Numbers | list[int], random: Random) -> Numbers | None:
        """Instances of different images, none of those of the used ones; None where there are too few."""
        drawn = random.permutation(pool)
        first = np.sort(np.unique(self._image[drawn], return_index=True)[1])
        free = drawn[first][~np.isin(self._image[drawn[first]], self._image[used])][:count]
        return free if len(free) == count else None

    def seen(self, whole: Frame, entry: Entry) -> Frame:
        """The object in an image."""
        x, y, width, height = entry["instance_bbox"]
        try:
            pixels = crop(whole.pixels, (x, y, width, height))
        except OutsideImage as error:
            raise OutsideImage(f"instance {entry['instance_id']} of {whole.id}: {error}") from error
        return replace(whole, id=f"{whole.id}#{x!r},{y!r},{width!r},{height!r}", pixels=pixels)


def _words(name: str) -> set[str]:
    """Words of an object's name; plurals as singulars, roughly."""
    return {word.removesuffix("s") for word in name.split()}
