"""Sentences of a treebank rewritten into captions: in the present tense, of people that are not named, or as fragments.

"They walked through the old town." becomes "two men walk through the old town" or "Two men walking through the old
town."
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from studies.caption_parser.inflection import participle, third_person
from studies.caption_parser.trees import Sentence, Token, is_tree, without

LONGEST = 28  # tokens; captions are short
_SINGULAR = {"i", "he", "she", "you"}
_PLURAL = {"they", "we"}
_ONE = ("man", "woman", "boy", "girl", "person", "child", "lady", "guy", "player", "skier", "vendor")
_MANY = ("men", "women", "people", "children", "boys", "girls", "players", "workers")
_LEMMAS = {"men": "man", "women": "woman", "people": "person", "children": "child"}
_BE = {"is", "are", "was", "were", "am", "'m", "'re", "'s", "’m", "’re", "’s"}


def rewritten(sentences: Iterable[Sentence], rng: random.Random) -> Iterator[Sentence]:
    """Each sentence that can be rewritten, once."""
    for sentence in sentences:
        copy = [replace(token) for token in sentence]
        if (found := rewrite(copy, rng)) is not None:
            yield found


def rewrite(sentence: Sentence, rng: random.Random) -> Sentence | None:
    """One sentence as a caption, or None where it is too long or has no verb with a subject before it."""
    root = next(at for at, token in enumerate(sentence) if token.head == at)
    subject = next(
        (
            at
            for at, token in enumerate(sentence[:root])
            if token.head == root and token.label in ("nsubj", "nsubjpass")
        ),
        None,
    )
    if not 4 <= len(sentence) <= LONGEST or sentence[root].pos not in ("VERB", "AUX") or subject is None:
        return None
    if any(token.label in ("intj", "dep", "parataxis") or token.tag in ("MD", "WP", "WRB") for token in sentence):
        return None
    singular = _in_present(sentence)
    sentence = _without_pronouns(sentence, singular, rng)
    if rng.random() < 0.5:
        sentence = _as_fragment(sentence)
    sentence = _shortened(sentence, rng)
    return sentence if is_tree(sentence) else None


def _in_present(sentence: Sentence) -> dict[int, bool]:
    """Put finite verbs into the present. Return whether each verb's subject is singular, by the verb's position."""
    number: dict[int, bool] = {}
    for at, token in enumerate(sentence):
        if token.label in ("nsubj", "nsubjpass"):
            many = token.tag in ("NNS", "NNPS") or token.form.lower() in _PLURAL
            many = many or any(one.label == "conj" and one.head == at for one in sentence)
            number[token.head] = not many
    for at, token in enumerate(sentence):
        clause = at if token.label not in ("aux", "auxpass") else token.head
        if token.tag in ("VBD", "VBP", "VBZ"):
            one = number.get(clause, number.get(sentence[clause].head, True))
            _inflect(token, one)
    return number


def _inflect(token: Token, singular: bool) -> None:
    if token.lemma == "be":
        token.form = "is" if singular else "are"
    else:
        token.form = third_person(token.lemma) if singular else token.lemma
    token.tag = "VBZ" if singular else "VBP"


def _without_pronouns(sentence: Sentence, singular: dict[int, bool], rng: random.Random) -> Sentence:
    """Name the people that pronouns stand for: each becomes an article or numeral and a noun."""
    found: Sentence = []
    places: list[int] = []
    for token in sentence:
        word = token.form.lower()
        if token.label in ("nsubj", "nsubjpass") and word in _SINGULAR | _PLURAL:
            one = word in _SINGULAR
            noun = rng.choice(_ONE if one else _MANY)
            first = ("a", "DT", "DET", "det") if one else ("two", "CD", "NUM", "nummod")
            found.append(Token(first[0], first[0], first[1], first[2], -1, first[3]))
            places.append(len(found))
            lemma = noun if one else _LEMMAS.get(noun, noun.removesuffix("s"))
            found.append(Token(noun, lemma, "NN" if one else "NNS", "NOUN", token.head, token.label))
        else:
            places.append(len(found))
            found.append(token)
    heads = {id(found[place]): places[sentence[at].head] for at, place in enumerate(places)}
    for at, token in enumerate(found):
        token.head = heads[id(token)] if id(token) in heads else at + 1
    for before, after in pairwise(found):
        if after.form in ("is", "are") or before.form in ("is", "are"):  # it may have been contracted
            before.space = after.pos != "PUNCT" and after.form.lower() not in ("n't", "n’t")
    return found


def _as_fragment(sentence: Sentence) -> Sentence:
    """``a man is walking``, ``a man walks`` as ``a man walking``, where nothing stands before the subject."""
    root = next(at for at, token in enumerate(sentence) if token.head == at)
    subject = next(at for at, token in enumerate(sentence) if token.head == root and token.label.startswith("nsubj"))
    helpers = [
        at for at, token in enumerate(sentence) if token.head == root and token.label in ("aux", "auxpass", "neg")
    ]
    verb = sentence[root]
    before = [at for at, token in enumerate(sentence[:root]) if token.head == root and at not in (subject, *helpers)]
    if before or sentence[subject].pos != "NOUN" or verb.pos != "VERB":
        return sentence
    if verb.tag in ("VBZ", "VBP") and not helpers:
        verb.form, verb.tag = participle(verb.lemma), "VBG"
    elif not (verb.tag in ("VBG", "VBN") and len(helpers) == 1 and sentence[helpers[0]].lemma == "be"):
        return sentence
    sentence[subject].head, sentence[subject].label = subject, "ROOT"
    verb.head, verb.label = subject, "acl"
    for token in sentence:  # the full stop belongs to the whole
        if token.label == "punct" and token.head == root and token is sentence[-1]:
            token.head = subject
    return without(sentence, helpers)


def _shortened(sentence: Sentence, rng: random.Random) -> Sentence:
    """Perhaps without the full stop, without articles, in lower case."""
    dropped = set()
    if rng.random() < 0.5 and sentence[-1].label == "punct":
        dropped.add(len(sentence) - 1)
    if rng.random() < 0.15:
        dropped |= {at for at, token in enumerate(sentence) if token.label == "det" and token.tag == "DT"}
    sentence = without(sentence, dropped)
    first = sentence[0]
    if rng.random() < 0.5:
        for token in sentence:
            token.form = token.form.lower()
    elif first.form.islower():
        first.form = first.form.capitalize()
    return sentence
