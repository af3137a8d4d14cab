"""What a parsed caption says of its entities, and its prepositions: attributes, counts, relations, each a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinset_extras.image_questions.entities import Entities, Entity
from twinset_extras.image_questions.nouns import is_attribute, lemma_of, modifiers, next_word
from twinset_extras.image_questions.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_SILENT = (
    *("as", "about", "like", "during", "despite", "without", "except", "before", "after", "until", "since", "because"),
)


class Places:
    """Reads prepositional phrases off one document."""

    def __init__(self, doc: Doc, entities: Entities, words: Vocabulary) -> None:
        self.doc, self.entities, self.words = doc, entities, words

    def of(self, token: Token) -> Iterator[tuple[str, list[Entity], bool]]:
        """Prepositions that hang on a token: the phrase, what stands behind it, and whether that is someone's own."""
        for child in token.children:
            linked = child.lower_ in ("of", "to") and child.i > 0 and lemma_of(child.nbor(-1)) in self.words.places
            if linked and child.nbor(-1).dep_ == "pobj":
                continue  # the end of "on top of", which its preposition brings
            if child.dep_ in ("prep", "agent") and child.lower_ not in _SILENT:
                yield from self.behind(child, child.lower_)
            elif child.dep_ in ("advmod", "amod", "acomp") and child.i > token.i:
                for preposition in child.children:
                    if preposition.dep_ == "prep" and preposition.i == child.i + 1:
                        yield from self.behind(preposition, f"{child.lower_} {preposition.lower_}")

    def behind(self, preposition: Token, phrase: str) -> Iterator[tuple[str, list[Entity], bool]]:
        """As `of`, for one preposition that begins with a phrase."""
        for child in preposition.children:
            if child.dep_ in ("prep", "pcomp") and child.pos_ == "ADP":
                yield from self.behind(child, f"{phrase} {child.lower_}")
            elif child.dep_ == "pobj":
                if lemma_of(child) in self.words.places and next_word(child) in ("of", "to", "with"):
                    link = child.nbor(1)
                    inner = self.doc[preposition.i + 1 : link.i + 1].text.lower()
                    yield from self.behind(link, f"{phrase} {inner}")
                else:
                    named = [self.entities.of(noun) for noun in joined(child)]
                    named += self._it(preposition, child)
                    owned = any(owner.dep_ == "poss" and owner.pos_ == "PRON" for owner in child.children)
                    yield phrase, list(dict.fromkeys(entity for entity in named if entity is not None)), owned

    def _it(self, preposition: Token, pronoun: Token) -> list[Entity | None]:
        """What "it" is in "a bench with a dog on it"."""
        if pronoun.lower_ not in ("it", "them"):
            return []
        noun = preposition.head
        while noun.dep_ != "ROOT" and not (noun.dep_ == "pobj" and noun.head.lower_ == "with"):
            noun = noun.head
        holds = noun.dep_ == "pobj" and noun.head.lower_ == "with"
        if holds:
            return [self.entities.of(noun.head.head)]
        # Where the parser says that the bench, not the dog, is sitting on it.
        verb = preposition.head
        return [self.entities.of(verb.head)] if verb.dep_ == "acl" and verb.head.i == noun.i else []

    def scenery(self, token: Token, phrase: str, about: tuple[Entity, ...], predicate: str) -> Iterator[Fact]:
        """Where in the picture something is: "in the background"."""
        for child in token.children:
            for noun in child.children if child.lower_ == phrase else ():
                known = lemma_of(noun) in self.words.scenery or noun.lower_ in self.words.colours
                if noun.dep_ == "pobj" and known and self.entities.of(noun) is None:
                    last = [noun, *(colour for colour in noun.conjuncts if colour.lower_ in self.words.colours)][-1]
                    where = self.doc[noun.left_edge.i : last.i + 1].text.lower()
                    for entity in about:
                        yield attribute(entity, f"{predicate} {phrase} {where}".strip())


def joined(noun: Token) -> list[Token]:
    """A noun and those that are joined to it by "and"."""
    return [noun, *(token for token in noun.conjuncts if token.i > noun.i and token.pos_ in ("NOUN", "PROPN"))]


_NUMBER_WORDS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is said. about: the entities that it needs. words: its tuple, such as ``(man, hat, wear)``."""

    kind: str
    about: tuple[Entity, ...]
    words: tuple[str, ...]
    question: str


def picture_facts(entities: Entities, words: Vocabulary) -> Iterator[Fact]:
    """What is said of the picture itself: "a black and white photo of …"."""
    for token in entities.pictures:
        name = lemma_of(token)
        if name in words.unasked:
            continue
        yield Fact("global", (), (name,), f"Is this {'an' if name[0] in 'aeiou' else 'a'} {name}?")
        for trait in _adjectives(token, words):
            yield Fact("global", (), (trait,), f"Is the {name} {trait}?")


def text_facts(entities: Entities) -> Iterator[Fact]:
    """What stands in quotes, to be read in the picture."""
    for text in entities.quoted:
        yield Fact("global", (), ("text", text), f'Does the image show the text "{text}"?')


def time_facts(doc: Doc, words: Vocabulary) -> Iterator[Fact]:
    """When it is: "at night"."""
    for token in doc:
        if token.dep_ == "pobj" and token.lower_ in words.times and token.head.lower_ in ("at", "in", "during", "on"):
            traits = [*_adjectives(token, words), token.lower_]
            article = "a " if len(traits) > 1 else ""
            yield Fact("global", (), (" ".join(traits),), f"Is it {article}{' '.join(traits)}?")


def count_facts(doc: Doc, entities: Entities, words: Vocabulary) -> Iterator[Fact]:
    """How many there are, where a number says it."""
    counts = [(entity, number, entity.name) for entity, number in entities.counts]
    for token, entity in entities.tokens(doc):
        for child in modifiers(token, words):
            number = number_of(child, words) if child.dep_ == "nummod" else None
            if number is not None:
                several = sum(entity_named.name == entity.name for entity_named in entities.all) > 1
                name_words = [*(_adjectives(token, words) if several else ()), entity.name]
                counts.append((entity, number, " ".join(name_words)))
            elif child.lower_ in words.amounts and entity.plural:
                yield Fact("count", (entity,), (entity.name, child.lower_), f"Are there {child.lower_} {entity.name}?")
    for entity, number, name in counts:
        in_words = _NUMBER_WORDS[number] if number < len(_NUMBER_WORDS) else str(number)
        there = "Are there" if number > 1 else "Is there"
        exactly = "only one" if number == 1 else in_words
        yield Fact("count", (entity,), (entity.name, f"=={number}"), f"{there} {exactly} {name}?")


def attribute_facts(doc: Doc, entities: Entities, words: Vocabulary) -> Iterator[Fact]:
    """Adjectives and participles of nouns."""
    for token, entity in entities.tokens(doc):
        if entities.stands_for_another(token):
            continue  # "a large group of dogs" has no large dogs
        for trait in _adjectives(token, words):
            yield attribute(entity, trait)


def attribute(entity: Entity, trait: str) -> Fact:
    """That an entity is something."""
    return Fact("attribute", (entity,), (entity.name, trait), f"{be(entity)} {entity.the} {trait}?")


def be(entity: Entity) -> str:
    """``Is`` or ``Are``."""
    return "Are" if entity.plural else "Is"


def do(entity: Entity) -> str:
    """``Does`` or ``Do``."""
    return "Do" if entity.plural else "Does"


def number_of(token: Token, words: Vocabulary) -> int | None:
    """The number that a word says, 2 to 99; "one" is an article to most who write it."""
    if token.lower_ in words.numbers:
        return words.numbers[token.lower_]
    text = token.text
    return int(text) if text.isascii() and text.isdigit() and 2 <= int(text[:3]) <= 99 else None


def adjective(token: Token) -> str:
    """An adjective with the words that belong to it: ``caramel-colored``, ``dark blue``, without "very"."""
    first = token
    for left in reversed(list(token.lefts)):
        belongs = left.dep_ in ("compound", "npadvmod", "punct", "amod", "dep") or left.tag_ == "HYPH"
        between = token.doc[left.i + 1 : first.i]
        if not belongs or left.text in (",", '"') or any(word.tag_ != "HYPH" for word in between):
            break
        first = left
    return str(token.doc[first.i : token.i + 1].text).lower()


def _adjectives(noun: Token, words: Vocabulary) -> list[str]:
    """What modifies a noun; two colours that are joined by "and" are one."""
    kept = []
    for child in modifiers(noun, words):
        compound = child.dep_ in ("compound", "nmod") and is_attribute(child, words)
        participle = child.tag_ in ("VBN", "VBD", "VBG", "JJ", "JJR", "JJS", "NN") or child.lower_ in words.colours
        if not compound and not (child.dep_ == "amod" and participle):
            continue
        joined = [token for token in child.conjuncts if token.i > child.i and token.dep_ == "conj" and token.i < noun.i]
        adjs = [adjective(token) for token in (child, *joined)]
        if len(adjs) > 1 and all(adj.split()[-1] in words.colours for adj in adjs):
            adjs = [" and ".join(adjs)]
        kept += [adj for adj in adjs if adj not in words.silent and adj.isprintable() and any(map(str.isalpha, adj))]
    return list(dict.fromkeys(kept))
