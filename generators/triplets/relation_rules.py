"""Which relations the strict rules mine: those that say what a photo shows, and that were not misread.

Words are judged by closed classes alone: measures, parts of space, words for pictures, and prepositions.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from twinset.generators.triplets.columns import Bools, Codes, distinct
from twinset.generators.triplets.facts import DIRECTIONS, NOWHERE, OBJECTLESS, OWNING, PHRASES, STATES, UNVERBS, Facts
from twinset.generators.triplets.graphs import Relations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Nouns of "X of Y" that only measure Y: "a pair of shoes", "a body of water".
MEASURES = _words(
    """amount array assortment batch bit body bunch cluster collection couple dozen group handful kind line lot majority
    number pair part patch piece plenty portion row section selection series set sort style type variety"""
)
#: Nouns that name a place by another thing, which the relation leaves out: "on the side (of the road)".
PLACES = _words(
    """area back backdrop background bottom center centre corner direction distance edge end foreground front horizon
    inside left middle outside place rear right scene side spot surrounding top"""
)
#: The picture itself, not what it shows: "a photo of a dog", "people posing for a picture".
PICTURES = _words("close-up closeup illustration image photo photograph pic picture portrait selfie shot snapshot view")
#: Parts of bodies and clothes: everyone who is shown has them, said or not ("a man with hair").
PARTS = _words(
    """ankle arm back belly bicep body butt cheek chest chin ear elbow eye eyebrow face finger fist foot forehead
    fur hair hand head hip hoof jaw knee lap leg lip mouth muscle neck nose palm paw shoulder skin sleeve snout
    stomach tail thigh thumb toe tongue tooth trunk waist wing wrist"""
)
#: Ordinary clothes, for the same reason ("a man in jeans"); hats, coats and dresses tell people apart.
CLOTHES = _words(
    """attire clothe clothes clothing jean jeans outfit pant pants shirt shoe short shorts sock t-shirt trouser trousers
    tshirt"""
)
#: Grounds and surroundings, which one is in or on: "with snow" and "has water" tell little.
GROUNDS = _words(
    """air beach dirt field forest grass ground hill ice lake mountain mud ocean park pool river road room sand sea sky
    snow street sun tree water yard"""
)


def strict_steps(relations: Relations, facts: Facts, rated: Bools) -> Iterator[tuple[str, Bools]]:
    """What is asked of every relation, as the funnel says after "relations", and which of all relations meet it."""
    yield "with both words rated", rated
    yield "that are of two nouns", facts.nouns
    yield "that no word denies", ~facts.negated
    nouns = _among(relations.words, _names_no_thing)
    named = nouns[relations.subject_lemma] | nouns[relations.object_lemma]
    yield "without measures, parts of space and words for pictures", ~named
    parts = _among(relations.words, lambda word: word.lower() in PARTS | CLOTHES)
    yield (
        "of more than parts of a body and ordinary clothes",
        ~(parts[relations.subject_lemma] | parts[relations.object_lemma]),
    )
    said = relations.predicate_lemma
    states = _among(relations.words, lambda word: word.lower().partition(" ")[0] in STATES)
    yield (
        "of two things, which are not said to be one",
        ~states[said] & (relations.subject_lemma != relations.object_lemma),
    )
    nowhere, directions = (_among(relations.words, _is_one_of(which)) for which in (NOWHERE, DIRECTIONS))
    yield (
        "whose predicate says where or what without a verb left out",
        ~(nowhere[said] | nowhere[relations.predicate] | (directions[said] & facts.verb)),
    )
    objectless = _among(relations.words, lambda word: word.lower() in OBJECTLESS)
    broken = _among(relations.words, _is_unknown_phrase)
    yield (
        "whose predicate has its preposition, and its verb where it needs one",
        ~(objectless[said] | broken[relations.predicate] | facts.unplaced),
    )
    owns, grounds = (_among(relations.words, _is_one_of(which)) for which in (OWNING, GROUNDS))
    yield "of more than the background", ~(facts.backdrop | owns[said] & grounds[relations.object_lemma])
    yield "whose words cannot belong to another noun", ~facts.contested
    if facts.confirmed is not None:
        yield "that the second parser finds too", facts.confirmed


def supported(one: Codes, other: Codes, photo: Codes, kept: Bools, min_support: int) -> Bools:
    """Whether each relation is kept, and its two words are those of kept relations in as many photos."""
    _, pair = np.unique(one.astype(np.int64) << 32 | other, return_inverse=True)
    seen = distinct(pair[kept].astype(np.int64) << 32 | photo[kept]) >> 32
    return np.asarray((np.bincount(seen, minlength=len(pair)) >= min_support)[pair] & kept)


def _among(words: Sequence[str], test: Callable[[str], bool]) -> Bools:
    return np.fromiter(map(test, words), dtype=np.bool_, count=len(words))


def _is_one_of(which: Collection[str]) -> Callable[[str], bool]:
    return lambda word: word.lower().partition(" ")[0] in which


def _is_unknown_phrase(predicate: str) -> bool:
    """Whether a predicate of several words is none of a verb and a preposition, nor one of `PHRASES`."""
    lower = predicate.lower()
    return " " in lower and lower.partition(" ")[0] in UNVERBS and lower not in PHRASES


def _names_no_thing(noun: str) -> bool:
    """Whether a noun measures, or names a part of space or the picture; a compound of the first two names a thing
    ("fishing line", "street corner")."""
    lower = noun.lower()
    return lower in MEASURES | PLACES or lower.rpartition(" ")[2] in PICTURES
