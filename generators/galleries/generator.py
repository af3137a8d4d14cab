"""GeneCIS's four tasks as sources of a build: templates are drawn when it is planned, and get their images later."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Frame, Rejected
from twinset.contracts.kinds.template import Template
from twinset.generators.galleries.attribute_tasks import AttributeDrafts, AttributeTask
from twinset.generators.galleries.drafts import Draft, Entry
from twinset.generators.galleries.object_tasks import ObjectDrafts, ObjectTask
from twinset.generators.galleries.panoptic import read_scenes
from twinset.generators.galleries.source import AttributeTemplates, ObjectTemplates
from twinset.generators.galleries.vaw import OutsideImage, crop, read_instances, read_taxonomy
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.shards.contracts import Context, Generator


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


class TemplateGenerator(Generator[AttributeTemplates | ObjectTemplates]):
    """Templates of one task, of attributes (VAW) or objects (COCO Panoptic)."""

    version = 2
    candidate = TemplateCandidate
    libraries = ("numpy", "pillow")

    def __init__(self, source: AttributeTemplates | ObjectTemplates, context: Context) -> None:
        super().__init__(source, context)
        self.files = ImageFiles(source.media, upright=False)  # boxes and areas count the stored pixels

    def inputs(self) -> str:
        annotations = (path for _, place, path in self.source.places() if place.need == "annotations")
        return digest([sha256_of_file(path)[0] for path in annotations])

    def plan(self) -> Iterator[TemplateCandidate]:
        """All templates that can be made, the first ones the same for any count; each is a group of its own.

        Raises `WrongUse` for annotations of another shape, and when there is not one template in them.
        """
        draft = None
        for draft in self._drafts():
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
                f"{self.source.annotations}: no template of {self.source.task} can be made of it (left out: "
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
                reference, target, *gallery = map(self._seen, cast(list[Frame], images), entries)
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

    def _drafts(self) -> Iterable[Draft]:
        source = self.source
        if isinstance(source, ObjectTemplates):
            scenes = read_scenes(source.annotations, self.excluded)
            of_objects: ObjectTask = "focus-object" if source.task == "focus" else "change-object"
            return ObjectDrafts(scenes, of_objects, self.seed, self.name, self.excluded)
        taxonomy = read_taxonomy(source.taxonomy)
        instances = read_instances(source.annotations, taxonomy, self.excluded)
        task: AttributeTask = "focus-attribute" if source.task == "focus" else "change-attribute"
        return AttributeDrafts(instances, taxonomy, task, self.seed, self.name, self.excluded)

    def _seen(self, whole: Frame, entry: dict[str, Any]) -> Frame:
        """The whole image, or the object in it; raises `OutsideImage`."""
        if not isinstance(self.source, AttributeTemplates):
            return whole
        x, y, width, height = entry["instance_bbox"]
        try:
            pixels = crop(whole.pixels, (x, y, width, height), self.source.crops)
        except OutsideImage as error:
            raise OutsideImage(f"instance {entry['instance_id']} of {whole.id}: {error}") from error
        return replace(whole, id=f"{whole.id}#{x!r},{y!r},{width!r},{height!r}", pixels=pixels)
