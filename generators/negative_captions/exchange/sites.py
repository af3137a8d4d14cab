"""Where a caption can be changed: words that have a class, where something can be added, and what it has added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
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
    partner: Site | None = None

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

    sites: that can be changed, or were given. stated: names of all its words: none of these is put into another caption
    of the photo. named: what it names and what is done there, by the name that synonyms share. size: its words.
    """

    sites: list[Site]
    stated: set[str]
    named: set[str]
    size: int

    def of(self, kind: str) -> list[Site]:
        return [site for site in self.sites if site.kind == kind]


def reading(doc: Doc, words: Vocabulary) -> Reading:
    """Read a parsed caption; one of several sentences, or which does not describe, has no sites."""
    sites: list[Site] = []
    if len(list(doc.sents)) == 1 and not doc.text.isupper() and not any(token.lower_ in words.unseen for token in doc):
        gendered = any(token.lower_ in words.pronouns for token in doc)
        places = (*_nouns(doc, words), *_adjectives(doc, words), *_verbs(doc, words), *_prepositions(doc, words))
        sites = [site for site in places if not (gendered and site.group in words.gendered)]
        sites += [*_swaps(sites, doc, words), *_adjective_places(doc, words), *_phrase_places(doc, words)]
    stated = {form for token in doc for form in (token.lower_, token.lemma_.lower())}
    classes = (words.nouns, words.adjectives, words.verbs)
    stated |= {name for form in stated for known in classes for _, name in known.get(form, ())}
    nouns = {name_of(token) for token in doc if token.pos_ == "NOUN"}
    named = {words.nouns[noun][0][1] if noun in words.nouns else noun for noun in nouns}
    named |= {token.lemma_.lower() for token in doc if token.pos_ == "VERB"}
    return Reading(sites, stated, named, len(words_of(doc.text)))


def name_of(token: Token) -> str:
    """The singular of a noun in lower case; small pipelines give odd lemmas of plurals now and then."""
    return str(token.lower_ if token.pos_ == "NOUN" and token.tag_ not in PLURAL else token.lemma_.lower())


def is_idiom(noun: Token, words: Vocabulary) -> bool:
    """Whether a noun stands in a phrase with a meaning of its own, or counts what comes after it."""
    phrase = " ".join(word.lower_ for word in [*noun.lefts, noun][-2:])
    return not words.idioms.isdisjoint((name_of(noun), phrase))


def is_thing(token: Token, words: Vocabulary) -> bool:
    """Whether a noun stands for a thing of its own, and not for a part of another's name."""
    following = token.doc[token.i + 1 : token.i + 2]
    compound = token.dep_ == "compound" or any(child.dep_ == "compound" for child in token.children)
    joined = any(word.pos_ in ("NOUN", "PROPN") or word.lower_ in ("-", "of", "'s", "’s") for word in following)
    return token.pos_ == "NOUN" and not compound and not joined and not is_idiom(token, words)


def actor_of(verb: Token) -> Token | None:
    """Who does what a verb says."""
    described = verb.head if verb.dep_ == "acl" and verb.head.pos_ == "NOUN" else None
    return next((child for child in verb.children if child.dep_ == "nsubj"), described)


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
        if not is_thing(noun, words):
            continue
        name = name_of(noun)
        # Another word has it too: "a game of tennis on a tennis court", "snow" in "a snowstorm".
        again = any(token.lower_.startswith(name) for token in doc if token.i != noun.i)
        if again or (noun.i and f"{noun.nbor(-1).lower_} {name}" in words.fixed):
            continue
        determined = any(child.dep_ in _DETERMINED for child in noun.children)
        number = "s" if noun.tag_ in PLURAL else "1" if determined else "0"
        # How it belongs to a verb, or to a preposition and what that belongs to; and without the latter.
        role = f"{noun.dep_} {noun.head.lemma_.lower()}"
        roles = (f"{role} {noun.head.head.lemma_.lower()}", role) if noun.dep_ == "pobj" else (role,)
        for group, shared in words.nouns.get(noun.lower_, words.nouns.get(name, ())):
            yield _site("replace_obj", f"{group} {number}", shared, noun, noun, roles)


def _adjectives(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Adjectives and numbers before a noun."""
    of_two = "the other" in doc.text.lower() or any(token.lower_ in words.of_two for token in doc)
    for token in doc:
        noun, name = token.head, name_of(token.head)
        counted = token.dep_ == "nummod" and noun.tag_ == "NNS" and not of_two
        if (
            not (counted or token.dep_ == "amod")
            or noun.pos_ != "NOUN"
            or noun.lower_ in ("one", "ones")
            or is_idiom(noun, words)
            or _is_joined(token)
            or not _stands_with(token, noun)
            or f"{token.lower_} {name}" in words.fixed
        ):
            continue
        needs = (name, f"a {_sort(noun, words)}")
        for group, shared in words.adjectives.get(token.lower_, ()):
            person = group in ("colours", "ageing", "materials") and name in words.people
            visible = group in words.anywhere or name in words.nouns or name in words.people
            if (group == "numbers") is counted and visible and not person:
                yield _site("replace_att", f"{group} adj", shared, token, token, needs, head=name)


def _stands_with(adjective: Token, noun: Token) -> bool:
    """Whether nothing but adjectives is between them: "long sleeve shirts" are no long shirts."""
    between, following = noun.doc[adjective.i + 1 : noun.i], noun.doc[noun.i + 1 : noun.i + 2]
    named = any(word.pos_ in ("NOUN", "PROPN") or word.lower_ == "-" for word in following)
    return adjective.i < noun.i and not named and all(token.dep_ == "amod" and token.head == noun for token in between)


def _is_joined(adjective: Token) -> bool:
    """Whether it is one of several, as in "black and white", "very long" or "two-story"."""
    return any(word.lower_ in _JOINING for word in adjective.doc[max(adjective.i - 1, 0) : adjective.i + 2])


def _verbs(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    for verb in doc:
        if verb.tag_ not in ("VBG", "VBZ", "VBP") or verb.dep_ in ("compound", "amod", "aux", "pcomp", "conj"):
            continue
        if any(child.dep_ in (*_PARTS, "conj") and child.lower_ not in ("is", "are") for child in verb.children):
            continue
        actor = actor_of(verb)
        if actor is None or name_of(actor) not in words.beings:
            continue
        # What it acts on, or its preposition and what that leads to.
        objects = [child for child in verb.children if child.dep_ in ("dobj", "prep")][:1]
        further = [child for noun in objects for child in noun.children if child.dep_ == "pobj"][:1]
        acted_on = " ".join([*(noun.dep_ for noun in objects), *(word.lemma_.lower() for word in objects + further)])
        transitive = acted_on.startswith("dobj")
        doers = _who(actor, words), f"a {_sort(actor, words)}"
        for group, name in words.verbs.get(verb.lemma_.lower(), ()):
            pool = f"{group} {verb.tag_} {transitive:d} {name_of(actor) in words.people:d}"
            yield _site("replace_rel", pool, name, verb, verb, (acted_on,), doers)


def _who(actor: Token, words: Vocabulary) -> str:
    """Who does it, all people as one."""
    return "people" if name_of(actor) in words.people else name_of(actor)


def _prepositions(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    taken, lower = -1, [token.lower_ for token in doc]
    for token in doc:
        fitting = (phrase for phrase in words.prepositions if tuple(lower[token.i : token.i + len(phrase)]) == phrase)
        phrase = next(fitting, ())  # the longest
        if token.i <= taken or not phrase:
            continue
        last = doc[token.i + len(phrase) - 1]
        nouns = [child for child in last.children if child.dep_ == "pobj"][:1]
        if last.dep_ != "prep" or not nouns or not is_thing(nouns[0], words):
            continue
        taken, noun, holder = last.i, name_of(nouns[0]), token.head
        actor = actor_of(holder) or holder
        place = f"{_sort(actor, words)} {noun}"
        held = f"{_who(actor, words)} {holder.lemma_.lower()}", holder.lemma_.lower()
        ground = any(group in words.grounds for group, _ in words.nouns.get(noun, ()))
        for group, name in words.prepositions[phrase]:
            # Whether it tells where something is to such a noun.
            if {"slopes": noun in words.inclines, "supports": not ground}.get(group, True):
                yield _site("replace_rel", f"{group} prep", name, token, last, (place,), held)


def _swaps(sites: list[Site], doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Two places of one pool whose words say different things of different nouns."""
    at = {token.idx: token for token in doc}
    for first, second in combinations(sites, 2):
        if (first.kind, first.pool) != (second.kind, second.pool) or first.name == second.name:
            continue
        if first.kind == "replace_obj" and first.group in words.things:
            if _told_apart(at[first.start], at[second.start], words):
                yield first._replace(kind="swap_obj", partner=second)
        elif first.kind == "replace_att" and first.group not in ("numbers", "ends", "sexes"):
            nouns = at[first.start].head, at[second.start].head
            alone = all(sum(child.dep_ == "amod" for child in noun.children) == 1 for noun in nouns)
            if alone and first.head != second.head:
                yield first._replace(kind="swap_att", partner=second)


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
    children = (child for child in noun.children if child.dep_ in ("amod", "prep", "acl"))
    return {" ".join(word.lower_ for word in child.subtree) for child in children if apart not in child.subtree}


def _sort(noun: Token, words: Vocabulary) -> str:
    """Whether a noun is of people, others that live, or neither."""
    name = name_of(noun)
    return "people" if name in words.people else "beings" if name in words.beings else "things"


def _adjective_places(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Where an adjective can be added to a noun, and where one was."""
    for noun in doc:
        name = name_of(noun)
        if name in words.people or noun.dep_ not in _ROLES or not is_thing(noun, words):
            continue
        modifiers = [child for child in noun.children if child.dep_ in _MODIFIERS]
        first = modifiers[0] if modifiers else noun
        stands = noun.tag_ in PLURAL and not any(child.dep_ == "det" for child in noun.children)
        part = noun.head.lower_ == "of" and noun.head.head.lower_ == "pair"
        if part or not (stands or (first.i and first.nbor(-1).lower_ in _BEFORE)):
            continue
        pool, needs = f"{_sort(noun, words)} {noun.tag_ in PLURAL:d}", ((f"att|{name}",),)
        if not modifiers:
            yield Site("add_att", pool, "", "", noun.idx, noun.idx, needs, head=name)
        elif len(modifiers) == 1 and first.i == noun.i - 1 and not _is_joined(first):
            word = first.lower_
            if any(group in words.added for group, _ in words.adjectives.get(word, ())):
                yield Site(GIVEN["add_att"], pool, word, word, first.idx, noun.idx, needs, head=name)


def _phrase_places(doc: Doc, words: Vocabulary) -> Iterator[Site]:
    """Behind the noun that a caption ends with; or of the phrase that stands there already: "with a dog"."""
    tokens = [token for token in doc if not token.is_punct and not token.is_space]
    phrase = tokens[-3:]
    given = len(tokens) > 3 and phrase[0].lower_ in words.companions and phrase[1].lower_ in ("a", "an")
    noun = tokens[-4] if given else tokens[-1] if tokens else None
    if noun is None or noun.pos_ != "NOUN" or noun.dep_ not in _ROLES:
        return
    name, last = name_of(noun), tokens[-1]
    end = last.idx + len(last)
    needs = (f"obj|{_sort(noun, words)}",), (f"obj|{name}",)
    classes = words.nouns.get(name_of(last), ()) if given and last.tag_ == "NN" and is_thing(last, words) else ()
    if shared := next((shared for group, shared in classes if group in words.named), ""):
        start = phrase[0].idx
        yield Site(GIVEN["add_obj"], "", doc.text[start:end].lower(), shared, start, end, needs, head=name)
    owned = any(token.lower_ in words.pronouns or token.lower_ in ("it", "its", "their") for token in doc)
    unclear = noun.dep_ == "conj" or name in words.anyone or (noun.tag_ in PLURAL and name in words.people)
    behind = noun.dep_ == "pobj" and noun.head.lower_ in words.companions
    determined = any(child.dep_ == "det" for child in last.children)
    if determined and not (owned or unclear or behind) and is_thing(noun, words):
        yield Site("add_obj", "", "", "", end, end, needs, head=name)
