"""Which photos have captions that name a noun, wherever in a sentence, or imply what it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import PHOTO
from twinset.generators.triplets.ratings import CONCEPTS
from twinset.generators.triplets.relations import Relations, identity

Concept = tuple[frozenset[str], frozenset[str]]  # nouns and their other names; words that imply what these name


@cache
def concepts() -> Mapping[str, Concept]:
    """The concept of each noun of the lists. A noun of several lines has the names and other words of all of them."""
    by_noun: dict[str, Concept] = {}
    for line in load_yaml(CONCEPTS.read_text("utf-8"))["concepts"]:
        names, implied_by = (frozenset(part.split()) for part in line.split(":"))
        for name in names:
            before = by_noun.get(name, (frozenset(), frozenset()))
            by_noun[name] = before[0] | names, before[1] | implied_by
    return by_noun


def concept_of(lemma: str) -> Concept:
    """What a noun, or the last word of a compound, names; one that no list has is its own only name."""
    noun = last_word(lemma)
    return concepts().get(noun, (frozenset((noun,)), frozenset()))


def forms_of(nouns: Iterable[str]) -> frozenset[str]:
    """Nouns and their regular plurals."""
    return frozenset(form for noun in nouns for form in (noun, f"{noun}s", f"{noun}es", f"{noun.removesuffix('y')}ies"))


def last_word(words: str) -> str:
    """The last word of a compound, in lower case: what the compound is."""
    parts = re.findall(r"[^\W_]+", words.lower())
    return parts[-1] if parts else words


class Mentions:
    """The nouns that captions of photos name or imply. nouns: a number for each lemma, the same for one concept."""

    def __init__(self, relations: Relations, photos: pl.Series, lemmas: pl.Series) -> None:
        """Find nouns in captions, also in those without relations. photos: those to look at, by `identity`."""
        numbers: dict[Concept, int] = {}
        self.nouns = {lemma: numbers.setdefault(concept_of(lemma), len(numbers)) for lemma in lemmas.unique().sort()}
        captions = relations.index, relations.silent
        related, silent = (rows.lazy().select("caption", image=identity(PHOTO)) for rows in captions)
        wanted = photos.unique().alias("image").to_frame().lazy()
        texts = pl.concat([related, silent]).join(wanted, on="image", how="semi")
        plain = pl.col("caption").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", " ")
        words = texts.select("image", word=plain.str.split(" ")).explode("word")
        named = words.join(_words(relations, numbers).lazy(), on="word").select(mention_key())
        self._keys: NDArray[np.uint64] = named.collect(engine="streaming").to_series().to_numpy(writable=True)
        self._keys.sort()

    def of(self, photos: pl.Series, nouns: pl.Series) -> pl.Series:
        """Whether some caption of each photo names or implies a noun."""
        keys = pl.DataFrame({"image": photos, "noun": nouns}).select(mention_key()).to_series().to_numpy()
        return pl.Series(self._keys[np.searchsorted(self._keys[:-1], keys)] == keys)


def mention_key() -> pl.Expr:
    """One number for a photo with a noun, equal for equal ones."""
    return pl.struct("image", "noun").hash()


def _words(relations: Relations, numbers: Mapping[Concept, int]) -> pl.DataFrame:
    """Words of captions (``word``), and the number of the ``noun`` that each names or implies."""
    sides = ("subject", "object")
    forms = pl.concat([relations.index.select(form=side, lemma=f"{side}_lemma") for side in sides]).unique()
    words = {
        (last_word(form), number)
        for form, lemma in forms.collect(engine="streaming").iter_rows()
        if (number := numbers.get(concept_of(lemma))) is not None
    }
    words |= {(form, number) for concept, number in numbers.items() for form in forms_of(frozenset().union(*concept))}
    return pl.DataFrame(sorted(words), {"word": pl.String, "noun": pl.Int32}, orient="row")
