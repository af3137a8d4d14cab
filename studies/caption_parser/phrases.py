"""Noun and prepositional phrases of the caption grammar."""

import random
from collections.abc import Sequence

from studies.caption_parser import lexicon as words
from studies.caption_parser.inflection import article, plural
from studies.caption_parser.nodes import Node, word

_PREPOSITIONAL_NOUNS = {"front", "top", "side", "middle", "edge"}
_NUMERALS = ("two", "two", "three", "four", "five", "several", "many", "some", "six", "2", "3")


class Phrases:
    """Noun and prepositional phrases at random.

    rng: decides everything. telegraphic: whether articles are left out, as in headlines.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.telegraphic = False

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.rng.random() < share

    def noun(self, name: str, many: bool = False) -> Node:
        """A noun; what stands before it in a compound, joined by underscores, hangs on it."""
        *before, head = name.split("_")
        *hyphenated, head = head.split("-")
        form = plural(head) if many else head
        node = word(form, "NNS" if many else "NN", head)
        for one in hyphenated:
            node.add_before("compound", word(one, "NN").add("punct", word("-", "HYPH")))
        for one in reversed(before):
            node.add_before(
                "compound" if one not in ("hot", "polar", "hard", "wooden", "golden") else "amod", self._modifier(one)
            )
        return node

    def thing(self, names: Sequence[str], adjectives: Sequence[str], many: bool | None = None) -> Node:
        """A noun phrase: ``a small brown dog``, ``two dogs``, ``his guitar``."""
        many = self.chance(0.2) if many is None else many
        node = self.noun(self.rng.choice(names), many)
        if self.chance(0.4):
            self.adjectives(node, adjectives)
        return self.determined(node, many)

    def adjectives(self, node: Node, adjectives: Sequence[str]) -> None:
        """Put one or two adjectives before a noun."""
        chosen = self.rng.sample(list(adjectives), 1 + self.chance(0.25))
        for at, adjective in enumerate(chosen):
            first, _, last = adjective.rpartition("_")
            *hyphenated, last = last.split("-")
            modifier = word(last, "VBG", _stem(last)) if last in words.GERUNDS else word(last, "JJ")
            for one in hyphenated:
                modifier.add_before("amod", word(one, "JJ").add("punct", word("-", "HYPH")))
            if first:
                modifier.add_before("amod", word(first, "JJ"))
            if at == 0 and len(chosen) > 1 and self.chance(0.2):
                modifier.add("punct", word(",", ","))
                node.before.insert(0, _labelled("amod", modifier))
                continue
            if len(chosen) == 1 and self.chance(0.06):
                modifier.add("cc", word("and", "CC")).add("conj", word(self.rng.choice(words.COLOURS[:9]), "JJ"))
            node.before.insert(at, _labelled("amod", modifier))
        if self.chance(0.03):  # "a water filled vase"
            form = self.rng.choice(("filled", "covered", "drawn", "lined"))
            stem = {"drawn": "draw", "lined": "line"}.get(form, form.removesuffix("ed"))
            stuff = self.rng.choice(("water", "snow", "horse", "tree", "dust", "leaf", "graffiti", "food", "grass"))
            made = word(form, "VBN", stem).add_before("npadvmod", word(stuff, "NN"))
            node.before.append(_labelled("amod", made))

    def determined(self, node: Node, many: bool) -> Node:
        """A noun phrase with its article, numeral or possessive, or none."""
        roll = self.rng.random()
        if many:
            if roll < 0.45:
                numeral = self.rng.choice(_NUMERALS)
                tag = "CD" if numeral not in ("several", "many", "some") else "DT" if numeral == "some" else "JJ"
                return node.add_before(
                    "nummod" if tag == "CD" else "det" if tag == "DT" else "amod", word(numeral, tag)
                )
            if roll < 0.55:
                return node.add_before("det", word("the", "DT"))
            if roll < 0.65:
                return node.add_before(
                    "poss", word(*self.rng.choice((("his", "PRP$"), ("their", "PRP$"), ("her", "PRP$"))))
                )
            return node
        if self.telegraphic and roll < 0.85:
            return node
        first = _first(node)
        if roll < 0.62:
            return node.add_before("det", word(article(first), "DT", "a"))
        if roll < 0.82:
            return node.add_before("det", word("the", "DT"))
        if roll < 0.92:
            possessive = self.rng.choice(("his", "her", "its", "their", "his"))
            return node.add_before("poss", word(possessive, "PRP$"))
        return node.add_before("det", word(self.rng.choice(("another", "this", "each", "the")), "DT"))

    def preposition(self, name: str, noun: Node) -> tuple[str, Node]:
        """A prepositional phrase and its label: ``on the beach``, ``in front of a house``, ``next to the river``."""
        first, *others = name.replace("_", " ").split()
        if others and first in ("next", "close", "out"):
            head = word(first, "RB" if first != "out" else "IN", pos="ADV" if first != "out" else "ADP")
            last = word(others[-1], "IN").add("pobj", noun)
            return "advmod" if first != "out" else "prep", head.add("prep", last)
        head = word(first, "IN")
        if not others:
            return "prep", head.add("pobj", noun)
        middle = word(next(one for one in others if one in _PREPOSITIONAL_NOUNS), "NN")
        if "the" in others:
            middle.add_before("det", word("the", "DT"))
        middle.add("prep", word("of", "IN").add("pobj", noun))
        return "prep", head.add("pobj", middle)

    def placed(self, name: str) -> tuple[str, Node]:
        """A prepositional phrase of place, with a noun that goes with its preposition."""
        name = name.replace("_", " ")
        places = words.PLACES.get(name, "").split()
        if name in ("to", "with", "for", "at", "behind", "by", "near", "in front of", "next to", "beside") and (
            not places or (self.chance(0.3) and name != "for")
        ):
            kind = self.rng.choice((words.PEOPLE, words.ANIMALS, words.THINGS, words.LANDMARKS, words.LANDMARKS))
            return self.preposition(name, self.thing(kind, words.ABOUT_THINGS))
        if not places:
            places = self.rng.choice((words.FURNITURE, words.LANDMARKS, words.THINGS))
        elif name == "on" and self.chance(0.25):
            places = words.FURNITURE
        return self.preposition(name, self.thing(places, words.ABOUT_PLACES, self.chance(0.05)))

    def person(self, many: bool, modified: float = 0.35) -> Node:
        """Someone, perhaps with clothes or features that are said of them."""
        if many and self.chance(0.2):
            return self.measured(self.rng.choice(words.GROUPS), self.noun(self.rng.choice(words.PEOPLE), True))
        node = self.thing(words.PEOPLE, words.ABOUT_PEOPLE, many)
        if self.chance(modified):
            self.described(node)
        return node

    def described(self, node: Node) -> None:
        """``in a red shirt``, ``with long hair``, ``wearing a hat``, ``in jeans and a cap``."""
        roll = self.rng.random()
        if roll < 0.1:
            colour = word(self.rng.choice(words.COLOURS[:9]), "NN")
            dressed = word("dressed", "VBN", "dress").add("prep", word("in", "IN").add("pobj", colour))
            label, phrase = ("acl", dressed) if self.chance(0.3) else self.preposition("in", colour)
            node.add(label, phrase)
        elif roll < 0.45:
            label, phrase = self.preposition("in", self.clothes())
            node.add(label, phrase)
        elif roll < 0.65:
            feature = self.noun(self.rng.choice(words.FEATURES), False)
            self.adjectives(feature, [*words.COLOURS, "long", "short", "curly", "big"])
            if feature.form not in ("hair", "glasses"):
                feature.add_before("det", word(article(_first(feature)), "DT", "a"))
            label, phrase = self.preposition("with", feature)
            node.add(label, phrase)
        elif roll < 0.95:
            node.add("acl", word("wearing", "VBG", "wear").add("dobj", self.clothes()))
        else:
            label, phrase = self.preposition("with", self.thing(words.THINGS, words.ABOUT_THINGS))
            node.add(label, phrase)

    def clothes(self) -> Node:
        """``a red shirt and jeans``."""
        node = self._garment()
        if self.chance(0.2):
            if self.chance(0.25):
                node.add("punct", word(",", ",")).add("conj", self._garment())
            node.add("cc", word("and", "CC")).add("conj", self._garment())
        return node

    def measured(self, measure: str, of: Node) -> Node:
        """``a group of people``, ``a bowl of soup``."""
        node = self.noun(measure)
        if self.chance(0.25):
            self.adjectives(node, ["large", "small", "big", "white"])
        node.add_before("det", word(article(_first(node)), "DT", "a"))
        return node.add("prep", word("of", "IN").add("pobj", of))

    def _garment(self) -> Node:
        many = self.chance(0.15)
        name = self.rng.choice(words.CLOTHES_PLURAL if many else words.CLOTHES)
        node = word(name, "NNS") if many else self.noun(name)
        if self.chance(0.7):
            self.adjectives(node, words.COLOURS if self.chance(0.8) else words.ABOUT_THINGS)
        if not many and not (self.telegraphic and self.chance(0.7)):
            node.add_before("det", word(article(_first(node)), "DT", "a"))
        return node

    def _modifier(self, form: str) -> Node:
        if form in ("hot", "polar", "hard", "wooden", "golden"):
            return word(form, "JJ")
        return word(form, "NN")


def _first(node: Node) -> str:
    while node.before:
        node = node.before[0]
    return node.form


def _labelled(label: str, node: Node) -> Node:
    node.label = label
    return node


def _stem(gerund: str) -> str:
    stem = gerund.removesuffix("ing")
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "sl":
        return stem[:-1]
    return {"smil": "smile", "ris": "rise"}.get(stem, stem)
