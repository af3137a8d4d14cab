"""Rules that every template of GeneCIS keeps, checked on its JSON entries, published or made here.

A rule says nothing of how templates are made, and shares no code with it. The rules here need the entries alone; those
of `tests.generators.galleries.annotated_invariants` also need the annotations that templates were made from.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from twinset.generators.galleries.drafts import DISTRACTORS, Entry, Task

#: Of a gallery of 15: the first are near the reference, or another object; the last five are far, or the same object.
FIRST = 9
#: Types that are no condition (GeneCIS, A.2).
NO_CONDITIONS = ("opinion", "other after", "other physical quality", "state", "type")


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a template breaks. template: its number in the file, from 0."""

    template: int
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Template:
    """A template of a file, of the right shape."""

    number: int
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
    entries: Sequence[Any], task: Task, annotated: Rule | None = None, conditions: Collection[str] | None = None
) -> list[Problem]:
    """All problems of the templates of one file, by template.

    Args:
        entries: the templates as they stand in the file.
        annotated: the rules that need annotations; it sees the templates in the order of the file.
        conditions: all that a condition can be, if known.
    """
    templates, problems = [], []
    for number, entry in enumerate(entries):
        if wrong := _misshapen(entry, task):
            problems.append(Problem(number, "shape", wrong))
            continue
        parts = entry["condition"], entry["reference"], entry["target"], tuple(entry["gallery"])
        templates.append(Template(number, task, *parts))
    for template in templates:
        found = [*_images(template), *_condition(template, conditions), *(annotated(template) if annotated else ())]
        problems += [Problem(template.number, rule, detail) for rule, detail in found]
    problems += [*_repeated(templates), *_contradictions(templates)]
    return sorted(problems, key=lambda problem: (problem.template, problem.rule, problem.detail))


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


def _repeated(templates: Sequence[Template]) -> Iterator[Problem]:
    """No template has reference, target and condition of an earlier one."""
    seen: dict[tuple[str, ...], int] = {}
    for template in templates:
        question = (_place(template.reference), _place(template.target), template.condition)
        if question in seen:
            yield Problem(template.number, "template-again", f"asks what template {seen[question]} asks")
        seen.setdefault(question, template.number)


def _contradictions(templates: Sequence[Template]) -> Iterator[Problem]:
    """An object that one template implies to have a condition, no other one implies to lack it.

    Not for Focus on an Attribute, where the condition is a type.
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
    """What keeps the released evaluation from reading an entry as a template of a task; empty where it can."""
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
