"""Rules of the templates about objects, given the categories of their images (GeneCIS, A.1)."""

from __future__ import annotations

from evaluation.galleries.invariants import FIRST, Broken, Template, image_of
from generators.galleries.panoptic import Scenes

Categories = frozenset[str]

LEAST_CATEGORIES, LEAST_SHARED, MOST_SHARED_FAR, FAR = 10, 6, 2, 5


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
