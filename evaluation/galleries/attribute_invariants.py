"""What holds of the templates about attributes, given the labels of their objects (GeneCIS, A.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from evaluation.galleries.invariants import FIRST, Problem, Rule, Template, image_of
from generators.galleries.drafts import Entry
from generators.galleries.vaw import Instance


def attribute_rules(instances: Sequence[Instance], taxonomy: Mapping[str, Collection[str]]) -> tuple[Rule, ...]:
    """The rules of both tasks, for `invariants.check`; a template whose objects are not labelled breaks
    ``unknown-instance`` and no other."""
    labels = _Labels(instances, taxonomy)
    return (labels.unknown_instance, labels.focus, labels.change, labels.answer_elsewhere)


class _Labels:
    def __init__(self, instances: Sequence[Instance], taxonomy: Mapping[str, Collection[str]]) -> None:
        self._taxonomy = {kind: frozenset(attributes) for kind, attributes in taxonomy.items()}
        self._by_id = {(one.image, one.id): one for one in instances}
        self._by_box = {(one.image, one.box): one for one in instances}
        self._by_image: defaultdict[str, list[Instance]] = defaultdict(list)
        for one in instances:
            self._by_image[one.image].append(one)

    def unknown_instance(self, templates: Sequence[Template]) -> Iterator[Problem]:
        """Every object is annotated."""
        for template in templates:
            for entry in (template.reference, template.target, *template.gallery):
                if self._find(entry) is None:
                    yield Problem(template.number, "unknown-instance", f"{entry} is not annotated")

    def focus(self, templates: Sequence[Template]) -> Iterator[Problem]:
        """Target and reference are one object and share an attribute of the type that all distractors, of the same
        object, are labelled not to have; these share no other one of the type with the reference."""
        for template, reference, target, gallery in self._known(templates, "focus-attribute"):
            kind = self._taxonomy.get(template.condition, frozenset())
            shared = kind & set(reference.positive) & set(target.positive)
            if {one.object_name for one in (target, *gallery)} != {reference.object_name}:
                yield Problem(template.number, "other-object", f"not all are {reference.object_name!r}")
            if not shared:
                yield Problem(template.number, "target-attribute", f"no {template.condition} shared with the reference")
            elif not any(all(name in one.negative for one in gallery) for name in shared):
                yield Problem(template.number, "not-negative", f"a distractor is not labelled to lack {sorted(shared)}")
            for one in gallery:
                alike = sorted(kind & set(reference.positive) & set(one.positive))
                if alike:
                    yield Problem(template.number, "second-answer", f"a distractor is {alike} as the reference")

    def change(self, templates: Sequence[Template]) -> Iterator[Problem]:
        """Target and reference are one object with different attributes of one type; the target has that of the
        condition, the reference and the last five distractors, of the same object, lack it; the others have it."""
        for template, reference, target, gallery in self._known(templates, "change-attribute"):
            name, number = template.condition, template.number
            if target.object_name != reference.object_name:
                yield Problem(number, "other-object", f"target {target.object_name!r}, not {reference.object_name!r}")
            if name not in target.positive:
                yield Problem(number, "target-attribute", f"the target is not labelled {name!r}")
            if name not in reference.negative:
                yield Problem(number, "reference-attribute", f"the reference is not labelled to lack {name!r}")
            kinds = [kind for kind in self._taxonomy.values() if name in kind and kind & set(reference.positive)]
            if all(kind & set(reference.positive) & set(target.positive) for kind in kinds):
                yield Problem(number, "same-attribute", f"no type of {name!r} in which reference and target differ")
            for one in gallery[:FIRST]:
                if name not in one.positive:
                    yield Problem(number, "other-attribute", f"a distractor is not labelled {name!r}")
                if _words(one) & _words(reference):
                    yield Problem(number, "not-other-object", f"{one.object_name!r} for {reference.object_name!r}")
            for one in gallery[FIRST:]:
                if one.object_name != reference.object_name:
                    yield Problem(number, "other-object", f"distractor {one.object_name!r}")
                if name not in one.negative:
                    yield Problem(number, "not-negative", f"a distractor is not labelled to lack {name!r}")

    def answer_elsewhere(self, templates: Sequence[Template]) -> Iterator[Problem]:
        """No image of a distractor shows the reference's object with what makes the target right."""
        for task in ("focus-attribute", "change-attribute"):
            for template, reference, _, gallery in self._known(templates, task):
                kind = self._taxonomy.get(template.condition, frozenset())
                right = kind & set(reference.positive) if task == "focus-attribute" else {template.condition}
                for one in gallery:
                    for beside in self._by_image[one.image]:
                        if beside.object_name == reference.object_name and right & set(beside.positive):
                            detail = f"instance {beside.id} of a distractor's image would be right"
                            yield Problem(template.number, "answer-elsewhere", detail)

    def _find(self, entry: Entry) -> Instance | None:
        if "instance_id" in entry:  # the published files may be without, and two objects can have one box
            return self._by_id.get((image_of(entry), str(entry["instance_id"])))
        x, y, width, height = entry["instance_bbox"]
        return self._by_box.get((image_of(entry), (x, y, width, height)))

    def _known(
        self, templates: Sequence[Template], task: str
    ) -> Iterator[tuple[Template, Instance, Instance, list[Instance]]]:
        """Templates of a task of which all objects are annotated: reference, target and gallery."""
        for template in templates:
            entries = (template.reference, template.target, *template.gallery)
            found = [one for one in map(self._find, entries) if one is not None]
            if template.task == task and len(found) == len(entries):
                yield template, found[0], found[1], found[2:]


def _words(one: Instance) -> set[str]:
    return {word.removesuffix("s") for word in one.object_name.split()}
