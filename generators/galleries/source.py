"""The settings of GeneCIS's four tasks, and what its cards say of each (GeneCIS, sections 4 and A.1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Frame, Rejected
from twinset.contracts.kinds.template import Template
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.licences.terms import DerivingTerms
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Place
from twinset.generators.galleries.attribute_tasks import ChangeAttribute, FocusAttribute
from twinset.generators.galleries.drafts import Draft, Entry
from twinset.generators.galleries.object_tasks import ChangeObject, FocusObject
from twinset.generators.galleries.panoptic import read_scenes
from twinset.generators.galleries.vaw import OutsideImage, crop, read_instances, read_taxonomy
from twinset.generators.image_files import IMAGE_REASONS, ImageFiles, ImageFolderSource, UnusableImage
from twinset.generators.papers import GENECIS

Task = Literal["focus", "change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCandidate(Candidate):
    """One planned template.

    images: names of the files of reference, target and gallery. entry: the template as canonical JSON, as GeneCIS's
    released evaluation reads it. provenance: flat canonical JSON, the same keys for all of a task.
    """

    task: str
    condition: str
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

    task: Task

    makes = "template"
    paper = GENECIS
    card_template = Path(__file__).with_name("card.md.j2")

    version = 2
    candidate = TemplateCandidate
    libraries = ("numpy", "pillow")

    @cached_property
    def files(self) -> ImageFiles:
        """Its images, as they are stored: boxes and areas count these pixels."""
        return ImageFiles(self.media, upright=False)

    def inputs(self) -> str:
        annotations = (path for _, place, path in self.places() if place.need == "annotations")
        return digest([sha256_of_file(path)[0] for path in annotations])

    def plan(self) -> Iterator[TemplateCandidate]:
        """All templates that can be made, the first ones the same for any count; each is a group of its own.

        Raises `WrongUse` for annotations of another shape, and when there is not one template in them.
        """
        draft = None
        for draft in self.drafts():
            yield TemplateCandidate(
                **self.identified(draft.task, *draft.identity, terms=draft.terms),
                task=draft.task,
                condition=draft.entry["condition"],
                images=draft.images,
                entry=canonical_json(draft.entry).decode(),
                provenance=canonical_json(draft.facts).decode(),
            )
        if draft is None:
            left_out = ", ".join(f"{reason} {count}" for reason, count in sorted(self.excluded.items()))
            raise WrongUse(
                f"{self.annotations}: no template of {self.task} can be made of it (left out: "
                f"{left_out or 'nothing'}); the tasks need many images alike: take the whole of a split"
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Template | Rejected]:
        """Templates with their images; one that lacks any is rejected.

        Rejections: those of `generators.image_files`, and ``box-outside``.
        """
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
                task=planned.task,
                condition=planned.condition,
                reference=reference,
                target=target,
                gallery=tuple(gallery),
                entry=entry,
                provenance=json.loads(planned.provenance),
            )

    def drafts(self) -> Iterable[Draft]:
        """Templates without their images."""
        raise NotImplementedError

    def seen(self, whole: Frame, entry: dict[str, Any]) -> Frame:
        """What is shown of an image; raises `OutsideImage`."""
        return whole


class AttributeTemplates(DerivingTerms, Templates):
    """Focus on, or change, an attribute of an object: crops of images by annotations in VAW's form.

    taxonomy: JSON file of attribute types, each with its attributes. crops: how a box grows before it is cut out,
    ``corrected`` to all sides as the paper says, or ``published`` as the authors' code has it.
    """

    kind: Literal["genecis-attributes"]
    taxonomy: Annotated[Location, Place("file", "annotations")]
    crops: Literal["corrected", "published"] = "corrected"
    licence: str = UNKNOWN

    reference = Reference("VAW", "https://vawdataset.com", bibtex("pham2021vaw", "krishna2017visual"))
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "attributes")}

    def drafts(self) -> Iterable[Draft]:
        taxonomy = read_taxonomy(self.taxonomy)
        instances = read_instances(self.annotations, taxonomy, self.excluded)
        drafts = FocusAttribute if self.task == "focus" else ChangeAttribute
        return drafts(instances, taxonomy, self.stage.seed, self.stage.name, self.excluded)

    def seen(self, whole: Frame, entry: dict[str, Any]) -> Frame:
        """The object in an image."""
        x, y, width, height = entry["instance_bbox"]
        try:
            pixels = crop(whole.pixels, (x, y, width, height), self.crops)
        except OutsideImage as error:
            raise OutsideImage(f"instance {entry['instance_id']} of {whole.id}: {error}") from error
        return replace(whole, id=f"{whole.id}#{x!r},{y!r},{width!r},{height!r}", pixels=pixels)


class ObjectTemplates(Templates):
    """Focus on, or change, an object of a scene: whole images by panoptic annotations in COCO's form."""

    kind: Literal["genecis-objects"]
    licence: str = UNKNOWN

    reference = Reference(
        "COCO Panoptic", "https://cocodataset.org/#panoptic-2018", bibtex("lin2014coco", "kirillov2019panoptic")
    )
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "objects")}

    def drafts(self) -> Iterable[Draft]:
        scenes = read_scenes(self.annotations, self.excluded)
        drafts = FocusObject if self.task == "focus" else ChangeObject
        return drafts(scenes, self.stage.seed, self.stage.name, self.excluded)
