"""A template before it has pixels, and how templates of many cells are told off in turn."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from twinset.contracts.licences.terms import NOTHING, Terms

Task = Literal["focus-attribute", "change-attribute", "focus-object", "change-object"]
Entry = dict[str, Any]

#: Images of a gallery besides the target: the paper's 10 and 15 (Table 1) count it.
DISTRACTORS: dict[Task, int] = {"focus-attribute": 9, "change-attribute": 14, "focus-object": 14, "change-object": 14}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """One template of ids.

    entry: the template as it stands in GeneCIS's own JSON, which its released evaluation reads: condition, reference,
    target, and a gallery without the target. Each image is ``{val_image_id}`` of COCO or ``{image_id, instance_id,
    instance_bbox}`` of Visual Genome. identity: what tells it from all others of the task. facts: for its provenance,
    the same keys for all of a task. images: names of the files of reference, target and gallery. terms: of all of them.
    """

    task: Task
    entry: Entry
    identity: tuple[str | int, ...]
    facts: Mapping[str, str | int]
    images: tuple[str, ...]
    terms: Terms = NOTHING


def in_turn(sources: Iterable[Iterator[T]]) -> Iterator[T]:
    """One item of each source after the other, again and again, leaving out those that have ended.

    Nested, it keeps every level even for as long as there is something to draw: types of attributes, attributes of a
    type, objects of an attribute. What comes first does not depend on how much is taken.
    """
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for item in source:
            yield item
            waiting.append(source)
            break
