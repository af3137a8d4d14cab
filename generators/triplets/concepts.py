"""Nouns, their other names, and what implies them (``triplets.yaml``)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml

FILE = VOCABULARIES / "triplets.yaml"


@dataclass(frozen=True, slots=True)
class Concept:
    """What one or more nouns name. names: these nouns and their other names; implied_by: words that imply it."""

    names: frozenset[str]
    implied_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Concepts:
    """The lists. by_noun: the concept of each noun that they have. digest: sha256 of the file, in hexadecimal."""

    by_noun: Mapping[str, Concept]
    digest: str

    def of_noun(self, noun: str) -> Concept:
        """The concept of any noun; one that no list has is its own only name."""
        return self.by_noun.get(noun) or Concept(frozenset((noun,)), frozenset())


@cache
def concepts() -> Concepts:
    """The lists, read once. A noun of several lines has the names of all of them, and what implies any of them."""
    by_noun: dict[str, Concept] = {}
    for line in load_yaml(FILE.read_text("utf-8"))["concepts"]:
        names, implied_by = (frozenset(part.split()) for part in line.split(":"))
        for name in names:
            before = by_noun.get(name) or Concept(frozenset(), frozenset())
            by_noun[name] = Concept(before.names | names, before.implied_by | implied_by)
    return Concepts(by_noun, sha256_of_file(FILE)[0])


def forms_of(nouns: frozenset[str]) -> frozenset[str]:
    """Nouns and their regular plurals."""
    return frozenset(form for noun in nouns for form in (noun, f"{noun}s", f"{noun}es", f"{noun.removesuffix('y')}ies"))


def last_word(words: str) -> str:
    """The last word of a compound, in lower case: what the compound is."""
    found = re.findall(r"[^\W_]+", words.lower())
    return found[-1] if found else words
