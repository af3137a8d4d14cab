"""Rules that every template of GeneCIS keeps, checked on its JSON entries, published or made here.

A rule says nothing of how templates are made, and shares no code with it. Those of `AttributeRules` and `ObjectRules`
need the annotations too: labels of objects (VAW), or categories of images (COCO Panoptic); GeneCIS, A.1.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinset.generators.galleries.drafts import DISTRACTORS, Entry, Task
from twinset.generators.galleries.panoptic import Scenes
from twinset.generators.galleries.vaw import Instance

#: Of a gallery of 15: the first are near the reference, or another object; the last five are far, or the same object.
FIRST = 9
#: Types that are no condition (GeneCIS, A.2).
NO_CONDITIONS = ("opinion", "other after", "other physical quality", "state", "type")
LEAST_CATEGORIES, LEAST_SHARED, MOST_SHARED_FAR = 10, 6, 2

Categories = frozenset[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a template breaks. template: its number in the file, from 0."""

    template: int
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Template:
    """A template of a file."""

    task: Task
    condition: str
    reference: Entry
    target: Entry
    gallery: tuple[Entry, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Reference, target and gallery."""
        return (self.reference, self.target, *self.gallery)

    @property
    def images(self) -> list[str]:
        """Image ids of `entries`."""
        return [image_of(entry) for entry in self.entries]


#: What one template breaks: the rule's name, and a detail.
Broken = Iterator[tuple[str, str]]
Rule = Callable[[Template], Broken]


def image_of(entry: Entry) -> str:
    """Id of the image of an entry, of COCO or Visual Genome."""
    return str(entry["val_image_id"] if "val_image_id" in entry else entry["image_id"])


def check(
    entries: Sequence[Entry], task: Task, annotated: Rule | None = None, conditions: Collection[str] | None = None
) -> list[Problem]:
    """All problems of the templates of one file, by template; none has reference, target and condition of another.

    Args:
        entries: the templates as they stand in the file.
        annotated: the rules that need annotations; it sees the templates in the order of the file.
        conditions: all that a condition can be, if known.
    """
    problems, seen = [], set[tuple[str, str, str]]()
    for number, entry in enumerate(entries):
        template = Template(task, entry["condition"], entry["reference"], entry["target"], tuple(entry["gallery"]))
        found = [*_images(template), *_condition(template, conditions), *(annotated(template) if annotated else ())]
        question = (_place(template.reference), _place(template.target), template.condition)
        if question in seen:
            found.append(("template-again", "asks what an earlier one asks"))
        seen.add(question)
        problems += [Problem(number, rule, detail) for rule, detail in found]
    return problems


def _images(template: Template) -> Broken:
    """The gallery has 10 or 15 images, the target among them (Table 1), and no image comes twice in a template."""
    reference, target, *gallery = template.images
    if len(gallery) != DISTRACTORS[template.task]:
        yield "gallery-size", f"{len(gallery)} distractors instead of {DISTRACTORS[template.task]}"
    if reference == target or reference in gallery:
        yield "reference-again", f"{reference} is reference and candidate"
    if target in gallery:  # a second right answer
        yield "target-again", f"{target} is target and distractor"
    if len(set(gallery)) < len(gallery):
        yield "distractor-again", "an image comes twice in the gallery"


def _condition(template: Template, conditions: Collection[str] | None) -> Broken:
    """The condition is one of those known, not a type that the paper leaves out, and a COCO name is stripped."""
    name = template.condition
    raw = template.task.endswith("object") and name.endswith(("-merged", "-other", "-stuff"))
    left_out = template.task == "focus-attribute" and name in NO_CONDITIONS
    if not name.strip() or raw or left_out or (conditions is not None and name not in conditions):
        yield "condition", f"{name!r} is no condition of {template.task}"


def _place(entry: Entry) -> str:
    """An image, or an object in one."""
    return f"{image_of(entry)} {entry.get('instance_id', '')}"


class AttributeRules:
    """The rules of both tasks of attributes."""

    def __init__(self, instances: Sequence[Instance], taxonomy: Mapping[str, Collection[str]]) -> None:
        self._taxonomy = {kind: frozenset(attributes) for kind, attributes in taxonomy.items()}
        self._by_id = {(one.image, one.id): one for one in instances}
        self._by_image: defaultdict[str, list[Instance]] = defaultdict(list)
        for one in instances:
            self._by_image[one.image].append(one)

    def __call__(self, template: Template) -> Broken:
        """What a template breaks."""
        reference, target, *gallery = (
            self._by_id[image_of(entry), str(entry["instance_id"])] for entry in template.entries
        )
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
    """The rules of both tasks of objects."""

    def __init__(self, scenes: Scenes) -> None:
        self._categories = {
            str(image): frozenset(name for name, present in zip(scenes.names, row, strict=True) if present)
            for image, row in zip(scenes.ids.tolist(), scenes.present, strict=True)
        }
        self._last: dict[str, int] = {}  # reference -> categories that it shares with its last target

    def __call__(self, template: Template) -> Broken:
        """What a template breaks, the templates of a file in their order."""
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
        # A later target of a reference is never more similar than the one before.
        image, shared_now = image_of(template.reference), len(target & reference)
        if change and shared_now > self._last.get(image, shared_now):
            yield "target-order", f"the target shares {shared_now} categories, the one before {self._last[image]}"
        self._last[image] = shared_now


def _close(image: Categories, reference: Categories) -> bool:
    return len(image & reference) >= LEAST_SHARED and not reference <= image
