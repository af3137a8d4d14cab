"""Verb phrases and clauses of the caption grammar."""

from collections.abc import Callable

from studies.caption_parser import lexicon as words
from studies.caption_parser import verb_frames as verbs
from studies.caption_parser.inflection import participle, third_person
from studies.caption_parser.nodes import Node, word
from studies.caption_parser.phrases import Phrases


class VerbPhrases(Phrases):
    """Phrases and what is done."""

    def verb_phrase(self, inflected: Callable[[str], Node], adjunct: bool = True) -> Node:
        """A verb in some form with what belongs to it."""
        roll = self.rng.random()
        if roll < 0.06:
            verb = inflected(self.rng.choice(("try", "prepare", "start", "begin", "attempt", "get")))
            goal = self.verb_phrase(infinitive, False).add_before("aux", word("to", "TO"))
            if verb.lemma == "get":
                return verb.add("acomp", word("ready", "JJ").add("xcomp", goal))
            return verb.add("xcomp", goal)
        if roll < 0.08:  # "watches a dog jump"
            seen = self.person(False, 0.1) if self.chance(0.6) else self.thing(words.ANIMALS, words.ABOUT_ANIMALS)
            verb = inflected(self.rng.choice(("watch", "watch", "help", "see"))).add("dobj", seen)
            return verb.add("xcomp", self.verb_phrase(infinitive, False))
        verb = self._transitive(inflected) if roll < 0.5 else self._intransitive(inflected)
        if adjunct and self.chance(0.3):
            label, phrase = self.placed(
                self.rng.choice(("in", "on", "near", "at", "in front of", "next to", "in", "outside"))
            )
            verb.add(label, phrase)
        elif self.chance(0.08):
            verb.add("advmod", word(self.rng.choice(words.ADVERBS), "RB"))
        return verb

    def clause(self, verb: Node) -> None:
        """Perhaps a second clause: ``while holding a cup``, ``as a man watches``, ``to catch a ball``."""
        roll = self.rng.random()
        if roll < 0.05:
            verb.add("advcl", self.verb_phrase(gerund, False).add_before("mark", word("while", "IN", pos="SCONJ")))
        elif roll < 0.1:
            other = self.verb_phrase(lambda lemma: self.present(lemma, False), False)
            other.add_before("nsubj", self.person(False, 0.1))
            connective = self.rng.choice(("as", "while", "as"))
            verb.add("advcl", other.add_before("mark", word(connective, "IN", pos="SCONJ")))
        elif roll < 0.13:
            verb.add("advcl", self.verb_phrase(infinitive, False).add_before("aux", word("to", "TO")))
        elif roll < 0.16:
            verb.add("punct", word(",", ",")).add("advcl", self.verb_phrase(gerund, False))
        elif roll < 0.22:
            label, phrase = self.with_phrase()
            verb.add(label, phrase)

    def _intransitive(self, inflected: Callable[[str], Node]) -> Node:
        lemma, *names = self.rng.choice(verbs.INTRANSITIVE)
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
        lemma, what, *names = self.rng.choice(verbs.TRANSITIVE)
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

    def present(self, lemma: str, many: bool) -> Node:
        """A verb in the present tense. many: whether its subject is plural, as in `be`."""
        return word(lemma, "VBP") if many else word(third_person(lemma), "VBZ", lemma)

    def be(self, many: bool) -> Node:
        """``is`` or ``are``."""
        return word("are", "VBP", "be", "AUX") if many else word("is", "VBZ", "be", "AUX")

    def with_phrase(self) -> tuple[str, Node]:
        """``with a candle on it``, ``with a man riding a horse``."""
        roll = self.rng.random()
        held = self.thing(words.THINGS + words.PARTS + words.FOOD, words.ABOUT_THINGS)
        if roll < 0.2:
            held.add(
                "prep", word("on", "IN").add("pobj", word(self.rng.choice(("it", "top", "them")), "PRP", pos="PRON"))
            )
        elif roll < 0.4:
            held = self.person(False, 0.1).add("acl", self.verb_phrase(gerund, False))
        return self.preposition("with", held)


def infinitive(lemma: str) -> Node:
    """A verb without an ending: ``ride``."""
    return word(lemma, "VB")


def gerund(lemma: str) -> Node:
    """A verb that ends in -ing: ``riding``."""
    return word(participle(lemma), "VBG", lemma)
