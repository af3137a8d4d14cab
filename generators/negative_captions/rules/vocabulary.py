"""The word lists of the rules: ``manifests/vocabularies/negatives.yaml``, checked and turned into tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml

FILE = VOCABULARIES / "negatives.yaml"


@dataclass(frozen=True, slots=True)
class Group:
    """Nouns that exclude each other. names: each with its synonyms; mass: whether they stand without an article."""

    name: str
    names: tuple[tuple[str, ...], ...]
    mass: bool
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preposition:
    """Words, and what replaces them. among: groups of the noun behind; empty: any noun. unless: verbs before."""

    words: tuple[str, ...]
    instead: tuple[str, ...]
    among: frozenset[str]
    unless: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb. instead: (-ing form, third person) of what replaces it. by: ``people``, ``beings`` or empty for anyone.

    object: whether a noun must follow; None where it does not matter.
    """

    instead: tuple[tuple[str, str], ...]
    by: str
    object: bool | None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All lists. groups: by any name of a noun. synonyms: all names of what a noun names."""

    groups: Mapping[str, Group]
    synonyms: Mapping[str, frozenset[str]]
    additions: tuple[str, ...]
    colours: Mapping[str, str]
    sizes: Mapping[str, str]
    opposites: Mapping[str, tuple[str, ...]]
    moves: Mapping[str, tuple[str, ...]]
    never: Mapping[str, tuple[str, ...]]
    of_people: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[str, ...]]
    prepositions: tuple[Preposition, ...]
    verbs: Mapping[str, Verb]
    people: frozenset[str]
    beings: frozenset[str]
    unswappable: frozenset[str]
    idioms: frozenset[str]
    digest: str


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, read once."""
    raw = load_yaml(FILE.read_text("utf-8"))
    groups: dict[str, Group] = {}
    synonyms: dict[str, frozenset[str]] = {}
    for name, one in raw["objects"].items():
        for mass in (False, True):
            names = tuple(tuple(words.split("|")) for words in one.get("mass" if mass else "count", ()))
            for same in names:
                for word in same:
                    groups[word] = Group(name, names, mass, tuple(one["attributes"]))
                    synonyms[word] = frozenset(same)
    attributes, relations = raw["attributes"], raw["relations"]
    people = _actors(raw["people"], groups)
    return Vocabulary(
        groups=groups,
        synonyms=synonyms,
        additions=tuple(raw["additions"]),
        colours={word: words.split("|")[0] for words in attributes["colours"] for word in words.split("|")},
        sizes={word: size for size, names in attributes["sizes"].items() for word in names},
        opposites=_lists(attributes["opposites"]),
        moves=_lists(attributes["moves"]),
        never=_lists(attributes["never"]),
        of_people=_lists(attributes["of_people"]),
        numbers=_lists(attributes["numbers"]),
        prepositions=tuple(
            Preposition(
                tuple(one["words"].split()),
                tuple(one["instead"]),
                frozenset(one.get("among", ())),
                frozenset(one.get("unless", ())),
            )
            for one in relations["prepositions"]
        ),
        verbs={
            lemma: Verb(tuple(map(tuple, one["instead"])), one.get("by", ""), one.get("object"))
            for lemma, one in relations["verbs"].items()
        },
        people=people,
        beings=people | _actors(raw["beings"], groups),
        unswappable=frozenset(raw["unswappable"]),
        idioms=frozenset(raw["idioms"]),
        digest=sha256_of_file(FILE)[0],
    )


def _actors(raw: Mapping[str, Any], groups: Mapping[str, Group]) -> frozenset[str]:
    return frozenset(raw["words"]) | {word for word, group in groups.items() if group.name in raw["groups"]}


def _lists(raw: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {word: tuple(words) for word, words in raw.items()}
