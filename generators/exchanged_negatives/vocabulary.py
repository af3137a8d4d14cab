"""The words that change places: ``manifests/vocabularies/exchanges.yaml``, turned into tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml

FILE = VOCABULARIES / "exchanges.yaml"

#: Classes that a word is in, each with the name that it shares with its synonyms there.
Classes = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Exchanges:
    """All lists; prepositions and companions as tuples of words, the longest first.

    gendered: classes whose words stay where a caption has one of the pronouns. anywhere: classes of adjectives that can
    be seen of any noun. added: classes of adjectives that a noun may get.
    companions: what introduces another thing behind a noun. named: classes of nouns that may be it. anyone: nouns for
    any person, several: for more than one. unseen: words of captions that do not describe.
    things: classes of nouns of which two may change places.
    """

    nouns: Classes
    adjectives: Classes
    verbs: Classes
    prepositions: Mapping[tuple[str, ...], tuple[tuple[str, str], ...]]
    gendered: frozenset[str]
    pronouns: frozenset[str]
    added: frozenset[str]
    anywhere: frozenset[str]
    companions: tuple[tuple[str, ...], ...]
    things: frozenset[str]
    named: frozenset[str]
    anyone: frozenset[str]
    several: frozenset[str]
    unseen: frozenset[str]
    digest: str


@cache
def exchanges() -> Exchanges:
    """The vocabulary, read once."""
    raw = load_yaml(FILE.read_text("utf-8"))
    prepositions = {_split(words): found for words, found in _classes(raw["prepositions"]).items()}
    return Exchanges(
        nouns=_classes(raw["nouns"]),
        adjectives=_classes(raw["adjectives"]),
        verbs=_classes(raw["verbs"]),
        prepositions=dict(sorted(prepositions.items(), key=lambda one: -len(one[0]))),
        gendered=frozenset(raw["gendered"]["classes"]),
        pronouns=frozenset(raw["gendered"]["pronouns"]),
        added=frozenset(raw["added"]),
        anywhere=frozenset(raw["anywhere"]),
        companions=tuple(sorted(map(_split, raw["companions"]), key=len, reverse=True)),
        things=frozenset(raw["things"]),
        named=frozenset(raw["named"]),
        anyone=frozenset(raw["anyone"]),
        several=frozenset(raw["several"]),
        unseen=frozenset(raw["unseen"]),
        digest=sha256_of_file(FILE)[0],
    )


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


def _classes(raw: Mapping[str, Sequence[str]]) -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, words in raw.items():
        for synonyms in words:
            for word in synonyms.split("|"):
                found[word] = (*found.get(word, ()), (name, synonyms.split("|")[0]))
    return found
