"""Where a caption can be changed: its words that have a class, where something can be added, and what others add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from twinset.generators.exchanged_negatives.vocabulary import Exchanges
from twinset.generators.negative_captions.rules.nouns import actor_of, head_noun, is_idiom, name_of
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

#: What a site is of, besides the kinds of negatives: what a caption gives a noun, for other captions.
GIVEN = {"add_att": "given_att", "add_obj": "given_obj"}
PLURAL = ("NNS", "NNPS")
_JOINING = ("and", "or", "-", "very", "almost", "not", "/", "&", "light", "dark", "bright", "deep", "pale")
_DETERMINED = ("det", "poss", "nummod")
_PARTS = ("prt", "neg", "aux", "auxpass", "xcomp", "ccomp")  # of verbs that no other verb goes with


class Site(NamedTuple):
    """A place of a caption.

    kind: of negatives that may change it, or one of `GIVEN`.
    pool: words change places within one. word: what stands there, lower case; name: shared by its synonyms.
    start, end: characters. other_start, other_end: of the second word of a swap, whose word is ``other``, else -1.
    before, after: the words beside it, of a swap those before both words, of what is given `before` its class or first
    word, `after` whether its noun is of people, others that live or things; head: the word that it goes
    with. other_head: of the second word of a swap; of a relation, who and what. size: words of what is given.
    """

    kind: str
    pool: str
    word: str
    name: str
    start: int
    end: int
    before: str
    after: str
    head: str
    other: str = ""
    other_start: int = -1
    other_end: int = -1
    other_head: str = ""
    size: int = 0


def sites_of(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    """Every site of a parsed caption, kind by kind. rules: lists of idioms, people and those who act."""
    if not says_what_is_seen(doc, words):
        return
    told = any(token.lower_ in words.pronouns for token in doc)
    for found in _all_sites(doc, words, rules):
        if not (told and found.pool.split(" ")[0] in words.gendered):
            yield found


def says_what_is_seen(doc: Doc, words: Exchanges) -> bool:
    """Whether a caption is one sentence that describes, and speaks neither to its reader nor of who wrote it."""
    return len(list(doc.sents)) == 1 and not any(token.lower_ in words.unseen for token in doc)


def _all_sites(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    nouns = [token for token in doc if is_thing(token, rules)]
    yield from _nouns(nouns, words)
    yield from _adjectives(doc, words, rules)
    yield from _verbs(doc, words, rules)
    yield from _prepositions(doc, words, rules)
    yield from _swapped_nouns(nouns, words)
    yield from _swapped_adjectives(doc, words, rules)


def said_in(doc: Doc, words: Exchanges) -> set[str]:
    """Names of all that a caption says: nothing else may be put into another caption of the photo."""
    met = {token.lower_ for token in doc} | {token.lemma_.lower() for token in doc}
    classes = (words.nouns, words.adjectives, words.verbs)
    return met | {name for word in met for known in classes for _, name in known.get(word, ())}


def named_in(doc: Doc, words: Exchanges) -> set[str]:
    """What a caption names and what is done there, things by the name that synonyms share."""
    nouns = {name_of(token) for token in doc if token.pos_ == "NOUN"}
    verbs = {token.lemma_.lower() for token in doc if token.pos_ == "VERB"}
    return verbs | {words.nouns[name][0][1] if name in words.nouns else name for name in nouns}


def site(kind: str, pool: str, name: str, first: Token, last: Token, head: str) -> Site:
    """A site of the words from one token to another."""
    doc, end = first.doc, last.idx + len(last)
    before = doc[first.i - 1].lower_ if first.i else ""
    after = doc[last.i + 1].lower_ if last.i + 1 < len(doc) else ""
    return Site(kind, pool, doc.text[first.idx : end].lower(), name, first.idx, end, before, after, head)


def is_thing(token: Token, rules: Vocabulary) -> bool:
    """Whether a noun stands for a thing of its own, and not for a part of another's name."""
    following = token.doc[token.i + 1 : token.i + 2]
    compound = token.dep_ == "compound" or any(child.dep_ == "compound" for child in token.children)
    joined = any(one.pos_ in ("NOUN", "PROPN") or one.lower_ in ("-", "of") for one in following)
    return token.pos_ == "NOUN" and not compound and not joined and not is_idiom(token, rules)


def _nouns(nouns: list[Token], words: Exchanges) -> Iterator[Site]:
    for noun in nouns:
        plural = noun.tag_ in PLURAL
        determined = any(child.dep_ in _DETERMINED for child in noun.children)
        for name, shared in words.nouns.get(name_of(noun), words.nouns.get(noun.lower_, ())):
            pool = f"{name} {'s' if plural else '1' if determined else '0'}"
            yield site("replace_obj", pool, shared, noun, noun, _role(noun))


def _governor(noun: Token) -> str:
    """How a noun belongs to which verb or preposition."""
    return f"{noun.dep_} {noun.head.lemma_.lower()}"


def _role(noun: Token) -> str:
    """How a noun belongs to a verb, or to a preposition and what that belongs to."""
    behind = f" {noun.head.head.lemma_.lower()}" if noun.dep_ == "pobj" else ""
    return _governor(noun) + behind


def _visible(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[tuple[Token, Token, str, str]]:
    """Adjectives and numbers with their nouns, class and name."""
    for token in doc:
        counted = token.dep_ == "nummod" and token.head.tag_ == "NNS"
        head = token.head if counted else head_noun(token)
        if (
            head is None
            or head.pos_ != "NOUN"
            or head.lower_ in ("one", "ones")
            or is_idiom(head, rules)
            or is_joined(token)
            or not _stands_with(token, head)
        ):
            continue
        for name, shared in words.adjectives.get(token.lower_, ()):
            person = name in ("colours", "ageing") and name_of(head) in rules.people
            seen = name in words.anywhere or _is_known(head, words, rules)
            if (name == "numbers") is counted and seen and not person:
                yield token, head, name, shared


def _stands_with(adjective: Token, noun: Token) -> bool:
    """Whether nothing but adjectives is between them: "long sleeve shirts" are no long shirts."""
    between = adjective.doc[adjective.i + 1 : noun.i]
    return adjective.i < noun.i and all(token.dep_ == "amod" and token.head == noun for token in between)


def is_joined(adjective: Token) -> bool:
    """Whether it is one of several, as in "black and white", "very long" or "two-story"."""
    around = adjective.doc[max(adjective.i - 1, 0) : adjective.i + 2]
    return any(one.lower_ in _JOINING for one in around)


def _adjectives(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    for token, head, name, shared in _visible(doc, words, rules):
        yield site("replace_att", name, shared, token, token, name_of(head))


def _verbs(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    for verb in doc:
        if verb.tag_ not in ("VBG", "VBZ", "VBP") or verb.dep_ in ("compound", "amod", "aux", "pcomp"):
            continue
        if any(child.dep_ in _PARTS and child.lower_ not in ("is", "are") for child in verb.children):
            continue
        actor = actor_of(verb)
        if actor is None or name_of(actor) not in rules.beings:
            continue
        objects = [child for child in verb.children if child.dep_ in ("dobj", "prep")]
        object_ = objects[0] if objects else None
        for name, shared in words.verbs.get(verb.lemma_.lower(), ()):
            head = "" if object_ is None else " ".join(_with_object(object_))
            transitive = object_ is not None and object_.dep_ == "dobj"
            pool = f"{name} {verb.tag_} {transitive:d} {name_of(actor) in rules.people:d}"
            yield _relation(pool, shared, verb, verb, head, actor, rules)


def _relation(pool: str, name: str, first: Token, last: Token, head: str, actor: Token, rules: Vocabulary) -> Site:
    """A site that both ends know: who, all people as one, and what."""
    who = "people" if name_of(actor) in rules.people else name_of(actor)
    return site("replace_rel", pool, name, first, last, head)._replace(other_head=f"{who} {head}")


def _with_object(object_: Token) -> Iterator[str]:
    """What a verb acts on, or its preposition and what that leads to."""
    yield f"{object_.dep_} {object_.lemma_.lower()}"
    yield from (child.lemma_.lower() for child in object_.children if child.dep_ == "pobj")


def _prepositions(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    taken, said = -1, [token.lower_ for token in doc]
    for token in doc:
        if token.i <= taken:
            continue
        for phrase, classes in words.prepositions.items():
            if tuple(said[token.i : token.i + len(phrase)]) != phrase:
                continue
            span = doc[token.i : token.i + len(phrase)]
            if span[-1].dep_ != "prep":
                continue
            objects = [child for child in span[-1].children if child.dep_ == "pobj"]
            if objects and objects[0].pos_ == "NOUN" and _is_known(objects[0], words, rules):
                taken = span[-1].i
                actor = actor_of(span[0].head) or span[0].head
                for name, shared in classes:
                    yield _relation(name, shared, span[0], span[-1], name_of(objects[0]), actor, rules)
            break  # the longest that fits counts


def _is_known(noun: Token, words: Exchanges, rules: Vocabulary) -> bool:
    name = name_of(noun)
    return (name in words.nouns or name in rules.groups) and not is_idiom(noun, rules)


def _swap(kind: str, pool: str, name: str, first: Token, second: Token, heads: tuple[str, str]) -> Site:
    found = site(kind, pool, name, first, first, heads[0])
    return found._replace(
        other=second.lower_,
        other_start=second.idx,
        other_end=second.idx + len(second),
        other_head=heads[1],
        after=second.nbor(-1).lower_,
    )


def _swapped_nouns(nouns: list[Token], words: Exchanges) -> Iterator[Site]:
    """Two nouns of one class, of which the caption says something different."""
    for at, first in enumerate(nouns):
        for second in nouns[at + 1 :]:
            if (first.tag_ in PLURAL) is not (second.tag_ in PLURAL) or second.dep_ == "appos":
                continue
            known = dict(words.nouns.get(name_of(second), ()))
            for name, shared in words.nouns.get(name_of(first), ()):
                if name in words.things and known.get(name, shared) != shared and _told_apart(first, second):
                    heads = _governor(first), _governor(second)
                    yield _swap("swap_obj", f"{name} {first.tag_ in PLURAL:d}", shared, first, second, heads)


def _told_apart(first: Token, second: Token) -> bool:
    """Whether a swap says another thing: of "a dog chasing a cat", or of "a black dog and a white cat"."""
    told = [{child.lower_ for child in noun.children if child.dep_ == "amod"} for noun in (first, second)]
    if all(told):
        return not told[0] & told[1]
    if second in first.conjuncts or first.dep_ != "nsubj":
        return False
    prepositions = ("on", "under", "behind")
    return second.dep_ == "dobj" or (second.dep_ == "pobj" and second.head.lower_ in prepositions)


def _swapped_adjectives(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    """Two adjectives of a class that are no synonyms, of nouns that are not the same."""
    found = [
        one
        for one in _visible(doc, words, rules)
        if one[2] not in ("numbers", "sides", "ends") and is_thing(one[1], rules)
    ]
    for at, (first, head, name, shared) in enumerate(found):
        for second, other, pool, shared2 in found[at + 1 :]:
            alone = all(sum(child.dep_ == "amod" for child in noun.children) == 1 for noun in (head, other))
            if alone and name == pool and shared != shared2 and head.i != other.i and name_of(head) != name_of(other):
                yield _swap("swap_att", name, shared, first, second, (name_of(head), name_of(other)))
