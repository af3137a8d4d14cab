"""Rules that every template of GeneCIS keeps, checked on its JSON, published or made here (GeneCIS, A.1).

They say nothing of how templates are made, and share no code with it. Those of objects need the categories of images
(COCO Panoptic), those of attributes the labels of objects (VAW).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

#: Of a gallery of 15: the first are near the reference, or another object; the last five are far, or the same object.
FIRST = 9

Entry = Mapping[str, Any]
#: Names of the rules that one template breaks.
Rules = Callable[[Entry], Iterator[str]]


def image_of(entry: Entry) -> str:
    """Id of the image of an entry, of COCO or Visual Genome."""
    return str(entry["val_image_id"] if "val_image_id" in entry else entry["image_id"])


def shown(template: Entry) -> list[Entry]:
    """Reference, target and gallery."""
    return [template["reference"], template["target"], *template["gallery"]]


def check(
    templates: Sequence[Entry], distractors: int, conditions: Collection[str], annotated: Rules | None = None
) -> list[tuple[int, str]]:
    """Number and broken rule of all templates of one file, in its order; none asks what another one asks.

    Args:
        templates: as they stand in the file.
        distractors: images in the gallery besides the target: 9 or 14 (Table 1).
        conditions: all that a condition can be.
        annotated: the rules that need annotations.
    """
    problems, asked = [], set[tuple[str, ...]]()
    for number, template in enumerate(templates):
        reference, target, *gallery = map(image_of, shown(template))
        places = [f"{image_of(entry)} {entry.get('instance_id', '')}" for entry in shown(template)[:2]]
        question = (*places, template["condition"])
        broken = {
            "gallery-size": len(gallery) != distractors,
            "reference-again": reference == target or reference in gallery,
            "target-again": target in gallery,  # a second right answer
            "distractor-again": len(set(gallery)) < len(gallery),
            "condition": template["condition"] not in conditions,
            "template-again": question in asked,
        }
        asked.add(question)
        problems += [(number, rule) for rule, is_broken in broken.items() if is_broken]
        problems += [(number, rule) for rule in annotated(template)] if annotated else []
    return problems


def object_rules(categories: Mapping[str, frozenset[str]], change: bool) -> Rules:
    """Those of both tasks of objects. categories: of each image."""
    last: dict[str, int] = {}  # reference -> categories that it shares with its last target

    def rules(template: Entry) -> Iterator[str]:
        images = [image_of(entry) for entry in shown(template)]
        reference, target, *gallery = (categories[image] for image in images)
        condition, near, far = template["condition"], gallery[:FIRST], gallery[FIRST:]
        close = [len(image & reference) >= 6 and not reference <= image for image in (target, *near)]
        if len(reference) < 10:
            yield "few-categories"
        if (condition in reference) == change:
            yield "reference-condition"
        if not all(close):
            yield "target-or-near-not-close"
        if any(len(image & reference) > 2 for image in far):
            yield "far-not-far"
        if any(condition in image for image in near) or not all(condition in image for image in (target, *far)):
            yield "gallery-condition"
        # A later target of a reference is never more similar than the one before.
        shared = len(target & reference)
        if change and shared > last.get(images[0], shared):
            yield "target-order"
        last[images[0]] = shared

    return rules


def attribute_rules(records: Sequence[Entry], taxonomy: Mapping[str, Collection[str]], change: bool) -> Rules:
    """Those of both tasks of attributes. records: VAW's."""
    by_id = {str(record["instance_id"]): record for record in records}
    by_image = defaultdict[str, list[Entry]](list)
    for record in records:
        by_image[image_of(record)].append(record)

    def has(record: Entry) -> set[str]:
        return {*record["positive_attributes"]}

    def words(record: Entry) -> set[str]:
        return {word.removesuffix("s") for word in record["object_name"].split()}

    def rules(template: Entry) -> Iterator[str]:
        reference, target, *gallery = (by_id[str(entry["instance_id"])] for entry in shown(template))
        name = template["condition"]
        right = {name} if change else {*taxonomy[name]} & has(reference)
        same = [target, *gallery[FIRST:]] if change else [target, *gallery]
        lacking = [reference, *gallery[FIRST:]] if change else gallery
        shared = right & has(target)
        if any(record["object_name"] != reference["object_name"] for record in same):
            yield "other-object"
        if not any(all(own in record["negative_attributes"] for record in lacking) for own in shared):
            yield "target-or-distractor-attribute"
        if not change and any(right & has(record) for record in gallery):
            yield "second-answer"
        if change:
            kinds = [{*kind} & has(reference) for kind in taxonomy.values() if name in kind]
            if all(attributes & has(target) for attributes in kinds if attributes):
                yield "same-attribute"
            if any(name not in has(record) or words(record) & words(reference) for record in gallery[:FIRST]):
                yield "not-another-object-with-it"
        # No image of a distractor shows the reference's object with an attribute that makes an answer right.
        beside = (other for record in gallery for other in by_image[image_of(record)])
        if any(other["object_name"] == reference["object_name"] and right & has(other) for other in beside):
            yield "answer-elsewhere"

    return rules
