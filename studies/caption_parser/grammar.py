"""Captions of a grammar of our own, with their trees: what spaCy's parser cannot learn from a treebank of other texts.

Prepositional phrases are attached by what they say: clothes and features to who has them, contents to their container,
places to the verb if there is one.
"""

import random
from collections.abc import Callable, Iterator

from studies.caption_parser import lexicon as words
from studies.caption_parser import verb_frames
from studies.caption_parser.inflection import past
from studies.caption_parser.nodes import Node, sentence_of, word
from studies.caption_parser.trees import Sentence
from studies.caption_parser.verbs import VerbPhrases, gerund

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


class CaptionGrammar(VerbPhrases):
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
        verb = self.verb_phrase(lambda lemma: self.present(lemma, many or _coordinated(subject)))
        verb.add_before("nsubj", subject)
        if self.chance(0.08):
            other = self.verb_phrase(lambda lemma: self.present(lemma, many or _coordinated(subject)), False)
            verb.add("cc", word("and", "CC")).add("conj", other)
        self.clause(verb)
        return verb

    def progressive(self) -> Node:
        """``A fox is pouncing on a rabbit.``"""
        many = self.chance(0.25)
        subject = self.subject(many)
        verb = self.verb_phrase(gerund)
        verb.add_before("aux", self.be(many or _coordinated(subject)))
        verb.add_before("nsubj", subject)
        if self.chance(0.08):
            verb.add("cc", word("and", "CC")).add("conj", self.verb_phrase(gerund, False))
        self.clause(verb)
        return verb

    def fragment(self) -> Node:
        """``A fox pouncing on a rabbit``, ``A woman who is holding a cup``."""
        many = self.chance(0.25)
        node = self.subject(many)
        if self.chance(0.08):
            verb = self.verb_phrase(gerund)
            verb.add_before("aux", self.be(many)).add_before("nsubj", word("who", "WP"))
            node.add("relcl", verb)
        else:
            verb = self.verb_phrase(gerund)
            node.add("acl", verb)
            if self.chance(0.1):
                verb.add("cc", word("and", "CC")).add("conj", self.verb_phrase(gerund, False))
        if self.chance(0.08):  # "a man running and a woman watching him"
            other = self.person(False, 0.1).add("acl", self.verb_phrase(gerund, False))
            return node.add("cc", word("and", "CC")).add("conj", other)
        self.clause(verb)
        return node

    def scene(self) -> Node:
        """``a cat on a table next to a lamp``."""
        node = self.any_thing()
        if self.chance(0.1):
            full = word(self.rng.choice(("full", "full", "ready")), "JJ")
            label, phrase = self.preposition(
                "of" if full.form == "full" else "for", word(self.rng.choice(words.STUFF), "NN")
            )
            node.add("amod", full.add(label, phrase))
        for _ in range(1 + self.chance(0.35)):
            name = self.rng.choice(
                ("on", "in", "near", "next to", "with", "in front of", "on top of", "behind", "at", "by")
            )
            label, phrase = self.with_phrase() if name == "with" else self.placed(name)
            node.add(label, phrase)
        return node

    def any_thing(self) -> Node:
        """A thing of any sort, also measured ones."""
        roll = self.rng.random()
        if roll < 0.25:
            return self.person(self.chance(0.2))
        if roll < 0.45:
            return self.thing(words.ANIMALS, words.ABOUT_ANIMALS)
        if roll < 0.6:
            return self.measured(self.rng.choice(words.CONTAINERS), word(self.rng.choice(words.STUFF), "NN"))
        names = self.rng.choice(
            (words.VEHICLES, words.THINGS, words.COMPOUNDS, words.FURNITURE, words.LANDMARKS, words.FOOD)
        )
        node = self.thing(names, words.ABOUT_THINGS)
        if self.chance(0.15):
            node.add("cc", word("and", "CC")).add("conj", self.thing(names, words.ABOUT_THINGS))
        return node

    def existential(self) -> Node:
        """``There is a dog in the car``, ``there are people sitting on a bench``."""
        many = self.chance(0.4)
        node = self.thing(
            *self.rng.choice(((words.PEOPLE, words.ABOUT_PEOPLE), (words.THINGS, words.ABOUT_THINGS))), many
        )
        if self.chance(0.6):
            node.add("acl", self.verb_phrase(gerund))
        else:
            label, phrase = self.placed(self.rng.choice(("on", "in", "near", "next to", "in front of", "behind")))
            node.add(label, phrase)
        be = self.be(many)
        be.pos = "VERB"
        return be.add_before("expl", word("there", "EX")).add("nsubj", node)

    def passive(self) -> Node:
        """``a car parked on the street``, ``A dog is being walked by a woman.``"""
        many = self.chance(0.25)
        node = self.thing(words.VEHICLES + words.THINGS + words.FURNITURE, words.ABOUT_THINGS, many)
        if self.chance(0.25):
            form = self.rng.choice(verb_frames.BY_AGENT)
            verb = word(form, "VBN", _stem_of(form)).add("agent", word("by", "IN").add("pobj", self.person(False, 0.2)))
        else:
            form, *names = self.rng.choice(verb_frames.PASSIVE)
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
        be = self.be(many)
        verb.add_before("auxpass", be)
        if self.chance(0.25):
            be.form, be.tag = "being", "VBG"
            verb.add_before("aux", self.be(many))
        return verb.add_before("nsubjpass", node)

    def copular(self) -> Node:
        """``A man is on a horse``, ``the cat is black and white``."""
        many = self.chance(0.25)
        subject = self.subject(many)
        be = self.be(many or _coordinated(subject)).add_before("nsubj", subject)
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


def _coordinated(subject: Node) -> bool:
    return any(child.label == "conj" for child in subject.after)


def _stem_of(form: str) -> str:
    if form in _LEMMAS:
        return _LEMMAS[form]
    stems = (
        form.removesuffix("ed"),
        form.removesuffix("d"),
        form.removesuffix("ed")[:-1],
        form.removesuffix("ied") + "y",
    )
    return next((stem for stem in stems if past(stem) == form), form)
