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
* Types take turns, within a type its attributes, within an attribute the objects. Each reference is used at most once
  per condition.
* Type ``other`` of VAW's own taxonomy, which the authors' cleaned one resolved, is no condition either.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.drafts import Draft, Entry, Task, in_turn
from twinset.generators.galleries.vaw import Instance

#: No clear visual categories (GeneCIS, A.2), and ours, ``other``.
NO_CONDITIONS = frozenset({"opinion", "other after", "other physical quality", "state", "type", "other"})
Numbers = NDArray[np.int64]
_NONE: Numbers = np.zeros(0, dtype=np.int64)


class AttributeDrafts:
    """Templates of one task from labelled instances.

    excluded gains, as they are found, ``reference-without-gallery``: references for which no target, or too few
    distractors, were found.

    task: its name. same_object: distractors that are the reference's object. references: those that must have the
    attribute. no_conditions: types of attributes that are left out.
    """

    task: ClassVar[Task]
    same_object: ClassVar[int]
    references: ClassVar[int]
    no_conditions: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        instances: Sequence[Instance],
        taxonomy: Mapping[str, Collection[str]],
        seed: int,
        subset: str,
        excluded: LeftOut,
    ) -> None:
        self.instances = instances
        self.taxonomy = taxonomy
        self.excluded = excluded
        self._seed, self._subset = seed, subset
        self.image = np.unique([instance.image for instance in instances], return_inverse=True)[1]
        self.has = _cells(instances, [instance.positive for instance in instances])
        self.lacks = _cells(instances, [instance.negative for instance in instances])
        with_attribute: defaultdict[str, list[str]] = defaultdict(list)
        for name, attribute in sorted(self.has):
            with_attribute[attribute].append(name)
        self.objects = dict(with_attribute)

    def of_reference(
        self, kind: str, attribute: str, name: str, reference: int, random: np.random.Generator
    ) -> Draft | None:
        """The template of a reference; None where no target, or too few distractors, are found."""
        raise NotImplementedError

    def candidates(self, attribute: str, name: str) -> Numbers:
        """Instances of an object that may be references, for an attribute."""
        raise NotImplementedError

    def of_type(self, kind: str, reference: int) -> list[str]:
        """The reference's attributes of a type."""
        return [name for name in self.instances[reference].positive if name in self.taxonomy[kind]]

    def __iter__(self) -> Iterator[Draft]:
        """All that can be made, the first ones the same however many are taken."""
        kinds = [kind for kind in self.taxonomy if kind not in self.no_conditions]
        made: set[tuple[str | int, ...]] = set()
        for draft in in_turn(self._of_type(kind) for kind in self._shuffled(kinds, "types")):
            if draft.identity not in made:  # an attribute can have several types, and a reference several of a type
                made.add(draft.identity)
                yield draft

    def _of_type(self, kind: str) -> Iterator[Draft]:
        attributes = [attribute for attribute in sorted(self.taxonomy[kind]) if attribute in self.objects]
        return in_turn(self._of_attribute(kind, attribute) for attribute in self._shuffled(attributes, kind))

    def _of_attribute(self, kind: str, attribute: str) -> Iterator[Draft]:
        names = [name for name in self.objects[attribute] if self._enough(name, attribute)]
        names = self._shuffled(names, kind, attribute)
        return in_turn(self._of_object(kind, attribute, name) for name in names)

    def _enough(self, name: str, attribute: str) -> bool:
        """Whether an object with and without an attribute comes in as many images as a template takes at least."""
        enough = (
            (self.has[name, attribute], 1 + self.references),
            (self.lacks.get((name, attribute), _NONE), self.same_object + 1 - self.references),
        )
        return all(len(np.unique(self.image[instances])) >= least for instances, least in enough)

    def _of_object(self, kind: str, attribute: str, name: str) -> Iterator[Draft]:
        random = generator_for(self._seed, self._subset, f"{kind}/{attribute}/{name}")
        for reference in random.permutation(self.candidates(attribute, name)).tolist():
            if not self.of_type(kind, reference):
                continue
            draft = self.of_reference(kind, attribute, name, reference, random)
            if draft is None:
                place = f"instance {self.instances[reference].id} as {name} for {attribute}"
                self.excluded.add("reference-without-gallery", place)
            else:
                yield draft

    def pick(self, pool: Numbers, count: int, used: Numbers, random: np.random.Generator) -> Numbers | None:
        """Instances of different images, none of those used; None where there are too few."""
        drawn = random.permutation(pool)
        images = self.image[drawn]
        first = np.sort(np.unique(images, return_index=True)[1])
        first = first[~np.isin(images[first], used)][:count]
        return drawn[first] if len(first) == count else None

    def draft(
        self, condition: str, kind: str, attribute: str, reference: int, target: Numbers, gallery: Numbers
    ) -> Draft:
        """A template of instances."""
        numbers = (reference, *target.tolist(), *gallery.tolist())
        entries = [self._entry(number) for number in numbers]
        entry: Entry = {"condition": condition, "reference": entries[0], "target": entries[1], "gallery": entries[2:]}
        shown = self.instances[reference]
        return Draft(
            task=self.task,
            entry=entry,
            identity=(shown.id, condition),
            facts={"object": shown.object_name, "attribute": attribute, "attribute_type": kind},
            images=tuple(f"{self.instances[number].image}.jpg" for number in numbers),
        )

    def _shuffled(self, names: list[str], *place: str) -> list[str]:
        order = generator_for(self._seed, self._subset, "/".join(("order", *place))).permutation(len(names))
        return [names[number] for number in order]

    def _entry(self, number: int) -> Entry:
        instance = self.instances[number]
        return {"image_id": instance.image, "instance_bbox": list(instance.box), "instance_id": instance.id}


class FocusAttribute(AttributeDrafts):
    """Reference and target share an attribute; nine of the same object lack it. The condition is its type."""

    task = "focus-attribute"
    same_object, references = 9, 1
    no_conditions = NO_CONDITIONS

    def candidates(self, attribute: str, name: str) -> Numbers:
        return self.has[name, attribute]

    def of_reference(
        self, kind: str, attribute: str, name: str, reference: int, random: np.random.Generator
    ) -> Draft | None:
        matches = np.concatenate([self.has[name, own] for own in self.of_type(kind, reference)])
        target = self.pick(self.has[name, attribute], 1, self.image[[reference]], random)
        # No image that shows a right answer anywhere: the crop, grown around something else, could show it too.
        right = self.image[np.append(matches, reference)]
        gallery = self.pick(np.setdiff1d(self.lacks[name, attribute], matches), self.same_object, right, random)
        if target is None or gallery is None:
            return None
        return self.draft(kind, kind, attribute, reference, target, gallery)


class ChangeAttribute(AttributeDrafts):
    """The target has another attribute of a type than the reference, which is the condition; nine distractors are other
    objects with it, five are the reference's without."""

    task = "change-attribute"
    same_object, references = 5, 0
    other_objects: ClassVar[int] = 9

    def candidates(self, attribute: str, name: str) -> Numbers:
        return self.lacks[name, attribute]

    def of_reference(
        self, kind: str, attribute: str, name: str, reference: int, random: np.random.Generator
    ) -> Draft | None:
        alike = np.concatenate([self.has[name, own] for own in self.of_type(kind, reference)])
        matches = self.has[name, attribute]
        target = self.pick(np.setdiff1d(matches, alike), 1, self.image[[reference]], random)
        right = self.image[np.append(matches, reference)]
        same = self.pick(self.lacks[name, attribute], self.same_object, right, random)
        if target is None or same is None:
            return None
        words = _words(name)
        others = [self.has[other, attribute] for other in self.objects[attribute] if words.isdisjoint(_words(other))]
        used = np.append(right, self.image[same])
        different = self.pick(np.concatenate([_NONE, *others]), self.other_objects, used, random)
        if different is None:
            return None
        return self.draft(attribute, kind, attribute, reference, target, np.append(different, same))


def _words(name: str) -> set[str]:
    """Words of an object's name; plurals as singulars, roughly."""
    return {word.removesuffix("s") for word in name.split()}


def _cells(instances: Sequence[Instance], attributes: Sequence[Collection[str]]) -> dict[tuple[str, str], Numbers]:
    """Numbers of the instances by object name and attribute."""
    cells: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (instance, named) in enumerate(zip(instances, attributes, strict=True)):
        for attribute in named:
            cells[instance.object_name, attribute].append(number)
    return {cell: np.array(numbers, dtype=np.int64) for cell, numbers in cells.items()}
