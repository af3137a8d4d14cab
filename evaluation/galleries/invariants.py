"""What holds of every template of GeneCIS, checked on its JSON entries, published or made here.

A rule says nothing of how templates are made, and shares no code with it. Some need the annotations that templates
were made from (`object_invariants`, `attribute_invariants`); those here hold of the entries alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generators.galleries.drafts import DISTRACTORS, Entry, Task

#: Of a gallery of 15: the first are near the reference, or another object; the last five are far, or the same object.
FIRST = 9
#: Types that are no condition (GeneCIS, A.2).
NO_CONDITIONS = ("opinion", "other after", "other physical quality", "state", "type")


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that does not hold. template: its number in the file, from 0."""

    template: int
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Template:
    """A template as it stands in a file, of the right shape."""

    number: int
    task: Task
    condition: str
    reference: Entry
    target: Entry
    gallery: tuple[Entry, ...]

    @property
    def images(self) -> list[str]:
        """Image ids of reference, target and gallery."""
        return [image_of(entry) for entry in (self.reference, self.target, *self.gallery)]


Rule = Callable[[Sequence[Template]], Iterator[Problem]]


def image_of(entry: Entry) -> str:
    """Id of the image of an entry, of COCO or Visual Genome."""
    return str(entry["val_image_id"] if "val_image_id" in entry else entry["image_id"])


def of_shape(entries: Any, task: Task) -> tuple[list[Template], list[Problem]]:
    """Templates of a file that have the shape that the released evaluation reads, and what is wrong with the others."""
    templates, problems = [], []
    for number, entry in enumerate(entries):
        wrong = _misshapen(entry, task)
        if wrong:
            problems.append(Problem(number, "shape", wrong))
        else:
            listed = tuple(entry["gallery"])
            templates.append(Template(number, task, entry["condition"], entry["reference"], entry["target"], listed))
    return templates, problems


def check(entries: Any, task: Task, *rules: Rule, conditions: Collection[str] | None = None) -> list[Problem]:
    """All problems of the templates of one file: of their shape, of the rules here, and of further ``rules``.

    conditions: all that a condition can be, if known.
    """
    templates, problems = of_shape(entries, task)
    for rule in (gallery_size, images_repeat, template_repeats, image_contradicts, *rules):
        problems += rule(templates)
    problems += condition_unknown(templates, conditions)
    return sorted(problems, key=lambda problem: (problem.template, problem.rule, problem.detail))


def gallery_size(templates: Sequence[Template]) -> Iterator[Problem]:
    """The gallery has 10 or 15 images, the target among them (Table 1)."""
    for template in templates:
        if len(template.gallery) != DISTRACTORS[template.task]:
            detail = f"{len(template.gallery)} distractors instead of {DISTRACTORS[template.task]}"
            yield Problem(template.number, "gallery-size", detail)


def images_repeat(templates: Sequence[Template]) -> Iterator[Problem]:
    """No image comes twice in a template; a target that comes again is a second right answer."""
    for template in templates:
        reference, target, *gallery = template.images
        if reference == target or reference in gallery:
            yield Problem(template.number, "reference-again", f"{reference} is reference and candidate")
        if target in gallery:
            yield Problem(template.number, "target-again", f"{target} is target and distractor")
        if len(set(gallery)) < len(gallery):
            yield Problem(template.number, "distractor-again", "an image comes twice in the gallery")


def template_repeats(templates: Sequence[Template]) -> Iterator[Problem]:
    """No template has reference, target and condition of an earlier one."""
    seen: dict[tuple[str, ...], int] = {}
    for template in templates:
        question = (_place(template.reference), _place(template.target), template.condition)
        if question in seen:
            yield Problem(template.number, "template-again", f"asks what template {seen[question]} asks")
        seen.setdefault(question, template.number)


def condition_unknown(templates: Sequence[Template], conditions: Collection[str] | None) -> Iterator[Problem]:
    """The condition is one of those known; no type that the paper leaves out; no COCO name with what it strips."""
    for template in templates:
        name = template.condition
        stripped = template.task.endswith("attribute") or not name.endswith(("-merged", "-other", "-stuff"))
        left_out = template.task == "focus-attribute" and name in NO_CONDITIONS
        if not name.strip() or not stripped or left_out or (conditions is not None and name not in conditions):
            yield Problem(template.number, "condition", f"{name!r} is no condition of {template.task}")


def image_contradicts(templates: Sequence[Template]) -> Iterator[Problem]:
    """What a template implies to have the condition, no other one implies not to have it.

    Needs no annotations. Not of Focus on an Attribute, where the condition is a type.
    """
    having: defaultdict[str, dict[str, int]] = defaultdict(dict)
    lacking: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for template in templates:
        if template.task == "focus-attribute":
            continue
        first, last = template.gallery[:FIRST], template.gallery[FIRST:]
        near, far = (last, first) if template.task == "change-attribute" else (first, last)
        positive, negative = [template.target, *far], [*near]
        (positive if template.task == "focus-object" else negative).append(template.reference)
        for sides, entries in ((having, positive), (lacking, negative)):
            for entry in entries:
                sides[template.condition].setdefault(_place(entry), template.number)
    for condition, places in having.items():
        for place in places.keys() & lacking[condition].keys():
            detail = f"{place} has {condition!r} here and lacks it in template {lacking[condition][place]}"
            yield Problem(places[place], "contradiction", detail)


def _place(entry: Entry) -> str:
    """An image, or an object in one: by its id where the file has it, else by its box."""
    return f"{image_of(entry)} {entry.get('instance_id', entry.get('instance_bbox', ''))}".strip()


def _misshapen(entry: Any, task: Task) -> str:
    """What keeps an entry from being read as a template of a task; nothing where it can be."""
    if not isinstance(entry, dict) or {"condition", "gallery", "reference", "target"} - entry.keys():
        return "not an object of condition, gallery, reference and target"
    if not isinstance(entry["condition"], str) or not isinstance(entry["gallery"], list):
        return "condition is no text, or gallery no list"
    for image in (entry["reference"], entry["target"], *entry["gallery"]):
        if not isinstance(image, dict):
            return f"{image!r:.40} is no object"
        if task.endswith("object"):
            if type(image.get("val_image_id")) is not int:
                return "an image has no whole number as val_image_id"
        elif not _is_crop(image):
            return "an image has no image_id, or no instance_bbox of four numbers"
    return ""


def _is_crop(image: Entry) -> bool:
    box = image.get("instance_bbox")
    numbers = isinstance(box, list) and len(box) == 4 and all(type(number) in (int, float) for number in box)
    return numbers and type(image.get("image_id")) in (int, str)
