"""How captions say small scenes, and conditions say changes: two word orders each, either thing first."""

import re
from collections.abc import Sequence

from twinset_demo.small_diffusion.relations import RELATIONS, Thing
from twinset_demo.small_diffusion.scenes import COLOURS
from twinset_demo.small_scenes.changes import Change
from twinset_demo.small_scenes.scenes import KINDS, Scene

#: Ways to say a scene; from either of its first two things, that makes four captions of one picture.
PHRASINGS = ("of", "there is")
#: How often scenes are said each way. With both equally often who stands where is a parity of word order, phrasing and
#: relation, of which a base of a few minutes learns nothing.
SHARES = (0.9, 0.1)
_SHORT = {relation: relation.removeprefix("to the ") for relation in RELATIONS}


def caption(scene: Scene, phrasing: str) -> str:
    """A caption in one of `PHRASINGS`.

    ``of``: "a red ball to the left of a blue box, with a green star below them".
    ``there is``: "there is a blue box, and a red ball is left of it; a green star is below both".
    """
    if phrasing == "of":
        said = f"{scene.first} {scene.relation} {scene.second}"
        return f"{said}, with {scene.third} {_to_all(scene, 'them')}" if scene.third is not None else said
    said = f"there is {scene.second}, and {scene.first} is {_SHORT[scene.relation]} it"
    return f"{said}; {scene.third} is {_to_all(scene, 'both')}" if scene.third is not None else said


def captions(scene: Scene, phrasing: str) -> tuple[str, ...]:
    """All four captions of a scene, the one as it is and in this phrasing first."""
    other = next(one for one in PHRASINGS if one != phrasing)
    return tuple(caption(one, way) for one in (scene, scene.said_otherwise()) for way in (phrasing, other))


def condition(scene: Scene, change: Change, phrasing: str) -> str:
    """A change as somebody asks for it; things are called by their kind, as in "make the ball red".

    Args:
        scene: before the change.
        change: of the kind ``att``, ``obj`` or ``rel``.
        phrasing: one of `PHRASINGS`, the first or the second way to ask.
    """
    things: Sequence[Thing] = scene.things
    thing = things[change.thing].object
    other = things[1 - change.thing].object if change.kind == "rel" else ""
    short = _SHORT.get(change.to, "")
    ways = {
        "att": (f"change the colour of the {thing} to {change.to}", f"make the {thing} {change.to}"),
        "obj": (f"replace the {thing} with a {change.to}", f"a {change.to} instead of the {thing}"),
        "rel": (f"move the {thing} {change.to} the {other}", f"the {thing} should be {short} the {other}"),
    }
    first, second = ways[change.kind]
    return first if phrasing == PHRASINGS[0] else second


def _to_all(scene: Scene, them: str) -> str:
    return f"{_SHORT[scene.side]} {them}"


def _any_of(words: Sequence[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_THING = f"a ({_any_of(tuple(COLOURS))}) ({_any_of(KINDS)})"
_NEAR, _LONG = _any_of(tuple(_SHORT.values())), _any_of(tuple(RELATIONS))
_OF = re.compile(f"{_THING} ({_LONG}) {_THING}(?:, with {_THING} ({_NEAR}) them)?")
_THERE_IS = re.compile(f"there is {_THING}, and {_THING} is ({_NEAR}) it(?:; {_THING} is ({_NEAR}) both)?")
_IN_FULL = {short: relation for relation, short in _SHORT.items()}


def read_caption(text: str) -> Scene:
    """The scene that a caption says.

    Raises:
        ValueError: it is not of this grammar.
    """
    if found := _OF.fullmatch(text):
        colour, kind, relation, other_colour, other_kind, *third = found.groups()
    elif found := _THERE_IS.fullmatch(text):
        other_colour, other_kind, colour, kind, short, *third = found.groups()
        relation = _IN_FULL[short]
    else:
        raise ValueError(f"{text!r}: not a caption of small scenes, as 'a red ball to the left of a blue box'")
    first, second = Thing(colour, kind), Thing(other_colour, other_kind)
    if third[0] is None:
        return Scene(first, relation, second)
    return Scene(first, relation, second, Thing(third[0], third[1]), _IN_FULL[third[2]])
