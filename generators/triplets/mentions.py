"""What the captions of each photo name, wherever in a sentence and whatever a parser makes of it, and leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from twinset.generators.scene_graphs.source import PHOTO
from twinset.generators.triplets.concepts import Concept, concepts, forms_of, last_word
from twinset.generators.triplets.relations import Relations, identity

BATCH = 1 << 19  # captions taken apart at once
SEVERAL = 3  # captions of a photo, from which on it is counted
PHOTOS = 1000  # that many of which it takes to estimate anything
PRIOR = 2.0  # added to the photos with one caption that names a noun, so that rare nouns are not taken for reliable


class Nouns:
    """Numbers of nouns, equal for forms of one lemma and for names of one concept, and the words that tell of each."""

    def __init__(self, lemmas: Iterable[str]) -> None:
        self._numbers: dict[Concept, int] = {}
        self.of_lemma = {
            lemma: self._numbers.setdefault(concepts().of_noun(last_word(lemma)), len(self._numbers))
            for lemma in sorted(lemmas)
        }

    def __len__(self) -> int:
        return len(self._numbers)

    def tokens(self, forms: Iterable[tuple[str, str]]) -> pl.DataFrame:
        """Words of captions (``token``), the noun that each tells of, and whether it names it or implies it.

        forms: of nouns, as written and as lemma; the last word of each counts.
        """
        written = {
            (last_word(form), number, True)
            for form, lemma in forms
            if (number := self._numbers.get(concepts().of_noun(last_word(lemma)))) is not None
        }
        for concept, number in self._numbers.items():
            written |= {(form, number, True) for form in forms_of(concept.names)}
            written |= {(form, number, False) for form in forms_of(concept.implied_by)}
        return pl.DataFrame(sorted(written), {"token": pl.String, "noun": pl.Int32, "names": pl.Boolean}, orient="row")


@dataclass(frozen=True)
class Mentions:
    """The nouns that captions name. Photos are numbers (``image``).

    of_photo: of each photo and noun that its captions name or imply, how many captions name it (``captions``).
    several: photos of `SEVERAL` captions or more.
    """

    of_photo: pl.DataFrame
    several: pl.DataFrame

    @property
    def estimable(self) -> bool:
        """Whether there are photos enough to estimate what captions leave out."""
        return self.several.height >= PHOTOS

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
        named = self.of_photo.filter(pl.col("captions") > 0).join(self.several, on="image", how="semi")
        one, two = ((pl.col("captions") == times).sum() for times in (1, 2))
        nouns = named.group_by("noun").agg(photos=pl.len(), odds=(one + PRIOR) ** 2 / (2 * (two + 1)) / pl.len())
        nouns = nouns.with_columns(pl.col("photos").cast(pl.Int64))
        of = named.select("noun", "image").lazy()
        together = (
            pairs.unique()
            .lazy()
            .join(of, left_on="subject", right_on="noun")
            .join(of, left_on=["object", "image"], right_on=["noun", "image"], how="semi")
            .group_by("subject", "object")
            .agg(both=pl.len().cast(pl.Int64))
            .collect(engine="streaming")
        )
        joined = (
            pairs.join(together, on=["subject", "object"], how="left", maintain_order="left")
            .join(nouns.select(subject="noun", subjects="photos"), on="subject", how="left", maintain_order="left")
            .join(nouns.select(object="noun", odds="odds"), on="object", how="left", maintain_order="left")
            .with_columns(pl.col("both", "subjects").fill_null(0), pl.col("odds").fill_null(PRIOR**2 / 2))
        )
        silent = (pl.col("subjects") - pl.col("both")).clip(1)
        return joined.select("odds", share=(pl.col("both") * pl.col("odds") / silent).clip(0, 1))


def mentions(relations: Relations, photos: pl.Series, nouns: Nouns) -> Mentions:
    """Find nouns in captions, also in those without relations.

    photos: those to look at, besides all that have `SEVERAL` captions and a relation.
    """
    sides = ("subject", "object")
    forms = pl.concat([relations.index.select(form=side, lemma=f"{side}_lemma") for side in sides]).unique()
    tokens = nouns.tokens(forms.collect(engine="streaming").iter_rows())
    related = relations.begins().select("caption", image=identity(PHOTO))
    silent = relations.silent.lazy().select("caption", image=identity(PHOTO))
    captions = pl.concat([related, silent.join(related, on="image", how="semi")])
    many = captions.group_by("image").len().filter(pl.col("len") >= SEVERAL).select("image")
    wanted = pl.concat([photos.unique().alias("image").to_frame().lazy(), many])
    # Two data sets may have the same caption of a photo: it counts once.
    plain = pl.col("caption").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
    texts = captions.join(wanted, on="image", how="semi").select("image", text=plain).unique()
    different = texts.collect(engine="streaming").with_row_index("number")
    named = pl.concat(_named(part, tokens) for part in different.iter_slices(BATCH))
    named = named.group_by("image", "noun").agg(captions=pl.col("captions").sum())
    several = different.group_by("image").len().filter(pl.col("len") >= SEVERAL).select("image")
    return Mentions(named, several)


def _named(texts: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """Of some captions, `Mentions.of_photo`."""
    words = texts.select("image", "number", token=pl.col("text").str.split(" ")).explode("token")
    told = words.join(tokens, on="token").select("image", "number", "noun", "names").unique()
    return told.group_by("image", "noun").agg(captions=pl.col("names").sum())
