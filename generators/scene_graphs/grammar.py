"""What the grammar of a caption says of a relation besides its words: part of speech, number and negation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from spacy.tokens import Token

SINGULAR, PLURAL = "singular", "plural"
_NUMBERS = {"Sing": SINGULAR, "Plur": PLURAL}  # of Universal Dependencies
_TAGS = {"NN": SINGULAR, "NNP": SINGULAR, "NNS": PLURAL, "NNPS": PLURAL}  # of the Penn Treebank

#: Words that deny what they belong to: a closed class.
NEGATIVE = frozenset({"no", "not", "n't", "n’t", "never", "neither", "nor", "none", "zero", "without", "cannot"})
NOUNS = ("NOUN", "PROPN")
PARTICIPLES = ("VBG", "VBN")  # of the Penn Treebank
#: Words that make another thing of the noun after them: a toy car is no car.
UNREAL = frozenset({"fake", "stuffed", "toy"})
#: Adverbs that make another deed of a verb, before its object or after it.
PARTICLES = frozenset({"apart", "away", "back", "down", "off", "out", "over", "up"})
#: Where the things stand that a picture shows behind its subject ("a girl with trees in the background").
BACKDROP = frozenset({"background", "backdrop", "foreground", "distance", "behind"})


class Grammar(NamedTuple):
    """Of one relation.

    subject_pos, object_pos: parts of speech of both heads, by Universal Dependencies (``NOUN``, ``PROPN``, ``PRON`` …).
    subject_number: ``singular``, ``plural``, or empty where the pipeline gives none. verb: lemma of the verb that a
    preposition belongs to, where the predicate leaves the verb out ("look", of "man at window"), else empty. negated:
    whether a word denies the relation. backdrop: whether "with" names what is in the background. contested: whether
    another noun may be meant for the subject, for the object ("a *rock* climbing wall") or for what the preposition
    belongs to; or the subject is one of several; or the verb has a particle that no predicate keeps ("blows *out* a
    fire").
    """

    subject_pos: str
    object_pos: str
    subject_number: str
    verb: str
    negated: bool
    backdrop: bool
    contested: bool


def grammar_of(subject: Token, predicate: str, object_: Token) -> Grammar:
    """The grammar of a relation, by the heads of its noun phrases."""
    path = _path(subject, object_)
    verb = next((word for word in path if word.pos_ in ("VERB", "AUX")), None)
    return Grammar(
        subject.pos_,
        object_.pos_,
        _number(subject),
        verb.lemma_ if verb is not None and verb.lower_ not in predicate.lower().split() else "",
        any(_denies(word) for head in (subject, *path) for word in (head, *head.children)),
        predicate.lower() == "with" and _is_backdrop(object_),
        _is_contested(subject, path)
        or bool(subject.conjuncts)
        or any(map(_is_another_thing, (subject, object_)))
        or any(map(_is_modifier, (subject, object_)))
        or _begins_compound(object_)
        or any(map(_has_particle, path)),
    )


def _number(noun: Token) -> str:
    """Singular or plural: as the pipeline's morphology has it, else as its tag."""
    found = noun.morph.get("Number", [])
    return _NUMBERS.get(found[0], "") if found else _TAGS.get(noun.tag_, "")


def _denies(word: Token) -> bool:
    return word.lower_ in NEGATIVE or word.dep_ == "neg"


def _path(subject: Token, object_: Token) -> list[Token]:
    """The object and the words that it depends on, up to the subject or the word that the subject depends on."""
    path = [object_]
    for word in object_.ancestors:
        if word.i == subject.i:
            break
        path.append(word)
        if word.i == subject.head.i:
            break
    return path


def _is_backdrop(object_: Token) -> bool:
    """Whether "in the background", or the like, follows the object in its sentence with no verb of its own between."""
    for word in object_.doc[object_.i + 1 : object_.sent.end]:
        if word.lower_ in BACKDROP:
            return True
        if word.pos_ in ("VERB", "AUX"):
            return False
    return False


def _is_contested(subject: Token, path: list[Token]) -> bool:
    """Whether the attachment is one of those that parsers get wrong.

    Either a noun stands between a preposition and the word that it is said to belong to ("a statue holding a kite in
    its hand": statue in hand); or the subject depends on another noun, and is said to do something ("a man in a jacket
    sitting on a bench": jacket sitting).
    """
    for word in path:
        if word.dep_ == "prep":
            between = subject.doc[min(word.head.i, word.i) + 1 : word.i]
            if any(_is_noun(one) for one in between):
                return True
        if word.dep_ == "acl" and word.head.i == subject.i and any(_is_noun(one) for one in subject.ancestors):
            return True
    return False


def _is_another_thing(noun: Token) -> bool:
    """Whether the word before makes something else of a noun: a toy dog is no dog, nor is a hot one."""
    before = noun.nbor(-1).lower_ if noun.i else ""
    return before in UNREAL or (before, noun.lower_.removesuffix("s")) == ("hot", "dog")


def _is_modifier(noun: Token) -> bool:
    """Whether the next word is a noun or a hyphen too, so that this one names a kind of it ("dog sled")."""
    following = noun.doc[noun.i + 1 : noun.i + 2]
    return any(_is_noun(word) or word.lower_ == "-" for word in following)


def _begins_compound(noun: Token) -> bool:
    """Whether a participle and a noun follow at once ("rock climbing wall", "horse drawn carriage")."""
    following = noun.doc[noun.i + 1 : noun.i + 3]
    return len(following) == 2 and following[0].tag_ in PARTICIPLES and _is_noun(following[1])


def _has_particle(word: Token) -> bool:
    """Whether a verb with an object has a particle too ("takes a pizza *out*"); that of "sits down" changes nothing."""
    parts = {child.dep_ for child in word.children}
    return (
        word.pos_ == "VERB"
        and "dobj" in parts
        and ("prt" in parts or any(child.lower_ in PARTICLES for child in word.children))
    )


def _is_noun(word: Token) -> bool:
    return word.pos_ in NOUNS
