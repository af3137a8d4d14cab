"""Rules that need annotations: labels of objects (VAW), or categories of images (COCO Panoptic) (GeneCIS, A.1)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from tests.generators.galleries.invariants import FIRST, Broken, Template, image_of
from twinset.generators.galleries.drafts import Entry
from twinset.generators.galleries.panoptic import Scenes
from twinset.generators.galleries.vaw import Instance

LEAST_CATEGORIES, LEAST_SHARED, MOST_SHARED_FAR, FAR = 10, 6, 2, 5

Categories = frozenset[str]


class AttributeRules:
    """The rules of both tasks; one with an object that is not labelled breaks ``unknown-instance`` only."""

    def __init__(self, instances: Sequence[Instance], taxonomy: Mapping[str, Collection[str]]) -> None:
        self._taxonomy = {kind: frozenset(attributes) for kind, attributes in taxonomy.items()}
        self._by_id = {(one.image, one.id): one for one in instances}
        self._by_box = {(one.image, one.box): one for one in instances}
        self._by_image: defaultdict[str, list[Instance]] = defaultdict(list)
        for one in instances:
            self._by_image[one.image].append(one)

    def __call__(self, template: Template) -> Broken:
        """What a template breaks."""
        found = [self._find(entry) for entry in template.entries]
        unknown = [entry for entry, one in zip(template.entries, found, strict=True) if one is None]
        if unknown:
            yield from (("unknown-instance", f"{entry} is not annotated") for entry in unknown)
            return
        reference, target, *gallery = (one for one in found if one is not None)
        if template.task == "focus-attribute":
            alike = self._taxonomy.get(template.condition, frozenset()) & set(reference.positive)
            yield from _focus(template.condition, alike, reference, target, gallery)
            yield from self._elsewhere(reference, alike, gallery)
        elif template.task == "change-attribute":
            yield from self._change(template.condition, reference, target, gallery)
            yield from self._elsewhere(reference, {template.condition}, gallery)

    def _change(self, name: str, reference: Instance, target: Instance, gallery: Sequence[Instance]) -> Broken:
        """Target and reference are one object with different attributes of one type; the target has that of the
        condition, the reference and the last five distractors, of the same object, lack it; the others have it."""
        if target.object_name != reference.object_name:
            yield "other-object", f"target {target.object_name!r}, not {reference.object_name!r}"
        if name not in target.positive:
            yield "target-attribute", f"the target is not labelled {name!r}"
        if name not in reference.negative:
            yield "reference-attribute", f"the reference is not labelled to lack {name!r}"
        kinds = [kind & set(reference.positive) for kind in self._taxonomy.values() if name in kind]
        if all(attributes & set(target.positive) for attributes in kinds if attributes):
            yield "same-attribute", f"no type of {name!r} in which reference and target differ"
        for one in gallery[:FIRST]:
            if name not in one.positive:
                yield "other-attribute", f"a distractor is not labelled {name!r}"
            if _words(one) & _words(reference):
                yield "not-other-object", f"{one.object_name!r} for {reference.object_name!r}"
        for one in gallery[FIRST:]:
            if one.object_name != reference.object_name:
                yield "other-object", f"distractor {one.object_name!r}"
            if name not in one.negative:
                yield "not-negative", f"a distractor is not labelled to lack {name!r}"

    def _elsewhere(self, reference: Instance, right: Collection[str], gallery: Sequence[Instance]) -> Broken:
        """No image of a distractor shows the reference's object with an attribute that makes an answer right."""
        for one in gallery:
            for beside in self._by_image[one.image]:
                if beside.object_name == reference.object_name and set(right) & set(beside.positive):
                    yield "answer-elsewhere", f"instance {beside.id} of a distractor's image would be right"

    def _find(self, entry: Entry) -> Instance | None:
        if "instance_id" in entry:  # published files may lack it, and two objects can have one box
            return self._by_id.get((image_of(entry), str(entry["instance_id"])))
        x, y, width, height = entry["instance_bbox"]
        return self._by_box.get((image_of(entry), (x, y, width, height)))


def _focus(
    kind: str, alike: Collection[str], reference: Instance, target: Instance, gallery: Sequence[Instance]
) -> Broken:
    """Target and reference are one object and share an attribute of the type that all distractors, of the same object,
    are labelled to lack; these share no other one of the type with the reference.

    alike: the reference's attributes of the type.
    """
    shared = set(alike) & set(target.positive)
    if {one.object_name for one in (target, *gallery)} != {reference.object_name}:
        yield "other-object", f"not all are {reference.object_name!r}"
    if not shared:
        yield "target-attribute", f"no {kind} shared with the reference"
    elif not any(all(name in one.negative for one in gallery) for name in shared):
        yield "not-negative", f"a distractor is not labelled to lack {sorted(shared)}"
    for one in gallery:
        if answers := sorted(set(alike) & set(one.positive)):
            yield "second-answer", f"a distractor is {answers} as the reference"


def _words(one: Instance) -> set[str]:
    return {word.removesuffix("s") for word in one.object_name.split()}


class ObjectRules:
    """The rules of both tasks; one with an image that is not annotated breaks ``unknown-image`` only."""

    def __init__(self, scenes: Scenes) -> None:
        self._categories = {
            str(image): frozenset(name for name, present in zip(scenes.names, row, strict=True) if present)
            for image, row in zip(scenes.ids.tolist(), scenes.present, strict=True)
        }
        self._last: dict[str, int] = {}  # reference -> categories that it shares with its last target

    def __call__(self, template: Template) -> Broken:
        """What a template breaks, the templates of a file in their order."""
        if unknown := [image for image in template.images if image not in self._categories]:
            yield from (("unknown-image", f"{image} is not annotated") for image in unknown)
            return
        reference, target, *gallery = (self._categories[image] for image in template.images)
        condition, change = template.condition, template.task == "change-object"
        if len(reference) < LEAST_CATEGORIES:
            yield "few-categories", f"the reference shows {len(reference)} categories"
        if (condition in reference) == change:
            yield "reference-condition", f"the reference {'shows' if change else 'lacks'} {condition!r}"
        # The target is close and shows the condition; near distractors are close, far ones show it.
        seen = [("target", "the target", target)]
        seen += [("near", "a near distractor", image) for image in gallery[:FIRST]]
        seen += [("far", "a far distractor", image) for image in gallery[FIRST:]]
        for place, name, image in seen:
            shared = f"{len(image & reference)} shared categories"
            if place != "far" and not _close(image, reference):
                yield f"{place}-not-close", shared
            if place == "far" and len(image & reference) > MOST_SHARED_FAR:
                yield "far-not-far", shared
            if (condition in image) == (place == "near"):
                yield f"{place}-condition", f"{name} {'shows' if place == 'near' else 'lacks'} {condition!r}"
        if change:
            yield from self._order(image_of(template.reference), reference, len(target & reference))

    def _order(self, image: str, reference: Categories, shared: int) -> Broken:
        """The target of a reference's first template is the most similar close image that can be one; a later target is
        never more similar than the one before."""
        most = self._last[image] if image in self._last else self._most_similar(reference)
        if shared > most or (image not in self._last and shared < most):
            yield "target-order", f"the target shares {shared} categories where {most} were expected"
        self._last[image] = shared

    def _most_similar(self, reference: Categories) -> int:
        """Most categories shared by an image that is close and shows what a gallery can be made for."""
        close = [image for image in self._categories.values() if _close(image, reference)]
        far = [image for image in self._categories.values() if len(image & reference) <= MOST_SHARED_FAR]
        for target in sorted(close, key=lambda image: -len(image & reference)):
            for condition in target - reference:
                enough = sum(condition not in image for image in close) >= FIRST
                if enough and sum(condition in image for image in far) >= FAR:
                    return len(target & reference)
        return 0


def _close(image: Categories, reference: Categories) -> bool:
    return len(image & reference) >= LEAST_SHARED and not reference <= image
