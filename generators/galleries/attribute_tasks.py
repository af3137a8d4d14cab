"""Focus on an Attribute and Change an Attribute: templates from labelled objects (GeneCIS, A.1 and A.2).

From the paper, Focus: reference and target are the same object with the same attribute, the condition is the type of
the attribute, and the nine distractors are the same object, explicitly labelled not to have it; five types are left
out. Change: reference and target are the same object with different attributes of one type, the condition is the
attribute of the target; nine distractors have it and are another object, five are the reference's object without it.
Both are roughly balanced over types.

Where the paper is silent, so that there is one right answer:

* Without an attribute always means labelled so: what is not labelled is not known.
* Focus: no distractor has any attribute of the type in common with the reference (a black and white cat is as much the
  colour of a white as of a black one).
* Change: the reference is labelled not to have the conditioning attribute, and shares none of the type with the target;
  another object's name has no word in common with the reference's (a train car is a train to many eyes).
* No image comes twice in a template, and no distractor is from an image that shows a right answer anywhere.
* Types take turns, within a type its attributes, within an attribute the objects. A reference comes once a condition.
* Type ``other`` of VAW's own taxonomy, which the authors' cleaned one resolved, is no condition either.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.drafts import Draft, Entry, in_turn
from twinset.generators.galleries.vaw import Instance

#: No clear visual categories (GeneCIS, A.2), and ours, ``other``.
NO_CONDITIONS = frozenset({"opinion", "other after", "other physical quality", "state", "type", "other"})
SAME_OBJECT = {"focus-attribute": 9, "change-attribute": 5}
OTHER_OBJECTS = {"focus-attribute": 0, "change-attribute": 9}

AttributeTask = Literal["focus-attribute", "change-attribute"]
_Numbers = NDArray[np.int64]
_NONE: _Numbers = np.zeros(0, dtype=np.int64)


class AttributeDrafts:
    """Templates of one task from labelled instances.

    excluded gains, as they are found, ``reference-without-gallery``: references for which no target, or too few
    distractors, were found.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        taxonomy: Mapping[str, Collection[str]],
        task: AttributeTask,
        seed: int,
        subset: str,
        excluded: LeftOut,
    ) -> None:
        self.instances = instances
        self.taxonomy = taxonomy
        self.task = task
        self.excluded = excluded
        self._seed, self._subset = seed, subset
        self._image = np.unique([instance.image for instance in instances], return_inverse=True)[1]
        self._has = _cells(instances, [instance.positive for instance in instances])
        self._lacks = _cells(instances, [instance.negative for instance in instances])
        with_attribute: defaultdict[str, list[str]] = defaultdict(list)
        for name, attribute in sorted(self._has):
            with_attribute[attribute].append(name)
        self._objects = dict(with_attribute)

    def __iter__(self) -> Iterator[Draft]:
        """All that can be made, the first ones the same however many are taken."""
        left_out = NO_CONDITIONS if self.task == "focus-attribute" else frozenset()
        kinds = [kind for kind in self.taxonomy if kind not in left_out]
        seen: set[tuple[str | int, ...]] = set()
        for draft in in_turn(self._of_type(kind) for kind in self._shuffled(kinds, "types")):
            if draft.identity not in seen:  # an attribute can have several types, and a reference several of a type
                seen.add(draft.identity)
                yield draft

    def _of_type(self, kind: str) -> Iterator[Draft]:
        attributes = [attribute for attribute in sorted(self.taxonomy[kind]) if attribute in self._objects]
        return in_turn(self._of_attribute(kind, attribute) for attribute in self._shuffled(attributes, kind))

    def _of_attribute(self, kind: str, attribute: str) -> Iterator[Draft]:
        names = [name for name in self._objects[attribute] if self._enough(name, attribute)]
        names = self._shuffled(names, kind, attribute)
        return in_turn(self._of_object(kind, attribute, name) for name in names)

    def _enough(self, name: str, attribute: str) -> bool:
        """Whether an object with and without an attribute comes in as many images as a template takes at least."""
        references = 1 if self.task == "focus-attribute" else 0
        enough = (
            (self._has[name, attribute], 1 + references),
            (self._lacks.get((name, attribute), _NONE), SAME_OBJECT[self.task] + 1 - references),
        )
        return all(len(np.unique(self._image[instances])) >= least for instances, least in enough)

    def _of_object(self, kind: str, attribute: str, name: str) -> Iterator[Draft]:
        """Templates of all references: with the attribute (Focus), or with another one of its type (Change)."""
        has, lacks = self._has[name, attribute], self._lacks[name, attribute]
        references = has if self.task == "focus-attribute" else lacks
        random = generator_for(self._seed, self._subset, f"{kind}/{attribute}/{name}")
        for reference in random.permutation(references):
            of_type = [one for one in self.instances[reference].positive if one in self.taxonomy[kind]]
            if self.task == "change-attribute" and not of_type:
                continue
            alike = np.concatenate([_NONE, *(self._has[name, one] for one in of_type)])
            if self.task == "focus-attribute":
                draft = self._draft(kind, attribute, int(reference), has, alike, np.setdiff1d(lacks, alike), random)
            else:
                draft = self._draft(kind, attribute, int(reference), np.setdiff1d(has, alike), has, lacks, random)
            if draft is None:
                place = f"instance {self.instances[int(reference)].id} as {name} for {attribute}"
                self.excluded.add("reference-without-gallery", place)
            else:
                yield draft

    def _draft(
        self,
        kind: str,
        attribute: str,
        reference: int,
        targets: _Numbers,
        right: _Numbers,
        wrong: _Numbers,
        random: np.random.Generator,
    ) -> Draft | None:
        """right: instances that would be right answers. wrong: those of the same object that are not."""
        name = self.instances[reference].object_name
        target = self._pick(targets, 1, self._image[[reference]], random)
        # No image that shows a right answer anywhere: the crop, grown around something else, could show it too.
        taken = self._image[np.append(right, reference)]
        gallery = self._pick(wrong, SAME_OBJECT[self.task], taken, random)
        if target is None or gallery is None:
            return None
        if self.task == "change-attribute":
            words = _words(name)
            others = [
                self._has[other, attribute] for other in self._objects[attribute] if words.isdisjoint(_words(other))
            ]
            taken = np.append(taken, self._image[gallery])
            other_objects = self._pick(np.concatenate([_NONE, *others]), OTHER_OBJECTS[self.task], taken, random)
            if other_objects is None:
                return None
            gallery = np.append(other_objects, gallery)
        condition = kind if self.task == "focus-attribute" else attribute
        return Draft(
            task=self.task,
            entry={
                "condition": condition,
                "reference": self._entry(reference),
                "target": self._entry(int(target[0])),
                "gallery": [self._entry(int(instance)) for instance in gallery],
            },
            identity=(self.instances[reference].id, condition),
            facts={"object": name, "attribute": attribute, "attribute_type": kind},
            images=tuple(f"{self.instances[number].image}.jpg" for number in (reference, *target, *gallery)),
        )

    def _pick(self, pool: _Numbers, count: int, taken: _Numbers, random: np.random.Generator) -> _Numbers | None:
        """Instances of different images, none of those taken; None where there are not so many."""
        drawn = random.permutation(pool)
        images = self._image[drawn]
        first = np.sort(np.unique(images, return_index=True)[1])
        first = first[~np.isin(images[first], taken)][:count]
        return drawn[first] if len(first) == count else None

    def _shuffled(self, names: list[str], *place: str) -> list[str]:
        order = generator_for(self._seed, self._subset, "/".join(("order", *place))).permutation(len(names))
        return [names[number] for number in order]

    def _entry(self, number: int) -> Entry:
        instance = self.instances[number]
        return {"image_id": instance.image, "instance_bbox": list(instance.box), "instance_id": instance.id}


def _words(name: str) -> set[str]:
    """Words of an object's name; plurals as singulars, roughly."""
    return {word.removesuffix("s") for word in name.split()}


def _cells(instances: Sequence[Instance], attributes: Sequence[Collection[str]]) -> dict[tuple[str, str], _Numbers]:
    """Numbers of the instances by object name and attribute."""
    cells: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (instance, named) in enumerate(zip(instances, attributes, strict=True)):
        for attribute in named:
            cells[instance.object_name, attribute].append(number)
    return {cell: np.array(numbers, dtype=np.int64) for cell, numbers in cells.items()}
