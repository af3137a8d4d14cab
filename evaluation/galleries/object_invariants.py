"""What holds of the templates about objects, given the categories of their images (GeneCIS, A.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from evaluation.galleries.invariants import FIRST, Problem, Rule, Template, image_of
from generators.galleries.panoptic import Scenes

Categories = Mapping[str, frozenset[str]]

LEAST_CATEGORIES, LEAST_SHARED, MOST_SHARED_FAR = 10, 6, 2


def object_rules(scenes: Scenes) -> tuple[Rule, ...]:
    """The rules of both tasks, for `invariants.check`; a template with an image that is not annotated breaks
    ``unknown-image`` and no other."""
    categories = {
        str(image): frozenset(name for name, present in zip(scenes.names, row, strict=True) if present)
        for image, row in zip(scenes.ids.tolist(), scenes.present, strict=True)
    }
    rules = (unknown_image, reference_scene, target_scene, near_distractors, far_distractors, most_similar_first)
    return tuple(partial(rule, categories) for rule in rules)


def unknown_image(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """Every image is annotated."""
    for template in templates:
        for image in template.images:
            if image not in categories:
                yield Problem(template.number, "unknown-image", f"{image} is not annotated")


def reference_scene(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """The reference shows ten categories; in Focus that of the condition, in Change not."""
    for template, reference, _ in _known(categories, templates):
        if len(reference) < LEAST_CATEGORIES:
            yield Problem(template.number, "few-categories", f"the reference shows {len(reference)} categories")
        if (template.condition in reference) != (template.task == "focus-object"):
            shows = "shows" if template.condition in reference else "lacks"
            yield Problem(template.number, "reference-condition", f"the reference {shows} {template.condition!r}")


def target_scene(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """The target is close and shows the condition."""
    for template, reference, gallery in _known(categories, templates):
        if not _close(gallery[0], reference):
            yield Problem(template.number, "target-not-close", f"{len(gallery[0] & reference)} shared categories")
        if template.condition not in gallery[0]:
            yield Problem(template.number, "target-condition", f"the target lacks {template.condition!r}")


def near_distractors(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """The first nine distractors are close and do not show the condition."""
    for template, reference, gallery in _known(categories, templates):
        for image in gallery[1 : 1 + FIRST]:
            if not _close(image, reference):
                yield Problem(template.number, "near-not-close", f"{len(image & reference)} shared categories")
            if template.condition in image:
                yield Problem(template.number, "near-condition", f"a near distractor shows {template.condition!r}")


def far_distractors(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """The last five distractors share at most two categories and show the condition."""
    for template, reference, gallery in _known(categories, templates):
        for image in gallery[1 + FIRST :]:
            if len(image & reference) > MOST_SHARED_FAR:
                yield Problem(template.number, "far-not-far", f"{len(image & reference)} shared categories")
            if template.condition not in image:
                yield Problem(template.number, "far-condition", f"a far distractor lacks {template.condition!r}")


def most_similar_first(categories: Categories, templates: Sequence[Template]) -> Iterator[Problem]:
    """Change: the target of a reference's first template is the most similar close image that can be one, and those of
    its later templates are never more similar than the one before."""
    before: dict[str, int] = {}
    for template, reference, gallery in _known(categories, templates):
        if template.task != "change-object":
            continue
        image, shared = image_of(template.reference), len(gallery[0] & reference)
        most = before[image] if image in before else _most_similar(categories, reference)
        if shared > most or (image not in before and shared < most):
            detail = f"the target shares {shared} categories where {most} were expected"
            yield Problem(template.number, "target-order", detail)
        before[image] = shared


def _most_similar(categories: Categories, reference: frozenset[str]) -> int:
    """Most categories shared by an image that is close and shows what a gallery can be made for."""
    close = [image for image in categories.values() if _close(image, reference)]
    far = [image for image in categories.values() if len(image & reference) <= MOST_SHARED_FAR]
    for target in sorted(close, key=lambda image: -len(image & reference)):
        for condition in target - reference:
            enough = sum(condition not in image for image in close) >= FIRST
            if enough and sum(condition in image for image in far) >= 5:
                return len(target & reference)
    return 0


def _close(image: frozenset[str], reference: frozenset[str]) -> bool:
    return len(image & reference) >= LEAST_SHARED and not reference <= image


def _known(
    categories: Categories, templates: Sequence[Template]
) -> Iterator[tuple[Template, frozenset[str], list[frozenset[str]]]]:
    """Templates of annotated images, with the categories of the reference, and of target and gallery."""
    for template in templates:
        if all(image in categories for image in template.images):
            reference, *gallery = (categories[image] for image in template.images)
            yield template, reference, gallery
