"""Focus on an Object and Change an Object: templates from the categories of whole scenes (GeneCIS, A.1).

From the paper: a reference shows at least ten categories; *close* images share at least six of them, but not all, and
are ranked by how many they share; *far* ones share very few. Nine distractors are close and without the conditioning
object, five are far and with it. Focus: the target is any close image, the condition one of the shared categories.
Change: the target is the most similar close image, the condition any of its categories that the reference lacks.

Where the paper is silent:

* Far is at most two shared categories, drawn evenly; in Focus, the condition is one of them.
* Near distractors are the first of the ranking, as in the published files (there, all templates of a reference agree
  with one order); what ties is ordered by the seed.
* A reference comes again once every other one has had its turn, always with another target (the published 1,960
  templates have 218 references), and no template is made twice (of the published ones, 427 and 167 repeat another).
* Of the possible conditions that which its reference has used least is taken.
* Change: each later target of a reference is the next most similar one. The published targets are not the most similar:
  at least 786 of 1,960 rank behind near distractors of theirs.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.licences.terms import together
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.drafts import Draft, Entry, Task, in_turn
from twinset.generators.galleries.panoptic import Scenes

LEAST_CATEGORIES = 10
LEAST_SHARED = 6
MOST_SHARED_FAR = 2
NEAR = 9
FAR = 5


class ObjectDrafts:
    """Templates of one task from some scenes.

    excluded gains, by reason: ``reference-few-categories`` (images with less than ten) and, as they are found,
    ``reference-without-gallery`` (those for which not one template could be made).
    """

    task: ClassVar[Task]

    def __init__(self, scenes: Scenes, seed: int, subset: str, excluded: LeftOut) -> None:
        self.scenes = scenes
        self.excluded = excluded
        self._seed, self._subset = seed, subset
        # Counting by a matrix product: float32 is exact far beyond any number of categories, and fast.
        self._counted = scenes.present.astype(np.float32)
        self._images_of = scenes.present.sum(axis=0)

    def conditions(self, reference: int) -> NDArray[np.bool_]:
        """Of each category whether the reference leaves it to be the condition, (categories,)."""
        raise NotImplementedError

    def ordered(self, targets: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Targets, the most similar first, in the order in which a reference has them."""
        return targets

    def __iter__(self) -> Iterator[Draft]:
        """All that can be made, the first ones the same however many are taken."""
        enough = self.scenes.present.sum(axis=1) >= LEAST_CATEGORIES
        for image in self.scenes.ids[~enough].tolist():
            self.excluded.add("reference-few-categories", f"image {image}")
        references = np.flatnonzero(enough)
        generator_for(self._seed, self._subset, "references").shuffle(references)
        return in_turn(self._of_reference(int(reference)) for reference in references)

    def _of_reference(self, reference: int) -> Iterator[Draft]:
        """All templates of one reference, each with another target."""
        present = self.scenes.present
        random = generator_for(self._seed, self._subset, f"reference {self.scenes.ids[reference]}")
        close, possible = self._surroundings(reference, random)
        wanted = self.conditions(reference)
        open_targets = close[(present[close] & wanted & possible).any(axis=1)]
        if not len(open_targets):
            self.excluded.add("reference-without-gallery", f"image {self.scenes.ids[reference]}")
        uses = np.zeros(present.shape[1], dtype=np.int64)
        for target in self.ordered(open_targets, random):
            options = np.flatnonzero(present[target] & wanted & possible)
            least = options[uses[options] == uses[options].min()]
            condition = int(random.choice(least))
            uses[condition] += 1
            yield self._draft(reference, int(target), condition, close, random)

    def _surroundings(self, reference: int, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Close images, the most similar first, and of each category whether it has the distractors of a condition."""
        shared = self._shared(reference)
        close = np.flatnonzero((shared >= LEAST_SHARED) & (shared < shared[reference]))
        random.shuffle(close)
        close = close[np.argsort(-shared[close], kind="stable")]
        present = self.scenes.present
        near = len(close) - present[close].sum(axis=0)
        far = self._images_of - present[shared > MOST_SHARED_FAR].sum(axis=0)  # the fewer are counted
        return close, (near >= NEAR) & (far >= FAR)

    def _shared(self, reference: int) -> NDArray[np.float32]:
        """How many of the reference's categories each image shows, (images,); computed each time, to save memory."""
        shared: NDArray[np.float32] = self._counted @ self._counted[reference]
        return shared

    def _draft(
        self, reference: int, target: int, condition: int, close: NDArray[np.int64], random: np.random.Generator
    ) -> Draft:
        shows = self.scenes.present[:, condition]
        shared = self._shared(reference)
        near = close[~shows[close]][:NEAR]
        far = random.choice(np.flatnonzero(shows & (shared <= MOST_SHARED_FAR)), FAR, replace=False)
        name, images = self.scenes.names[condition], (reference, target, *near, *far)
        return Draft(
            task=self.task,
            entry={
                "condition": name,
                "reference": self._entry(reference),
                "target": self._entry(target),
                "gallery": [self._entry(int(image)) for image in (*near, *far)],
            },
            identity=(int(self.scenes.ids[reference]), int(self.scenes.ids[target]), name),
            facts={"reference_categories": int(shared[reference]), "shared_categories": int(shared[target])},
            images=tuple(self.scenes.files[image] for image in images),
            terms=together([self.scenes.terms[image] for image in images]),
        )

    def _entry(self, image: int) -> Entry:
        return {"val_image_id": int(self.scenes.ids[image])}


class FocusObject(ObjectDrafts):
    """The condition is a category that reference and target share; targets in any order."""

    task = "focus-object"

    def conditions(self, reference: int) -> NDArray[np.bool_]:
        present: NDArray[np.bool_] = self.scenes.present[reference]
        return present

    def ordered(self, targets: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        random.shuffle(targets)
        return targets


class ChangeObject(ObjectDrafts):
    """The condition is a category of the target that the reference lacks; the most similar target first."""

    task = "change-object"

    def conditions(self, reference: int) -> NDArray[np.bool_]:
        absent: NDArray[np.bool_] = ~self.scenes.present[reference]
        return absent
