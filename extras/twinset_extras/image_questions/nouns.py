"""Which tokens of a parsed caption are nouns that name something, and how these names are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from twinset_extras.image_questions.vocabulary import Vocabulary, vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Token

PLURAL = ("NNS", "NNPS")
_NOUNS = ("NOUN", "PROPN")
_LATIN = re.compile(r"[A-Za-z]{2}")


def is_noun(token: Token, words: Vocabulary) -> bool:
    """Whether a token is the head of a noun phrase that names something visible."""
    if not _LATIN.search(token.text) or is_verb_taken_for_noun(token):
        return False
    bare = not any(child.dep_ in ("det", "poss", "nummod", "amod", "compound") for child in token.children)
    if token.tag_ == "NNS" and bare and token.i and lemma_of(token) in words.verbs and _begins_phrase(token):
        return False
    alone = token.dep_ != "npadvmod" or any(child.dep_ in ("det", "nummod") for child in token.children)
    noun = token.pos_ in _NOUNS and alone
    if not noun and not _is_noun_taken_for_verb(token):
        return False
    if token.dep_ == "compound" and not is_verb_taken_for_noun(token.head):
        return False
    if is_verb_taken_for_noun(token.head) and token.dep_ == "compound" and token.i + 1 != token.head.i:
        return False  # a part of the compound before it
    lemma = token.lower_ if token.lower_ in words.clothing else lemma_of(token)
    children = {child.lower_ for child in token.children if child.dep_ in ("det", "neg")}
    governor = token.head if token.dep_ == "pobj" else None
    if "no" in children or (governor is not None and governor.lower_ in ("without", "as", "like", "during")):
        return False
    if lemma in words.unseen and member_of(token) is None and not words.groups.get(lemma):
        return False
    if lemma in words.attributes:
        return False
    if lemma in words.places and any(child.dep_ == "poss" and child.pos_ == "PRON" for child in token.children):
        return False
    if governor is not None:
        if lemma in words.colours and not any(child.dep_ in ("det", "nummod") for child in token.children):
            return False
        if lemma in words.times or (lemma in words.scenery and not _has_own_words(token)):
            return False
        if lemma in words.places and next_word(token) in ("of", "to", "with"):
            return False
    copula = token.dep_ == "attr" and token.head.lemma_ == "be"
    return not (copula and not any(child.dep_ == "expl" for child in token.head.children) and _has_subject(token.head))


def is_verb_taken_for_noun(token: Token) -> bool:
    """Whether a tagger took a verb for a noun, as in "a clock hangs" or "a cup falling"."""
    return verb_subject(token) is not None


def verb_subject(token: Token) -> Token | None:
    """The subject of a verb that was taken for a noun; None for any other token.

    Such a "plural" has the article of a singular before it, or is a verb by `Vocabulary.verbs` before a preposition.
    """
    if token.tag_ not in ("NNS", "NN", "VBG"):
        return None
    lefts = list(token.lefts)
    misread = token.tag_ == "NNS" and lemma_of(token) in vocabulary().verbs and _begins_phrase(token)
    subjects = [child for child in lefts if child.dep_ == "nsubj"]
    if misread and subjects:
        return subjects[-1]
    doubtful = token.tag_ == "NN" and token.lower_.endswith("ing") and token.lower_ not in vocabulary().nouns
    verbal = token.tag_ == "NNS" or doubtful or (token.tag_ == "VBG" and token.dep_ in ("pobj", "dobj"))
    singular = any(child.lower_ in ("a", "an") for child in lefts)
    singular = singular or (misread and not any(child.dep_ == "nummod" for child in lefts))
    before = lefts[-1] if lefts and lefts[-1].dep_ == "compound" and lefts[-1].i + 1 == token.i else None
    return before if verbal and singular and before is not None and before.tag_ in ("NN", "NNP") else None


def modifiers(token: Token, words: Vocabulary) -> list[Token]:
    """The words that modify a noun, without the compounds that are part of its name."""
    children = list(token.children)
    if token.dep_ == "compound" and is_verb_taken_for_noun(token.head):
        children += [child for child in token.head.lefts if child.i != token.i]
    named = {part.i for part in _name_tokens(token, words)}
    return sorted((child for child in children if child.i not in named), key=lambda child: child.i)


def name_of(token: Token, words: Vocabulary) -> str:
    """A noun with what is compounded to it, such as ``traffic light``."""
    return "".join(f"{_cased(part)}{part.whitespace_}" for part in _name_tokens(token, words)).strip()


def lemma_of(token: Token) -> str:
    """The singular of a noun in lower case."""
    return str(token.lemma_ if token.tag_ in PLURAL else token.text).lower()


def next_word(token: Token) -> str:
    """The word after a token in lower case; empty at the end."""
    return str(token.nbor(1).lower_) if token.i + 1 < len(token.doc) else ""


def is_attribute(token: Token, words: Vocabulary) -> bool:
    """Whether a compounded word is an adjective ("wooden") that the parser took for a noun."""
    return token.lower_ in words.colours or token.lower_ in words.attributes


def _name_tokens(token: Token, words: Vocabulary) -> list[Token]:
    lefts = list(token.lefts)
    if token.dep_ == "compound" and is_verb_taken_for_noun(token.head):
        lefts = [left for left in token.head.lefts if left.i != token.i] + lefts
    parts = [token]
    for word in sorted(lefts, key=lambda left: left.i, reverse=True):
        adjacent = word.i + 1 == parts[0].i
        phrase = f"{word.lower_} {lemma_of(token)}"
        known = phrase in words.names or f"{word.lower_} {token.lower_}" in words.names or word.lower_ in words.mass
        known = known or (token.pos_ == "PROPN" and word.is_title and word.i > 0 and word.dep_ in ("amod", "compound"))
        compound = word.dep_ in ("compound", "nmod") and not is_attribute(word, words) and word.pos_ in (*_NOUNS, "X")
        if adjacent and (known or compound):
            parts = [*(left for left in word.lefts if left.dep_ == "compound" and left.i + 1 == word.i), word, *parts]
            begin = parts[0].i
            if begin > 1 and token.doc[begin - 1].tag_ == "HYPH":  # double-decker
                parts = [token.doc[begin - 2], token.doc[begin - 1], *parts]
    return parts


def _cased(token: Token) -> str:
    follows = token.i + 1 < len(token.doc) and token.nbor(1).pos_ == "PROPN"
    keep = token.pos_ == "PROPN" and (token.i > 0 or follows)
    return str(token.text if keep or (token.is_upper and len(token) < 4 and len(token) > 1) else token.lower_)


def _begins_phrase(token: Token) -> bool:
    """Whether a preposition or an object may begin behind a token."""
    return token.i + 1 < len(token.doc) and token.nbor(1).pos_ in ("ADP", "PART", "ADV", "DET", "PRON")


def _is_noun_taken_for_verb(token: Token) -> bool:
    """Whether a tagger took a noun for a verb: "next to vase", "a suit and tie"."""
    joined = token.dep_ == "conj" and token.head.pos_ in _NOUNS
    return token.tag_ in ("VB", "VBP") and (joined or token.dep_ == "pobj") and not list(token.rights)[:1]


def member_of(token: Token) -> Token | None:
    """What a group is of, or a picture shows: the noun after "of"."""
    for child in token.children:
        if child.lower_ == "of":
            for noun in child.children:
                if noun.dep_ == "pobj" and noun.pos_ in _NOUNS:
                    return noun
    return None


def _has_own_words(token: Token) -> bool:
    return any(child.dep_ in ("amod", "compound", "nummod", "poss") for child in token.children)


def _has_subject(verb: Token) -> bool:
    return any(child.dep_ == "nsubj" and child.pos_ != "PRON" and child.tag_ != "DT" for child in verb.children)
