"""Where a caption can be changed: words that have a class, where something can be added, and what it has added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from twinset.generators.negative_captions.changes import words as words_of
from twinset.generators.negative_captions.exchange.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

#: Kinds of sites of what a caption has added, as other captions could: an adjective, a thing.
GIVEN = {"add_att": "given_att", "add_obj": "given_obj"}
PLURAL = ("NNS", "NNPS")
_JOINING = ("and", "or", "-", "very", "almost", "not", "/", "&", "light", "dark", "bright", "deep", "pale", ",", "too")
_DETERMINED = ("det", "poss", "nummod")
_PARTS = ("prt", "neg", "aux", "auxpass", "xcomp", "ccomp")  # of verbs that no other verb goes with
_BEFORE = ("a", "an", "the", "some", "his", "her", "their")
_MODIFIERS = ("amod", "nummod", "nmod", "compound")
_ROLES = ("nsubj", "nsubjpass", "dobj", "pobj", "conj", "ROOT", "attr")
_TELLING = ("on", "under", "behind")  # prepositions whose nouns can change places with a subject


class Site(NamedTuple):
    """A place of a caption.

    kind: of negatives that may change it, or of `GIVEN`. pool: words are exchanged within one. word: what stands there,
    in lower case; name: shared by its synonyms. start, end: characters. needs: what the word must be known to stand
    with, as keys of `counts.Counts`, each with more general ones behind it. beside: the words before and after it, as
    keys. head: the noun that an adjective or an addition belongs to. other: of a swap, the second place.
    """

    kind: str
    pool: str
    word: str
    name: str
    start: int
    end: int
    needs: tuple[tuple[str, ...], ...] = ()
    beside: tuple[str, ...] = ()
    head: str = ""
    other: Site | None = None

    def forms(self, word: str) -> tuple[tuple[str, str], ...]:
        """A word there, alone and beside either neighbour: what an exchange is balanced by."""
        return (self.group, word), *((beside, word) for beside in self.beside)

    @property
    def group(self) -> str:
        """The class of the vocabulary that its pool belongs to."""
        return self.pool.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a parsed caption says.

    sites: that can be changed, or were given. said: names of all its words: none of these is put into another caption
    of the photo. named: what it names and what is done there, by the name that synonyms share. size: its words.
    """

    sites: list[Site]
    said: set[str]
    named: set[str]
    size: int

    def of(self, kind: str) -> list[Site]:
        return [site for site in self.sites if site.kind == kind]


def reading(doc: Doc, words: Vocabulary) -> Reading:
    """Read a parsed caption; one of several sentences, or which does not describe, has no sites."""
    sites: list[Site] = []
    if len(list(doc.sents)) == 1 and not doc.text.isupper() and not any(token.lower_ in words.unseen for token in doc):
        gendered = any(token.lower_ in words.pronouns for token in doc)
        places = list(_places(doc, words))
        sites = [site for site in places if not (gendered and site.group in words.gendered)]
        sites += _swaps(sites, doc, words)
        sites += _additions(doc, words)
    return Reading(sites, said_in(doc, words), named_in(doc, words), len(words_of(doc.text)))


def said_in(doc: Doc, words: Vocabulary) -> set[str]:
    """Names of all that a caption says."""
    forms = {token.lower_ for token in doc} | {token.lemma_.lower() for token in doc}
    classes = (words.nouns, words.adjectives, words.verbs)
    return forms | {name for form in forms for known in classes for _, name in known.get(form, ())}


def named_in(doc: Doc, words: Vocabulary) -> set[str]:
    """What a caption names and what is done there, nouns by the name that synonyms share."""
    nouns = {name_of(token) for token in doc if token.pos_ == "NOUN"}
    verbs = {token.lemma_.lower() for token in doc if token.pos_ == "VERB"}
    return verbs | {words.nouns[noun][0][1] if noun in words.nouns else noun for noun in nouns}


def name_of(token: Token) -> str:
    """The singular of a noun in lower case; small pipelines give odd lemmas of plurals now and then."""
    lemma = str(token.lemma_).lower()
    return lemma if token.tag_ in PLURAL else str(token.lower_) if token.pos_ == "NOUN" else lemma


def is_idiom(token: Token, words: Vocabulary) -> bool:
    """Whether a noun stands in a phrase with a meaning of its own, or counts what comes after it."""
    if name_of(token) in words.idioms:
        return True
    phrase = " ".join(word.lower_ for word in sorted([token, *token.lefts], key=lambda word: word.i)[-2:])
    return phrase in words.idioms


def is_thing(token: Token, words: Vocabulary) -> bool:
    """Whether a noun stands for a thing of its own, and not for a part of another's name."""
    following = token.doc[token.i + 1 : token.i + 2]
    compound = token.dep_ == "compound" or any(child.dep_ == "compound" for child in token.children)
    joined = any(word.pos_ in ("NOUN", "PROPN") or word.lower_ in ("-", "of", "'s", "’s") for word in following)
    return token.pos_ == "NOUN" and not compound and not joined and not is_idiom(token, words)


def actor_of(verb: Token) -> Token | None:
    """Who does what a verb says."""
    for child in verb.children:
        if child.dep_ == "nsubj":
            return child
    return verb.head if verb.dep_ == "acl" and verb.head.pos_ == "NOUN" else None


def _places(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Words of a class, kind by kind."""
    yield from _nouns(doc, words)
    yield from _adjectives(doc, words)
    yield from _verbs(doc, words)
    yield from _prepositions(doc, words)


def _site(kind: str, pool: str, name: str, first: Token, last: Token, *needs: tuple[str, ...], head: str = "") -> Site:
    """A site of the words from one token to another. needs: as `Site.needs`, without the pool."""
    doc, end = first.doc, last.idx + len(last)
    before = doc[first.i - 1].lower_ if first.i else ""
    after = doc[last.i + 1].lower_ if last.i + 1 < len(doc) else ""
    keys = tuple(tuple(f"{pool}|{number}|{value}" for value in need) for number, need in enumerate(needs))
    beside = f"{pool}|<|{before}", f"{pool}|>|{after}"
    return Site(kind, pool, doc.text[first.idx : end].lower(), name, first.idx, end, keys, beside, head)


def _nouns(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    for noun in doc:
        if not is_thing(noun, words) or _after_fixed(noun, words) or _comes_again(noun):
            continue
        determined = any(child.dep_ in _DETERMINED for child in noun.children)
        number = "s" if noun.tag_ in PLURAL else "1" if determined else "0"
        for group, name in words.nouns.get(noun.lower_, words.nouns.get(name_of(noun), ())):
            yield _site("replace_obj", f"{group} {number}", name, noun, noun, _role(noun))


def _comes_again(noun: Token) -> bool:
    """Whether another word has it too: "a game of tennis on a tennis court", "snow" in "a snowstorm"."""
    return any(other.lower_.startswith(name_of(noun)) for other in noun.doc if other.i != noun.i)


def _after_fixed(noun: Token, words: Vocabulary) -> bool:
    """Whether the word before it makes it the name of another thing."""
    return noun.i > 0 and f"{noun.nbor(-1).lower_} {name_of(noun)}" in words.fixed


def _role(noun: Token) -> tuple[str, ...]:
    """How a noun belongs to a verb, or to a preposition and what that belongs to; and without the latter."""
    role = f"{noun.dep_} {noun.head.lemma_.lower()}"
    return (f"{role} {noun.head.head.lemma_.lower()}", role) if noun.dep_ == "pobj" else (role,)


def _adjectives(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Adjectives and numbers before a noun."""
    for token in doc:
        counted = token.dep_ == "nummod" and token.head.tag_ == "NNS"
        noun = token.head
        if (
            not (counted or token.dep_ == "amod")
            or noun.pos_ != "NOUN"
            or noun.lower_ in ("one", "ones")
            or is_idiom(noun, words)
            or _is_joined(token)
            or not _stands_with(token, noun)
            or f"{token.lower_} {name_of(noun)}" in words.fixed
        ):
            continue
        name = name_of(noun)
        for group, shared in words.adjectives.get(token.lower_, ()):
            person = group in ("colours", "ageing", "materials") and name in words.people
            visible = group in words.anywhere or name in words.nouns or name in words.people
            if (group == "numbers") is counted and visible and not person:
                yield _site(
                    "replace_att", f"{group} adj", shared, token, token, (name, f"a {_sort(noun, words)}"), head=name
                )


def _stands_with(adjective: Token, noun: Token) -> bool:
    """Whether nothing but adjectives is between them: "long sleeve shirts" are no long shirts."""
    between = adjective.doc[adjective.i + 1 : noun.i]
    following = noun.doc[noun.i + 1 : noun.i + 2]
    named = any(word.pos_ in ("NOUN", "PROPN") or word.lower_ == "-" for word in following)
    return adjective.i < noun.i and not named and all(token.dep_ == "amod" and token.head == noun for token in between)


def _is_joined(adjective: Token) -> bool:
    """Whether it is one of several, as in "black and white", "very long" or "two-story"."""
    around = adjective.doc[max(adjective.i - 1, 0) : adjective.i + 2]
    return any(word.lower_ in _JOINING for word in around)


def _verbs(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    for verb in doc:
        if verb.tag_ not in ("VBG", "VBZ", "VBP") or verb.dep_ in ("compound", "amod", "aux", "pcomp", "conj"):
            continue
        if any(child.dep_ in (*_PARTS, "conj") and child.lower_ not in ("is", "are") for child in verb.children):
            continue
        actor = actor_of(verb)
        if actor is None or name_of(actor) not in words.beings:
            continue
        objects = [child for child in verb.children if child.dep_ in ("dobj", "prep")]
        acted_on = (_with_object(objects[0]) if objects else "",)
        transitive = bool(objects) and objects[0].dep_ == "dobj"
        for group, name in words.verbs.get(verb.lemma_.lower(), ()):
            pool = f"{group} {verb.tag_} {transitive:d} {name_of(actor) in words.people:d}"
            yield _site(
                "replace_rel", pool, name, verb, verb, acted_on, (_who(actor, words), f"a {_sort(actor, words)}")
            )


def _who(actor: Token, words: Vocabulary) -> str:
    """Who does it, all people as one."""
    return "people" if name_of(actor) in words.people else name_of(actor)


def _with_object(noun: Token) -> str:
    """What a verb acts on, or its preposition and what that leads to."""
    own = f"{noun.dep_} {noun.lemma_.lower()}"
    return next((f"{own} {child.lemma_.lower()}" for child in noun.children if child.dep_ == "pobj"), own)


def _prepositions(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    taken, lower = -1, [token.lower_ for token in doc]
    for token in doc:
        if token.i <= taken:
            continue
        for phrase, classes in words.prepositions.items():
            if tuple(lower[token.i : token.i + len(phrase)]) != phrase:
                continue
            span = doc[token.i : token.i + len(phrase)]
            objects = [child for child in span[-1].children if child.dep_ == "pobj"]
            if span[-1].dep_ == "prep" and objects and is_thing(objects[0], words):
                taken = span[-1].i
                holder = span[0].head
                actor = actor_of(holder) or holder
                place = f"{_sort(actor, words)} {name_of(objects[0])}"
                for group, name in classes:
                    if not _is_placed(group, objects[0], words):
                        continue
                    held = f"{_who(actor, words)} {holder.lemma_.lower()}", holder.lemma_.lower()
                    yield _site("replace_rel", f"{group} prep", name, span[0], span[-1], (place,), held)
            break  # the longest that fits counts


def _is_placed(group: str, noun: Token, words: Vocabulary) -> bool:
    """Whether the prepositions of a class tell where something is to such a noun."""
    if group == "slopes":
        return name_of(noun) in words.inclines
    return group != "supports" or not _is_ground(noun, words)


def _is_ground(noun: Token, words: Vocabulary) -> bool:
    return any(group in words.grounds for group, _ in words.nouns.get(name_of(noun), ()))


def _swaps(sites: list[Site], doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Two places of one pool whose words say different things of different nouns."""
    at = {token.idx: token for token in doc}
    for number, first in enumerate(sites):
        for second in sites[number + 1 :]:
            if (first.kind, first.pool) != (second.kind, second.pool) or first.name == second.name:
                continue
            if first.kind == "replace_obj" and first.group in words.things:
                if _told_apart(at[first.start], at[second.start], words):
                    yield first._replace(kind="swap_obj", other=second)
            elif first.kind == "replace_att" and first.group not in ("numbers", "ends", "sexes"):
                nouns = at[first.start].head, at[second.start].head
                alone = all(sum(child.dep_ == "amod" for child in noun.children) == 1 for noun in nouns)
                if alone and first.head != second.head:
                    yield first._replace(kind="swap_att", other=second)


def _told_apart(first: Token, second: Token, words: Vocabulary) -> bool:
    """Whether a swap says another thing: of "a dog chasing a cat", or of "a black dog and a white cat"."""
    described = [_described(*pair) for pair in ((first, second), (second, first))]
    if all(described):
        return not described[0] & described[1]
    if second in first.conjuncts or first.dep_ != "nsubj":
        return False
    if second.dep_ == "dobj":
        return second.head.lemma_.lower() not in words.mutual
    return second.dep_ == "pobj" and second.head.lower_ in _TELLING


def _described(noun: Token, apart: Token) -> set[str]:
    """What a caption says of a noun, besides what has to do with another noun."""
    children = [
        child for child in noun.children if child.dep_ in ("amod", "prep", "acl") and apart not in child.subtree
    ]
    return {" ".join(word.lower_ for word in child.subtree) for child in children}


def _additions(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Where an adjective or a thing can be added, and where one was."""
    nouns = [token for token in doc if is_thing(token, words)]
    for noun in nouns:
        if name_of(noun) not in words.people:
            yield from _adjective(noun, words)
    yield from _phrase(doc, words)


def _sort(noun: Token, words: Vocabulary) -> str:
    """Whether a noun is of people, others that live, or neither."""
    name = name_of(noun)
    return "people" if name in words.people else "beings" if name in words.beings else "things"


def _adjective(noun: Token, words: Vocabulary) -> Iterator[Site]:
    modifiers = [child for child in noun.children if child.dep_ in _MODIFIERS]
    first = modifiers[0] if modifiers else noun
    stands = noun.tag_ in PLURAL and not any(child.dep_ == "det" for child in noun.children)
    part = noun.head.lower_ == "of" and noun.head.head.lower_ == "pair"
    if noun.dep_ not in _ROLES or part or not (stands or (first.i and first.nbor(-1).lower_ in _BEFORE)):
        return
    pool, name = f"{_sort(noun, words)} {noun.tag_ in PLURAL:d}", name_of(noun)
    if not modifiers:
        yield Site("add_att", pool, "", "", noun.idx, noun.idx, ((f"att|{name}",),), head=name)
    elif len(modifiers) == 1 and first.i == noun.i - 1 and not _is_joined(first):
        word, needs = first.lower_, ((f"att|{name}",),)
        if any(group in words.added for group, _ in words.adjectives.get(word, ())):
            yield Site(GIVEN["add_att"], pool, word, word, first.idx, noun.idx, needs, head=name)


def _phrase(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Behind the noun that a caption ends with; or of the phrase that stands there already: "with a dog"."""
    said = [token for token in doc if not token.is_punct and not token.is_space]
    phrase = said[-3:]
    given = len(said) > 3 and phrase[0].lower_ in words.companions and phrase[1].lower_ in ("a", "an")
    noun = said[-4] if given else said[-1] if said else None
    if noun is None or noun.pos_ != "NOUN" or noun.dep_ not in _ROLES:
        return
    name = name_of(noun)
    needs = (f"obj|{_sort(noun, words)}",), (f"obj|{name}",)
    if given and (shared := _named(phrase[-1], words)):
        start, end = phrase[0].idx, phrase[-1].idx + len(phrase[-1])
        yield Site(GIVEN["add_obj"], "", doc.text[start:end].lower(), shared, start, end, needs, head=name)
    owned = any(token.lower_ in words.pronouns or token.lower_ in ("it", "its", "their") for token in doc)
    unclear = noun.dep_ == "conj" or name in words.anyone or (noun.tag_ in PLURAL and name in words.people)
    behind = noun.dep_ == "pobj" and noun.head.lower_ in words.companions
    last = said[-1]
    if (
        not owned
        and not unclear
        and not behind
        and is_thing(noun, words)
        and any(child.dep_ == "det" for child in last.children)
    ):
        end = last.idx + len(last)
        yield Site("add_obj", "", "", "", end, end, needs, head=name)


def _named(thing: Token, words: Vocabulary) -> str:
    """The name of a thing that a caption would have named; empty of others."""
    if thing.tag_ != "NN" or not is_thing(thing, words):
        return ""
    return next((name for group, name in words.nouns.get(name_of(thing), ()) if group in words.named), "")
