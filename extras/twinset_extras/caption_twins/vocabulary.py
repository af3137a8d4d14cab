"""The words in which twins may differ: ``vocabularies/twins.yaml`` as tables of numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.recipe.strict_yaml import load_yaml

FILE = Path(__file__).parents[1] / "vocabularies/twins.yaml"
KINDS = ("object", "place", "count", "attribute", "relation")
NOUNS = ("object", "place")  # kinds whose names have plurals


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a set. kind, set_name: where it stands. title: its first name."""

    kind: str
    set_name: str
    title: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The lists.

    phrases: all names in all forms, as words with spaces between; none twice. bases: the first form of each, by which
    it is rated. lines: of all sets.
    twin: shape (phrases, phrases), the number of the line that the row's phrase has in the first set whose lines keep
    the two phrases apart, -1 where none does or their forms differ ("dog" and "cats").
    named: numbers of the lines that a phrase is a name of. says: of the lines that a caption may mean by a phrase,
    first by all of ``phrases``.
    where: prepositions behind which a noun is a place. together: sets of things that are seen side by side. single:
    sets of which a photo's captions name one line, or disagree. digest: sha256 of the file, in hexadecimal.
    """

    phrases: tuple[str, ...]
    bases: tuple[str, ...]
    lines: tuple[Line, ...]
    twin: NDArray[np.int16]
    named: tuple[tuple[int, ...], ...]
    says: Mapping[str, tuple[int, ...]]
    where: frozenset[str]
    together: frozenset[str]
    single: frozenset[str]
    digest: str


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, read once."""
    raw = load_yaml(FILE.read_text("utf-8"))
    plurals = raw.pop("plurals")
    sets = [(kind, name, lines) for kind in KINDS for name, lines in raw[kind].items()]
    lists: dict[str, list[str]] = {}
    lines: list[Line] = []
    forms: list[dict[tuple[str, int], set[int]]] = []  # of each set: phrase and form, and its lines
    says: dict[str, set[int]] = {}
    bases: dict[str, str] = {}
    for kind, set_name, texts in sets:
        here: dict[tuple[str, int], set[int]] = {}
        for text in texts:
            names, _, excluded = text.partition(":")
            words = [word for name in _listed(names) for word in lists.get(name, [name])]
            lists.setdefault(f"@{set_name}", []).extend(words)
            number = len(lines)
            lines.append(Line(kind, set_name, words[0].partition("/")[0]))
            for phrase, form, base in _forms(words, kind, plurals):
                bases.setdefault(phrase, base)
                here.setdefault((phrase, form), set()).add(number)
                says.setdefault(phrase, set()).add(number)
            for phrase, *_ in _forms(_listed(excluded), "object", plurals):
                says.setdefault(phrase, set()).add(number)
        forms.append(here)
    phrases = sorted({phrase for here in forms for phrase, _ in here})
    place = {phrase: number for number, phrase in enumerate(phrases)}
    named: list[set[int]] = [set() for _ in phrases]
    twin = np.full((len(phrases), len(phrases)), -1, dtype=np.int16)
    for here in forms:
        for (phrase, form), own in here.items():
            named[place[phrase]] |= own
            for (other_phrase, other_form), other_lines in here.items():
                at = place[phrase], place[other_phrase]
                if form == other_form and not own & other_lines and twin[at] < 0:
                    twin[at] = min(own)
    return Vocabulary(
        phrases=tuple(phrases),
        bases=tuple(bases[phrase] for phrase in phrases),
        lines=tuple(lines),
        twin=twin,
        named=tuple(tuple(sorted(numbers)) for numbers in named),
        says={phrase: tuple(sorted(says[phrase])) for phrase in (*phrases, *sorted(says.keys() - place.keys()))},
        where=frozenset(raw["where"]),
        together=frozenset(raw["together"]),
        single=frozenset(raw["single"]),
        digest=sha256_of_file(FILE)[0],
    )


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _forms(names: list[str], kind: str, plurals: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Each name in its forms: the phrase, the number of the form (1 for plurals) and the first form."""
    for name in names:
        written = [" ".join(form.replace("-", " ").split()) for form in name.split("/")]
        if kind in NOUNS and len(written) == 1:
            before, _, last = written[0].rpartition(" ")
            written.append(f"{before} {_plural(last, plurals)}".strip())
        for form, phrase in enumerate(written):
            yield phrase, form, written[0]


def _plural(noun: str, plurals: Mapping[str, str]) -> str:
    if noun in plurals:
        return plurals[noun]
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"
