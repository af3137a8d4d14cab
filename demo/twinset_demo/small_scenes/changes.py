"""Changes that make one scene of another: exactly one thing differs, of a kind that SugarCrepe names."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from twinset_demo.small_diffusion.relations import OPPOSITE, RELATIONS, Thing
from twinset_demo.small_diffusion.scenes import COLOURS
from twinset_demo.small_scenes.scenes import KINDS, Scene, axis_of

#: Type and subtype of each kind, in SugarCrepe's words.
TWINS: dict[str, tuple[str, str]] = {
    "swap-attribute": ("swap", "att"),
    "swap-object": ("swap", "obj"),
    "replace-relation": ("replace", "rel"),
    "replace-attribute": ("replace", "att"),
    "replace-object": ("replace", "obj"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing of a scene made another: its colour (``att``), its kind (``obj``), or where it stands (``rel``).

    thing: its number in `Scene.things`. to: the new colour, kind, or relation to the other of the first two.
    """

    kind: Literal["att", "obj", "rel"]
    thing: int
    to: str

    def __call__(self, scene: Scene) -> Scene:
        """The scene after the change."""
        if self.kind == "rel":
            return replace(scene, relation=self.to if self.thing == 0 else OPPOSITE[self.to])
        name = ("first", "second", "third")[self.thing]
        thing = scene.things[self.thing]
        new = replace(thing, colour=self.to) if self.kind == "att" else replace(thing, object=self.to)
        return replace(scene, **{name: new})  # type: ignore[arg-type]


def twin(scene: Scene, kind: str, rng: np.random.Generator) -> Scene:
    """The other scene of a pair of twins; what differs is one of `TWINS`.

    swap-attribute: the first two things exchange colours. swap-object: they exchange kinds, colours stay.
    replace-relation: in a scene of two the first moves a quarter round the second, from beside it to above or below it
    or back; in a scene of three, where the third leaves no room for that, to its other side. Otherwise the first or
    second thing gets a colour, or a kind, that nothing in the scene has.
    """
    first, second = scene.first, scene.second
    if kind == "swap-attribute":
        return replace(scene, first=Thing(second.colour, first.object), second=Thing(first.colour, second.object))
    if kind == "swap-object":
        return replace(scene, first=Thing(first.colour, second.object), second=Thing(second.colour, first.object))
    _, subtype = TWINS[kind]
    possible = [one for one in changes(scene) if one.kind == subtype and one.thing < 2]
    if subtype == "rel":
        quarter = [one for one in possible if axis_of(one.to) != axis_of(scene.relation)]
        possible = quarter or possible
    return possible[int(rng.integers(len(possible)))](scene)


def changes(scene: Scene) -> Iterator[Change]:
    """All changes of single things, to colours and kinds that nothing in the scene has."""
    colours, kinds = ({getattr(one, name) for one in scene.things} for name in ("colour", "object"))
    for number in range(len(scene.things)):
        yield from (Change("att", number, word) for word in COLOURS if word not in colours)
        yield from (Change("obj", number, word) for word in KINDS if word not in kinds)
    # A third thing stands to one side of both others' axis, which therefore stays.
    for word in RELATIONS if scene.third is None else (OPPOSITE[scene.relation],):
        if word != scene.relation:
            yield Change("rel", 0, word)
            yield Change("rel", 1, OPPOSITE[word])


@dataclass(frozen=True, slots=True)
class Request:
    """A scene, a change that is asked for, what it gives, and scenes that are not what is asked for.

    unchanged: the reference as it is, or after another change than the one asked for: an image alone cannot tell them
    from the target. elsewhere: the target after one more change: the words of the condition alone cannot tell.
    """

    reference: Scene
    change: Change
    target: Scene
    unchanged: tuple[Scene, ...]
    elsewhere: tuple[Scene, ...]


def request(scene: Scene, kind: str, each: int, rng: np.random.Generator) -> Request | None:
    """A change of a kind (``att``, ``obj``, ``rel``) that somebody asks for, with ``each`` distractors of both sorts.

    None where the scene, or one that a distractor needs, is of a held-out combination.
    """
    possible = [one for one in changes(scene) if one.kind == kind and one.thing < 2]
    change = possible[int(rng.integers(len(possible)))]
    target = change(scene)
    # Of the thing itself, so that both sorts of distractors change as much of the picture as the target does.
    wrong = [one(scene) for one in changes(scene) if one.thing == change.thing and one.kind == kind]
    wrong += [one(scene) for one in changes(scene) if one.thing == 1 - change.thing and one.kind == "att"]
    unchanged = [scene, *(one for one in wrong if one != target)]
    elsewhere = [one(target) for one in changes(target) if _leaves(change, one)]
    both = [_chosen([one for one in some if one.seen], each, rng) for some in (unchanged, elsewhere)]
    if not (scene.seen and target.seen) or any(len(some) < each for some in both):
        return None
    return Request(scene, change, target, both[0], both[1])


def _leaves(asked: Change, other: Change) -> bool:
    """Whether another change leaves true what was asked for, and the names of the things that it says."""
    if asked.kind == "rel":
        return other.kind == "att"
    return other.thing == 1 - asked.thing or (other.kind == "att" and asked.kind == "obj")


def _chosen(some: list[Scene], number: int, rng: np.random.Generator) -> tuple[Scene, ...]:
    some = list(dict.fromkeys(some))
    return tuple(some[int(one)] for one in rng.permutation(len(some))[:number])
