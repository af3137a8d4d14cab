"""The words that are exchanged: ``manifests/vocabularies/exchanges.yaml``, turned into tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.negative_captions.wording import participle_of, plural_of, third_person_of

FILE = VOCABULARIES / "exchanges.yaml"

#: The classes that each word is in, each with the name that the word shares with its synonyms there.
Classes = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All lists of the file, whose comments say what each is.

    nouns, verbs: also by the plural of a noun, the -ing form and third person of a verb.
    singulars: the nouns without their plurals. prepositions: by their words, the longest first. overlaps: pairs of
    names, either way round. fixed: pairs of an adjective and a noun. people, beings: names of nouns; beings are people,
    too.
    """

    nouns: Classes
    adjectives: Classes
    verbs: Classes
    prepositions: Mapping[tuple[str, ...], tuple[tuple[str, str], ...]]
    overlaps: frozenset[tuple[str, str]]
    kept: Mapping[str, float]
    gendered: frozenset[str]
    pronouns: frozenset[str]
    added: frozenset[str]
    anywhere: frozenset[str]
    fixed: frozenset[str]
    grounds: frozenset[str]
    inclines: frozenset[str]
    companions: frozenset[str]
    things: frozenset[str]
    mutual: frozenset[str]
    named: frozenset[str]
    anyone: frozenset[str]
    several: frozenset[str]
    unseen: frozenset[str]
    people: frozenset[str]
    singulars: frozenset[str]
    beings: frozenset[str]
    idioms: frozenset[str]
    digest: str

    def synonyms(self, noun: str) -> frozenset[str]:
        """All singular nouns that name what a noun names, itself among them where the vocabulary has it."""
        own = self.nouns.get(noun, ())
        return frozenset(word for word in self.singulars if {*own} & {*self.nouns[word]})


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, read once."""
    raw = load_yaml(FILE.read_text("utf-8"))
    singulars = _classes(raw["nouns"])
    nouns = _with_forms(singulars, lambda noun: (plural_of(noun),))
    prepositions = {tuple(words.split()): classes for words, classes in _classes(raw["prepositions"]).items()}
    pairs = [tuple(pair) for pair in raw["overlaps"]]
    living = {noun for noun, classes in nouns.items() if {name for name, _ in classes} & {"pets", "animals", "birds"}}
    lists = (
        "added",
        "anywhere",
        "fixed",
        "grounds",
        "inclines",
        "companions",
        "things",
        "mutual",
        "named",
        "anyone",
        "several",
        "unseen",
    )
    return Vocabulary(
        nouns=nouns,
        adjectives=_classes(raw["adjectives"]),
        verbs=_with_forms(_classes(raw["verbs"]), lambda verb: (participle_of(verb), third_person_of(verb))),
        prepositions=dict(sorted(prepositions.items(), key=lambda item: -len(item[0]))),
        overlaps=frozenset([*pairs, *((second, first) for first, second in pairs)]),
        kept=raw["kept"],
        gendered=frozenset(raw["gendered"]["classes"]),
        pronouns=frozenset(raw["gendered"]["pronouns"]),
        **{name: frozenset(raw[name]) for name in lists},
        people=frozenset(raw["people"]),
        singulars=frozenset(singulars),
        beings=frozenset([*raw["people"], *raw["beings"], *living]),
        idioms=frozenset(raw["idioms"]),
        digest=sha256_of_file(FILE)[0],
    )


def _classes(raw: Mapping[str, Sequence[str]]) -> dict[str, tuple[tuple[str, str], ...]]:
    classes: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, words in raw.items():
        for synonyms in words:
            for word in synonyms.split("|"):
                classes[word] = (*classes.get(word, ()), (name, synonyms.split("|")[0]))
    return classes


def _with_forms(classes: Classes, forms: Callable[[str], Sequence[str]]) -> Classes:
    """The classes by words and by further forms of them."""
    return {form: known for word, known in classes.items() for form in forms(word)} | dict(classes)
