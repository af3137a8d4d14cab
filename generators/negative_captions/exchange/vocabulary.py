"""The words that are exchanged: ``manifests/vocabularies/exchanges.yaml``, turned into tables."""

from collections.abc import Mapping, Sequence
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

    nouns, verbs: also by the plural of a noun, the -ing form and third person of a verb. singulars: the nouns without
    their plurals. prepositions: by their words, the longest first. overlaps: pairs of names, either way round.
    beings: people, too.
    """

    nouns: Classes
    singulars: frozenset[str]
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
    of_two: frozenset[str]
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
    parts = "nouns", "adjectives", "verbs", "prepositions"
    singulars, adjectives, verbs, phrases = (_classes(raw.pop(part)) for part in parts)
    nouns = {plural_of(noun): classes for noun, classes in singulars.items()} | singulars
    forms = {form(verb): classes for verb, classes in verbs.items() for form in (participle_of, third_person_of)}
    prepositions = {tuple(words.split()): classes for words, classes in phrases.items()}
    pairs = [tuple(pair) for pair in raw.pop("overlaps")]
    gendered, kept = raw.pop("gendered"), raw.pop("kept")
    lists = {name: frozenset(words) for name, words in raw.items()}
    living = {noun for noun, classes in nouns.items() if {name for name, _ in classes} & {"pets", "animals", "birds"}}
    lists["beings"] |= lists["people"] | living
    return Vocabulary(
        nouns=nouns,
        singulars=frozenset(singulars),
        adjectives=adjectives,
        verbs=forms | verbs,
        prepositions=dict(sorted(prepositions.items(), key=lambda item: -len(item[0]))),
        overlaps=frozenset([*pairs, *((second, first) for first, second in pairs)]),
        kept=kept,
        gendered=frozenset(gendered["classes"]),
        pronouns=frozenset(gendered["pronouns"]),
        digest=sha256_of_file(FILE)[0],
        **lists,
    )


def _classes(raw: Mapping[str, Sequence[str]]) -> dict[str, tuple[tuple[str, str], ...]]:
    classes: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, words in raw.items():
        for synonyms in words:
            for word in synonyms.split("|"):
                classes[word] = (*classes.get(word, ()), (name, synonyms.split("|")[0]))
    return classes
