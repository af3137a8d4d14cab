"""The word lists of the questions: ``vocabularies/questions.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.recipe.strict_yaml import load_yaml

FILE = Path(__file__).parents[1] / "vocabularies/questions.yaml"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All lists, as the file explains them. groups, numbers: words with the number that they say, 0 for none.

    digest: of the file.
    """

    pictures: frozenset[str]
    unasked: frozenset[str]
    groups: Mapping[str, int]
    depictions: frozenset[str]
    nouns: frozenset[str]
    places: frozenset[str]
    scenery: frozenset[str]
    times: frozenset[str]
    unseen: frozenset[str]
    people: frozenset[str]
    animals: frozenset[str]
    vehicles: frozenset[str]
    clothing: frozenset[str]
    mass: frozenset[str]
    names: frozenset[str]
    silent: frozenset[str]
    amounts: frozenset[str]
    numbers: Mapping[str, int]
    colours: frozenset[str]
    attributes: frozenset[str]
    verbs: frozenset[str]
    participles: frozenset[str]
    weak: frozenset[str]
    digest: str

    @property
    def movers(self) -> frozenset[str]:
        """What can do something by itself."""
        return self.people | self.animals | self.vehicles


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, read once."""
    raw = load_yaml(FILE.read_text("utf-8"))
    lists: dict[str, Any] = {
        field.name: raw[field.name] if isinstance(raw[field.name], dict) else frozenset(map(str, raw[field.name]))
        for field in fields(Vocabulary)
        if field.name != "digest"
    }
    return Vocabulary(**lists, digest=sha256_of_file(FILE)[0])
