"""Captions of a grammar of our own, with their trees: what spaCy's parser cannot learn from a treebank of other texts.

Prepositional phrases are attached by what they say: clothes and features to who has them, contents to their container,
places to the verb if there is one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from training.caption_parser import lexicon as words
from training.caption_parser.inflection import participle, past, third_person
from training.caption_parser.phrases import Node, Phrases, sentence_of, word
from training.caption_parser.trees import Sentence

_PARTICIPLES = {  # of irregular verbs
    "ride": "ridden", "drive": "driven", "hold": "held", "lead": "led", "feed": "fed", "build": "built",
    "make": "made", "set": "set", "light": "lit", "hang": "hung", "lay": "laid", "wear": "worn", "take": "taken",
    "eat": "eaten", "throw": "thrown", "show": "shown", "see": "seen",
}  # fmt: skip
_LEMMAS = {form: lemma for lemma, form in _PARTICIPLES.items()}


def captions(count: int, seed: int) -> Iterator[Sentence]:
    """So many captions, the same for the same seed."""
    made = CaptionGrammar(random.Random(seed))
    for _ in range(count):
        yield made.caption()


class CaptionGrammar(Phrases):
    """Makes captions of all shapes."""

    def caption(self) -> Sentence:
        """One caption."""
        self.telegraphic = self.chance(0.12)
        shapes: list[tuple[Callable[[], Node], int]] = [
            (self.finite, 34), (self.progressive, 20), (self.fragment, 20), (self.scene, 8), (self.existential, 5),
            (self.passive, 7), (self.copular, 5), (self.picture, 4),
        ]  # fmt: skip
        (shape,) = self.rng.choices([one for one, _ in shapes], [weight for _, weight in shapes])
        root = shape()
        if self.chance(0.55):
            root.add("punct", word(".", "."))
        sentence = sentence_of(root)
        if self.chance(0.6):
            sentence[0].form = sentence[0].form[:1].upper() + sentence[0].form[1:]
        elif self.chance(0.06):
            for token in sentence:
                token.form = token.form.upper()
        return sentence

    def subject(self, many: bool) -> Node:
        """Who or what does something."""
        roll = self.rng.random()
        if roll < 0.68:
            node = self.person(many)
        elif roll < 0.9:
            node = self.thing(words.ANIMALS, words.ABOUT_ANIMALS, many)
            if self.chance(0.12):
                label, phrase = self.preposition("with", self.thing(words.THINGS, words.ABOUT_THINGS, False))
                node.add(label, phrase)
        else:
            return self.thing(words.VEHICLES + words.COMPOUNDS, words.ABOUT_THINGS, many)
        if self.chance(0.1):
            other = self.thing(words.PEOPLE, words.ABOUT_PEOPLE, False)
            node.add("cc", word("and", "CC")).add("conj", other)
        return node

    def finite(self) -> Node:
        """``A fox pounces on a rabbit.``"""
        many = self.chance(0.25)
        subject = self.subject(many)
        verb = self.verb_phrase(lambda lemma: self._present(lemma, many or _coordinated(subject)))
        verb.add_before("nsubj", subject)
        if self.chance(0.08):
            other = self.verb_phrase(lambda lemma: self._present(lemma, many or _coordinated(subject)), False)
            verb.add("cc", word("and", "CC")).add("conj", other)
        self.clause(verb)
        return verb

    def progressive(self) -> Node:
        """``A fox is pouncing on a rabbit.``"""
        many = self.chance(0.25)
        subject = self.subject(many)
        verb = self.verb_phrase(_gerund)
        verb.add_before("aux", self._be(many or _coordinated(subject)))
        verb.add_before("nsubj", subject)
        if self.chance(0.08):
            verb.add("cc", word("and", "CC")).add("conj", self.verb_phrase(_gerund, False))
        self.clause(verb)
        return verb

    def fragment(self) -> Node:
        """``A fox pouncing on a rabbit``, ``A woman who is holding a cup``."""
        many = self.chance(0.25)
        node = self.subject(many)
        if self.chance(0.08):
            verb = self.verb_phrase(_gerund)
            verb.add_before("aux", self._be(many)).add_before("nsubj", word("who", "WP"))
            node.add("relcl", verb)
        else:
            verb = self.verb_phrase(_gerund)
            node.add("acl", verb)
            if self.chance(0.1):
                verb.add("cc", word("and", "CC")).add("conj", self.verb_phrase(_gerund, False))
        self.clause(verb)
        return node

    def scene(self) -> Node:
        """``a cat on a table next to a lamp``."""
        node = self.any_thing()
        for _ in range(1 + self.chance(0.35)):
            name = self.rng.choice(("on", "in", "near", "next to", "with", "in front of", "on top of", "behind", "at", "by"))
            label, phrase = self.with_phrase() if name == "with" else self.placed(name)
            node.add(label, phrase)
        return node

    def with_phrase(self) -> tuple[str, Node]:
        """``with a candle on it``, ``with its mouth open``, ``with a man riding it``."""
        roll = self.rng.random()
        held = self.thing(words.THINGS + words.PARTS + words.FOOD, words.ABOUT_THINGS)
        if roll < 0.2:
            held.add("prep", word("on", "IN").add("pobj", word(self.rng.choice(("it", "top", "them")), "PRP", pos="PRON")))
        elif roll < 0.4:
            held = self.person(False, 0.1).add("acl", self.verb_phrase(_gerund, False))
        return self.preposition("with", held)

    def any_thing(self) -> Node:
        """A thing of any sort, also measured ones."""
        roll = self.rng.random()
        if roll < 0.25:
            return self.person(self.chance(0.2))
        if roll < 0.45:
            return self.thing(words.ANIMALS, words.ABOUT_ANIMALS)
        if roll < 0.6:
            return self.measured(self.rng.choice(words.CONTAINERS), word(self.rng.choice(words.STUFF), "NN"))
        names = self.rng.choice((words.VEHICLES, words.THINGS, words.COMPOUNDS, words.FURNITURE, words.LANDMARKS, words.FOOD))
        node = self.thing(names, words.ABOUT_THINGS)
        if self.chance(0.15):
            node.add("cc", word("and", "CC")).add("conj", self.thing(names, words.ABOUT_THINGS))
        return node

    def existential(self) -> Node:
        """``There is a dog in the car``, ``there are people sitting on a bench``."""
        many = self.chance(0.4)
        node = self.thing(*self.rng.choice(((words.PEOPLE, words.ABOUT_PEOPLE), (words.THINGS, words.ABOUT_THINGS))), many)
        if self.chance(0.6):
            node.add("acl", self.verb_phrase(_gerund))
        else:
            label, phrase = self.placed(self.rng.choice(("on", "in", "near", "next to", "in front of", "behind")))
            node.add(label, phrase)
        be = self._be(many)
        be.pos = "VERB"
        return be.add_before("expl", word("there", "EX")).add("nsubj", node)

    def passive(self) -> Node:
        """``a car parked on the street``, ``A dog is being walked by a woman.``"""
        many = self.chance(0.25)
        node = self.thing(words.VEHICLES + words.THINGS + words.FURNITURE, words.ABOUT_THINGS, many)
        if self.chance(0.25):
            form = self.rng.choice(words.BY_AGENT)
            verb = word(form, "VBN", _stem_of(form)).add("agent", word("by", "IN").add("pobj", self.person(False, 0.2)))
        else:
            form, *names = self.rng.choice(words.PASSIVE)
            verb = word(form, "VBN", _stem_of(form))
            for particle in (one for one in names if one[0] == "+" and self.chance(0.7)):
                verb.add("prt", word(particle[1:], "RP"))
            name = self.rng.choice([one for one in names if one[0] != "+"])
            if name in ("with", "of", "from", "as", "by", "to"):
                label, phrase = self.preposition(name, self.thing(words.THINGS + words.FOOD, words.ABOUT_THINGS))
                label = "agent" if name == "by" else label
            else:
                label, phrase = self.placed(name)
            verb.add(label, phrase)
        if self.chance(0.5):
            return node.add("acl", verb)
        be = self._be(many)
        verb.add_before("auxpass", be)
        if self.chance(0.25):
            be.form, be.tag = "being", "VBG"
            verb.add_before("aux", self._be(many))
        return verb.add_before("nsubjpass", node)

    def copular(self) -> Node:
        """``A man is on a horse``, ``the cat is black and white``."""
        many = self.chance(0.25)
        subject = self.subject(many)
        be = self._be(many or _coordinated(subject)).add_before("nsubj", subject)
        if self.chance(0.75):
            label, phrase = self.placed(self.rng.choice(("on", "in", "at", "near", "next to", "behind", "in front of")))
            be.add(label, phrase)
        else:
            be.add("acomp", word(self.rng.choice(words.ABOUT_THINGS), "JJ"))
        return be

    def picture(self) -> Node:
        """``a picture of a man riding a horse``."""
        seen = self.fragment() if self.chance(0.6) else self.any_thing()
        node = self.noun(self.rng.choice(words.PICTURES))
        self.determined(node, False)
        return node.add("prep", word("of", "IN").add("pobj", seen))

    def verb_phrase(self, inflected: Callable[[str], Node], adjunct: bool = True) -> Node:
        """A verb in some form with what belongs to it."""
        roll = self.rng.random()
        if roll < 0.06:
            verb = inflected(self.rng.choice(("try", "prepare", "start", "begin", "attempt", "get")))
            goal = self.verb_phrase(lambda lemma: word(lemma, "VB"), False).add_before("aux", word("to", "TO"))
            if verb.lemma == "get":
                return verb.add("acomp", word("ready", "JJ").add("xcomp", goal))
            return verb.add("xcomp", goal)
        verb = self._transitive(inflected) if roll < 0.5 else self._intransitive(inflected)
        if adjunct and self.chance(0.3):
            label, phrase = self.placed(self.rng.choice(("in", "on", "near", "at", "in front of", "next to", "in", "outside")))
            verb.add(label, phrase)
        elif self.chance(0.08):
            verb.add("advmod", word(self.rng.choice(words.ADVERBS), "RB"))
        return verb

    def clause(self, verb: Node) -> None:
        """Perhaps a second clause: ``while holding a cup``, ``as a man watches``, ``to catch a ball``, ``, smiling``."""
        roll = self.rng.random()
        if roll < 0.05:
            verb.add("advcl", self.verb_phrase(_gerund, False).add_before("mark", word("while", "IN", pos="SCONJ")))
        elif roll < 0.1:
            other = self.verb_phrase(lambda lemma: self._present(lemma, False), False)
            other.add_before("nsubj", self.person(False, 0.1))
            connective = self.rng.choice(("as", "while", "as"))
            verb.add("advcl", other.add_before("mark", word(connective, "IN", pos="SCONJ")))
        elif roll < 0.13:
            verb.add("advcl", self.verb_phrase(lambda lemma: word(lemma, "VB"), False).add_before("aux", word("to", "TO")))
        elif roll < 0.16:
            verb.add("punct", word(",", ",")).add("advcl", self.verb_phrase(_gerund, False))
        elif roll < 0.22:
            label, phrase = self.with_phrase()
            verb.add(label, phrase)

    def _intransitive(self, inflected: Callable[[str], Node]) -> Node:
        lemma, *names = self.rng.choice(words.INTRANSITIVE)
        verb = inflected(lemma)
        particles = [one[1:] for one in names if one[0] == "+"]
        if particles and self.chance(0.35):
            particle = self.rng.choice(particles)
            verb.add("advmod", word(particle, "RB")) if particle in ("away", "together", "around") else verb.add(
                "prt", word(particle, "RP")
            )
            names = [one for one in names if one in ("on", "in", "at", "by", "to")] or names
        prepositions = [one for one in names if one[0] != "+"]
        if prepositions and self.chance(0.88):
            label, phrase = self.placed(self.rng.choice(prepositions))
            verb.add(label, phrase)
        return verb

    def _transitive(self, inflected: Callable[[str], Node]) -> Node:
        lemma, what, *names = self.rng.choice(words.TRANSITIVE)
        verb = inflected(lemma).add("dobj", self.object(what))
        if names and self.chance(0.4):
            name = self.rng.choice(names)
            if name in ("with", "from", "to"):
                kind = words.THINGS if name == "with" else words.PEOPLE
                label, phrase = self.preposition(name, self.thing(kind, words.ABOUT_THINGS, False))
            else:
                label, phrase = self.placed(name)
            verb.add(label, phrase)
        return verb

    def object(self, what: str) -> Node:
        """A noun phrase of one of the lexicon's lists, perhaps with contents or parts of its own."""
        if what == "CLOTHES":
            return self.clothes()
        if what == "PEOPLE":
            return self.person(False, 0.15)
        if what == "GAMES":
            return word(self.rng.choice(words.GAMES), "NN")
        if what == "DRINKS":
            drink = word(self.rng.choice(words.DRINKS), "NN")
            return self.measured(self.rng.choice(("cup", "glass", "bottle")), drink) if self.chance(0.5) else drink
        if what == "STUFF":
            return word(self.rng.choice(words.STUFF), "NN")
        if what == "CONTAINERS":
            return self.thing(words.CONTAINERS, words.ABOUT_THINGS)
        names = words.PLACE_OBJECTS if what == "PLACES" else getattr(words, what)
        if what == "THINGS" and self.chance(0.15):
            return self.measured(self.rng.choice(words.CONTAINERS), word(self.rng.choice(words.STUFF), "NN"))
        if what == "THINGS" and self.chance(0.1):
            names = words.COMPOUNDS
        return self.thing(names, words.ABOUT_THINGS)

    def _present(self, lemma: str, many: bool) -> Node:
        return word(lemma, "VBP") if many else word(third_person(lemma), "VBZ", lemma)

    def _be(self, many: bool) -> Node:
        return word("are", "VBP", "be", "AUX") if many else word("is", "VBZ", "be", "AUX")


def _gerund(lemma: str) -> Node:
    return word(participle(lemma), "VBG", lemma)


def _coordinated(subject: Node) -> bool:
    return any(child.label == "conj" for child in subject.after)


def _stem_of(form: str) -> str:
    if form in _LEMMAS:
        return _LEMMAS[form]
    stems = (form.removesuffix("ed"), form.removesuffix("d"), form.removesuffix("ed")[:-1], form.removesuffix("ied") + "y")
    return next((stem for stem in stems if past(stem) == form), form)
