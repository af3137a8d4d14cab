"""Vocabularies of edited captions (EqBen, Figure 15): rows of a template and the words of its slots, drawn as pairs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, permutations
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.canonical import generator_for
from twinset.contracts.doors import MORE
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES, is_model_folder
from twinset.contracts.source import Settings
from twinset.generators.even_sampling import Balance
from twinset.generators.record_fields import read_words
from twinset.models.files import BROUGHT

FIGURE_15 = "figure-15"  # the paper's captions

Kind = Literal["object", "scene", "attribute"]
KINDS: tuple[Kind, ...] = ("object", "scene", "attribute")

#: Words as they stand in a caption, single spaces between them; "" leaves the slot out.
Words = Annotated[str, Field(max_length=100, pattern=r"^([\w-]+( [\w-]+)*)?$")]


class CaptionRow(Settings):
    """One way to word a pair.

    kind: what changes. template: a caption with slots in braces. changes: the slot in which the two captions differ.
    words: what each slot can take.
    """

    kind: Kind
    template: str = Field(max_length=300)
    changes: str
    words: dict[str, Annotated[tuple[Words, ...], Field(min_length=1)]]

    def caption(self, chosen: Mapping[str, str]) -> str:
        """The caption with these words in its slots; an empty slot leaves one space behind, and none before a stop."""
        return " ".join(self.template.format_map(chosen).split()).replace(" .", ".")

    @model_validator(mode="after")
    def _hangs_together(self) -> CaptionRow:
        try:
            parts = list(Formatter().parse(self.template))
        except ValueError as error:
            raise ValueError(f"template {self.template!r}: {error}") from error
        slots = [slot for _, slot, form, conversion in parts if slot is not None]
        if sorted(slots) != sorted(self.words) or any(form or conversion for _, _, form, conversion in parts):
            raise ValueError(
                f"template {self.template!r}: each of its slots needs words, once; words has {[*self.words]}"
            )
        for slot, words in self.words.items():
            if len(set(words)) != len(words):
                raise ValueError(f"{slot}: a word stands twice, and would be drawn twice as often")
        if self.changes not in self.words:
            raise ValueError(f"changes: {self.changes!r} is no slot of {self.template!r}")
        if len(self.words[self.changes]) < 2:
            raise ValueError(f"changes: {self.changes!r} needs two words that can differ")
        return self


class CaptionVocabulary(Settings):
    """rows: all ways to word a pair; a kind has at least one."""

    rows: tuple[CaptionRow, ...]

    def of_kind(self, kind: Kind) -> tuple[int, ...]:
        """Numbers of the rows of a kind."""
        return tuple(number for number, row in enumerate(self.rows) if row.kind == kind)

    @model_validator(mode="after")
    def _every_kind_has_a_row(self) -> CaptionVocabulary:
        if lacking := [kind for kind in KINDS if not self.of_kind(kind)]:
            raise ValueError(f"no row of kind {', '.join(lacking)}")
        return self


def vocabulary_file(vocabulary: str) -> Path:
    """The file of a vocabulary by its path or its name: the paper's, or one of a model that a package brings. Raises
    `WrongUse`: there is none of that name.
    """
    if is_model_folder(vocabulary):
        return Path(vocabulary).expanduser()
    known = {FIGURE_15: VOCABULARIES / "eq_sd.yaml"}
    if vocabulary not in known:
        for name in BROUGHT.kinds():
            known |= BROUGHT.find(name).vocabularies
    if vocabulary not in known:
        raise WrongUse(
            f"there is no vocabulary {vocabulary!r} here; name one of {', '.join(known)}, or a YAML file by its path, "
            f"as in ./captions.yaml{MORE}"
        )
    return known[vocabulary]


@lru_cache
def load_captions(path: Path) -> CaptionVocabulary:
    """The vocabulary in a YAML file; raises `WrongUse` with what is wrong where."""
    return read_words(path, CaptionVocabulary)


@dataclass(frozen=True, slots=True)
class DrawnEdit:
    """The index-th pair of a stream; tuples are of image 0 and image 1.

    row: of the vocabulary. words: what the captions differ in, "" where it is left out. plain: the image that is drawn
    from its caption alone; the other one is its edited version.
    """

    index: int
    kind: Kind
    row: int
    captions: tuple[str, str]
    words: tuple[str, str]
    plain: Literal[0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCandidate(CaptionedCandidate):
    """A drawn pair of captions (`DrawnEdit`).

    change: the kind of edit. words0, words1: what the captions differ in. plain: 0 or 1, the image that is drawn from
    its caption alone.
    """

    change: str
    words0: str
    words1: str
    plain: int


def draw_edits(vocabulary: CaptionVocabulary, seed: int, subset: str) -> Iterator[DrawnEdit]:
    """An endless stream of pairs, the same for the same arguments: asking for more keeps the first ones.

    Statistics are near-uniform (EqBen, Figure 15): kinds come equally often, and so do the rows of a kind and the words
    of a row. Captions that come again are drawn from another noise. Either image can be the edited one, so that no side
    betrays itself by traces of editing; of two captions with and without a phrase it is always the one with it, which
    prompt-to-prompt adds.
    """
    balance = Balance(generator_for(seed, subset, "captions"))
    for index in count():
        kind = balance.pick("kind", KINDS)
        number = balance.pick(f"row of {kind}", vocabulary.of_kind(kind))
        row = vocabulary.rows[number]
        words = balance.pick(f"{number} changes", list(permutations(row.words[row.changes], 2)))
        chosen: dict[str, str] = {}
        given: list[Hashable] = [words]
        for slot, options in row.words.items():
            if slot != row.changes:
                chosen[slot] = balance.pick(f"{number} {slot}", options, *given)
                given.append((*given, chosen[slot]))
        sides = [{**chosen, row.changes: word} for word in words]
        plain = words.index("") if "" in words else balance.pick("plain", (0, 1), kind)
        captions = (row.caption(sides[0]), row.caption(sides[1]))
        yield DrawnEdit(index, kind, number, captions, words, 1 if plain else 0)
