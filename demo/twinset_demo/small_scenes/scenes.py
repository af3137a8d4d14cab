"""What a small scene shows, how often, and which combinations of relation and colour training never sees.

Things, colours and the four relations are those of `twinset_demo.small_diffusion`. All things of a scene differ
in colour and in kind, so that a caption can name each by either, and every kind of change can be made to every scene.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from twinset_demo.small_diffusion.relations import OPPOSITE, RELATIONS, Thing
from twinset_demo.small_diffusion.scenes import COLOURS

#: Kinds of things. They are few so that scenes of the same things, which differ only in who stands where, meet in one
#: batch: a contrastive loss learns no relation otherwise.
KINDS = ("ball", "star", "tree", "car")
#: How often captions say each relation: as people do, they rather begin with what is left or above.
SAID = {"to the left of": 0.4, "to the right of": 0.1, "above": 0.4, "below": 0.1}
#: Share of scenes with a third thing.
THREE = 0.3
#: Two colours and an axis that training never sees together: each colour once along each axis, 6 of 30 combinations.
UNSEEN = frozenset(
    (axis, frozenset(colours))
    for axis, colours in (
        ("beside", ("red", "blue")),
        ("beside", ("green", "purple")),
        ("beside", ("yellow", "black")),
        ("above", ("red", "green")),
        ("above", ("blue", "yellow")),
        ("above", ("purple", "black")),
    )
)


def axis_of(relation: str) -> str:
    """``beside`` for left and right, ``above`` for above and below."""
    return "beside" if RELATIONS[relation][0] else "above"


@dataclass(frozen=True, slots=True)
class Scene:
    """Two things, how the first stands to the second, and perhaps a third one to one side of both.

    third: None in a scene of two. side: how the third stands to both, along the other axis; "" in a scene of two.
    """

    first: Thing
    relation: str
    second: Thing
    third: Thing | None = None
    side: str = ""

    @property
    def things(self) -> tuple[Thing, ...]:
        """Two or three."""
        return (self.first, self.second) if self.third is None else (self.first, self.second, self.third)

    def said_otherwise(self) -> Scene:
        """The same picture, seen from the other of the first two things."""
        return replace(self, first=self.second, relation=OPPOSITE[self.relation], second=self.first)

    def relations(self) -> Iterator[tuple[Thing, str, Thing]]:
        """All relations that its caption says, those of the first two things first."""
        yield self.first, self.relation, self.second
        if self.third is not None:
            yield self.third, self.side, self.first
            yield self.third, self.side, self.second

    def combinations(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Axis and colours of each relation, as in `UNSEEN`."""
        for one, relation, other in self.relations():
            yield axis_of(relation), frozenset((one.colour, other.colour))

    @property
    def seen(self) -> bool:
        """Whether training may show it: none of its relations is of a combination that is held out."""
        return UNSEEN.isdisjoint(self.combinations())

    @property
    def unseen(self) -> bool:
        """Whether the relation of its first two things is of a combination that is held out."""
        return next(self.combinations()) in UNSEEN

    def recorded(self) -> dict[str, str]:
        """Flat JSON; "" for what a scene of two lacks."""
        third = str(self.third).removeprefix("a ") if self.third is not None else ""
        first, second = (str(one).removeprefix("a ") for one in (self.first, self.second))
        return {"first": first, "relation": self.relation, "second": second, "third": third, "side": self.side}


def scene_of(recorded: dict[str, str]) -> Scene:
    """The scene that `Scene.recorded` describes."""
    first, second = (Thing(*recorded[name].split(" ")) for name in ("first", "second"))
    third = Thing(*recorded["third"].split(" ")) if recorded["third"] else None
    return Scene(first, recorded["relation"], second, third, recorded["side"])


def sample_scene(rng: np.random.Generator) -> Scene:
    """A random scene, of whatever combination."""
    colours = [str(one) for one in rng.permutation(tuple(COLOURS))[:3]]
    kinds = [str(one) for one in rng.permutation(KINDS)[:3]]
    first, second, third = (Thing(colour, kind) for colour, kind in zip(colours, kinds, strict=True))
    relation = str(rng.choice(tuple(SAID), p=tuple(SAID.values())))
    scene = Scene(first, relation, second)
    if rng.random() >= THREE:
        return scene
    sides = [word for word in RELATIONS if axis_of(word) != axis_of(relation)]
    return replace(scene, third=third, side=str(rng.choice(sides)))
