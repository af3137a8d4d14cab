"""What the captions of each photo name, wherever in a sentence and whatever a parser makes of it, and leave out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import polars as pl

from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import PHOTO
from twinset.generators.triplets.ratings import CONCEPTS
from twinset.generators.triplets.relations import Relations, identity

SEVERAL = 3  # captions of a photo, from which on it is counted
PHOTOS = 1000  # that many of which it takes to estimate anything
PRIOR = 2.0  # added to the photos with one caption that names a noun, so that rare nouns are not taken for reliable

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
    found = re.findall(r"[^\W_]+", words.lower())
    return found[-1] if found else words


class Mentions:
    """The nouns that captions name, by number. Photos are numbers (``image``).

    nouns: the number of each lemma, equal for names of one concept. named: of each photo and noun that its captions
    name or imply, how many captions name it (``captions``). several: photos of `SEVERAL` captions or more.
    """

    def __init__(self, relations: Relations, photos: pl.Series, lemmas: pl.Series) -> None:
        """Find nouns in captions, also in those without relations.

        photos: those to look at, besides all that have several captions and a relation. lemmas: the nouns.
        """
        numbers: dict[Concept, int] = {}
        self.nouns = {lemma: numbers.setdefault(concept_of(lemma), len(numbers)) for lemma in lemmas.unique().sort()}
        captions = (relations.index, relations.silent.lazy())
        told, silent = (rows.select("caption", image=identity(PHOTO)) for rows in captions)
        texts = pl.concat([told, silent.join(told, on="image", how="semi")])
        text = identity("caption")
        many = texts.group_by("image").agg(first=text.min(), last=text.max()).filter(pl.col("first") != pl.col("last"))
        wanted = pl.concat([photos.unique().alias("image").to_frame().lazy(), many.select("image")])
        # Two data sets may have the same caption of a photo: it counts once.
        plain = pl.col("caption").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
        texts = texts.join(wanted, on="image", how="semi").select("image", text=plain)
        several = texts.group_by("image").agg(pl.col("text").n_unique())
        self.several = several.filter(pl.col("text") >= SEVERAL).collect(engine="streaming")["image"]
        of_token = _words(relations, numbers).lazy()
        words = texts.select("image", identity("text"), token=pl.col("text").str.split(" ")).explode("token")
        of_text = words.join(of_token, on="token").group_by("image", "noun", "text").agg(pl.col("names").any())
        self.named = of_text.group_by("image", "noun").agg(captions=pl.sum("names")).collect(engine="streaming")

    @property
    def estimable(self) -> bool:
        """Whether there are photos enough to estimate what captions leave out."""
        return len(self.several) >= PHOTOS

    def unsaid(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """How often photos show an object that none of their captions names, from photos of several captions.

        What captions leave out cannot be read in them, but it can be estimated from how unevenly they name it. Of 117
        photos a caption of which has the word "frisbee", one of five has it in 17, two in 11, three or more in 89: few
        can be left that show one and have it in none. Of 1,147 with the word "jacket" one has it in 782, two in 244: as
        many again show one unsaid. Ecology counts unseen species so; the estimate is Chao's (1987, Biometrics 43,
        783-791), f1^2 / (2 f2), of photos with one and with two captions that name the noun; 1 is added to f2, as in
        his bias-corrected form.

        Args:
            pairs: nouns ``subject`` and ``object``.

        Returns:
            Of each pair in order: ``odds``, the photos that show its object unsaid for each that says it, and
            ``share``, of the photos that name the subject, but not the object, the share that show it (0 to 1).
        """
        named = self.named.filter(pl.col("captions") > 0, pl.col("image").is_in(self.several.implode()))
        one, two = ((pl.col("captions") == times).sum() for times in (1, 2))
        nouns = named.group_by("noun").agg(photos=pl.len(), odds=(one + PRIOR) ** 2 / (2 * (two + 1)) / pl.len())
        of = named.select("noun", "image")
        together = (
            pairs.unique()
            .join(of, left_on="subject", right_on="noun")
            .join(of, left_on=["object", "image"], right_on=["noun", "image"], how="semi")
            .group_by("subject", "object")
            .agg(both=pl.len())
        )
        joined = (
            pairs.join(together, on=["subject", "object"], how="left", maintain_order="left")
            .join(nouns.select(subject="noun", subjects="photos"), on="subject", how="left", maintain_order="left")
            .join(nouns.select(object="noun", odds="odds"), on="object", how="left", maintain_order="left")
        )
        share = pl.col("both") * pl.col("odds") / (pl.col("subjects") - pl.col("both")).clip(1)
        return joined.select(pl.col("odds").fill_null(PRIOR**2 / 2), share=share.clip(0, 1).fill_null(0))


def _words(relations: Relations, numbers: Mapping[Concept, int]) -> pl.DataFrame:
    """Words of captions (``token``), the ``noun`` that each tells of, and whether it ``names`` it or implies it."""
    sides = ("subject", "object")
    forms = pl.concat([relations.index.select(form=side, lemma=f"{side}_lemma") for side in sides]).unique()
    words = {
        (last_word(form), number, True)
        for form, lemma in forms.collect(engine="streaming").iter_rows()
        if (number := numbers.get(concept_of(lemma))) is not None
    }
    for (names, implied_by), number in numbers.items():
        words |= {(form, number, True) for form in forms_of(names)}
        words |= {(form, number, False) for form in forms_of(implied_by)}
    return pl.DataFrame(sorted(words), {"token": pl.String, "noun": pl.Int32, "names": pl.Boolean}, orient="row")
