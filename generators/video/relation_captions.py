"""Action Genome's relations as captions: "The person is CONTACT the OBJECT which is SPATIAL him/her." (EqBen, Fig. 16).

The paper's text puts the attention relation into the first slot, each of its published examples the contacting one.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

# A joined name such as closet/cabinet is one class, and the annotation does not tell which of the two is meant. One
# word is said, the same on both sides of a pair: the first, except for the bottle, as published ("the sofa", "the
# bottle"). Keys are those of the official list, words run together.
NOUNS = {
    "closetcabinet": "closet",
    "cupglassbottle": "bottle",
    "papernotebook": "paper",
    "phonecamera": "phone",
    "sofacouch": "sofa",
}
PLURAL = frozenset({"clothes", "groceries"})


def _spaced(*names: str) -> dict[str, str]:
    return {name: name.replace("_", " ") for name in names}


SPATIAL = {
    **_spaced("above", "beneath", "in_front_of", "behind", "on_the_side_of"),
    "in": "around",  # said of doorways, clothes and blankets that a person is in
}
CONTACTING = {
    **_spaced(
        "carrying", "covered_by", "drinking_from", "eating", "holding", "leaning_on", "lying_on", "not_contacting",
        "sitting_on", "standing_on", "touching", "twisting", "wearing", "wiping", "writing_on",
    ),
    "have_it_on_the_back": "carrying on the back",
}  # fmt: skip
UNSAID = ("looking_at", "not_looking_at", "unsure", "other_relationship")
JOINT = re.compile(r"[\s_/-]+")


def official(name: str) -> str:
    """The official lists' spelling, words run together: ``cup_glass_bottle``, ``cup/glass/bottle`` -> one word."""
    return JOINT.sub("", name).lower()


RELATIONS = {official(name): name for name in (*SPATIAL, *CONTACTING, *UNSAID)}


def relation(name: str) -> str | None:
    """A relation's name as the annotation spells it (``in_front_of``), from any spelling; None if it is unknown."""
    return RELATIONS.get(official(name))


def noun(object_class: str) -> str:
    """What a caption calls an object class, in whichever spelling."""
    return NOUNS.get(official(object_class)) or JOINT.sub(" ", object_class).strip().lower()


@lru_cache(maxsize=4096)
def _captions(said: str, spatial: tuple[str, ...], contacting: tuple[str, ...], grammar: bool) -> tuple[str, ...]:
    verb = "are" if grammar and said in PLURAL else "is"
    words = {**CONTACTING, "have_it_on_the_back": "carrying on his/her back"} if grammar else CONTACTING
    return tuple(
        f"The person is {words[touch]} the {said} which {verb} {SPATIAL[place]} him/her."
        for touch in contacting
        for place in spatial
    )


def captions(
    object_class: str, spatial: Iterable[str], contacting: Iterable[str], grammar: bool = False
) -> tuple[str, ...]:
    """Every caption that the relations of one object give, in the annotation's order, contacting relations outermost.

    Relations that cannot be said (``unsure``, ``other_relationship``) or are not Action Genome's give none; without
    one of each kind there is no caption.

    Args:
        grammar: "the clothes which are" and "carrying on his/her back", where the paper's rules give "the clothes
            which is" and "carrying on the back".
    """
    places = dict.fromkeys(name for name in map(relation, spatial) if name in SPATIAL)
    touches = dict.fromkeys(name for name in map(relation, contacting) if name in CONTACTING)
    return _captions(noun(object_class), tuple(places), tuple(touches), grammar)
