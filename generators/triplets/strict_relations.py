"""Which relations the strict rules mine: those that say what a photo shows, and were not misread.

Words are judged by closed classes alone: measures, parts of space, words for pictures, prepositions
(``relation_words.yaml`` says what each class is).
"""

from __future__ import annotations

import polars as pl

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import (
    BACKDROP,
    CONFIRMED,
    CONTESTED,
    NEGATED,
    PHOTO,
    PLAIN,
    STAND_IN,
)
from twinset.generators.triplets.concepts import forms_of
from twinset.generators.triplets.ratings import LOWEST, Ratings
from twinset.generators.triplets.relations import Relations, identity

CLASSES = {
    name: frozenset(words.split())
    for name, words in load_yaml((VOCABULARIES / "relation_words.yaml").read_text("utf-8")).items()
}
PHRASES = frozenset({"next to", "in front of", "on top of", "outside of", "inside of", "close to"})
VISIBLE = 3.0  # rating of a verb from which on a photo shows the deed: 2.0 negotiate, 3.7 hold
LEMMAS = ("subject_lemma", "object_lemma")
VERB = "predicate_lemma"
#: Marks of quotations, exclamations, questions, headings and pauses.
_MARKS = r"[\"“”«»`?!#@:;…]|''|\.\.\."


def low(name: str) -> pl.Expr:
    """A column of words in lower case."""
    return pl.col(name).str.to_lowercase()


def first(name: str) -> pl.Expr:
    """The first word of each of a column."""
    return low(name).str.split(" ").list.first()


def last(name: str) -> pl.Expr:
    """The last word of each of a column: what a compound is."""
    return low(name).str.split(" ").list.last()


def among(words: pl.Expr, *classes: str) -> pl.Expr:
    """Whether words are of classes."""
    return words.is_in(sorted(frozenset().union(*(CLASSES[name] for name in classes))))


def rating(ratings: Ratings, side: str) -> pl.Expr:
    """The rating of a subject or object: its own, else that of its lemma, else null."""
    words, means = [*ratings.rated], [*ratings.rated.values()]
    own, lemma = (
        low(name).replace_strict(words, means, default=None, return_dtype=pl.Float64)
        for name in (side, f"{side}_lemma")
    )
    return pl.coalesce(own, lemma)


def both_rated(ratings: Ratings) -> pl.Expr:
    """Whether subject and object have ratings."""
    return pl.all_horizontal(rating(ratings, side).is_not_null() for side in ("subject", "object"))


def steps(ratings: Ratings) -> dict[str, pl.Expr]:
    """What is asked of each relation by itself, as the funnel says after "relations"."""
    said, verb = low("predicate"), pl.col("verb")
    nouns = pl.all_horizontal(pl.col("subject_pos", "object_pos").is_in(["NOUN", "PROPN"]))
    no_thing = [
        among(low(name), "measures", "places") | among(last(name), "pictures", "times", "regions") for name in LEMMAS
    ]
    past = (
        ~said.str.contains(" ", literal=True) & ~said.str.contains("(ing|s)$") & (pl.col("predicate") != pl.col(VERB))
    )
    spared = among(verb, "placing") | ((said == "with") & (verb == "pose"))
    broken = said.str.contains(" ", literal=True) & among(first("predicate"), "unverbs") & ~said.is_in(sorted(PHRASES))
    filled = among(first(VERB), "owning") & among(first("object_lemma"), "grounds")
    return {
        "with both words rated": both_rated(ratings),
        "that are of two nouns": nouns,
        "whose caption begins with the subject": pl.col("subject_start") == 0,
        "that no word denies": ~pl.col(NEGATED),
        "without measures, parts of space, times, regions and words for pictures": ~pl.any_horizontal(no_thing),
        "of no word that stands for a name, and no kin": ~pl.any_horizontal(
            pl.col(STAND_IN), *(among(last(name), "roles") for name in LEMMAS)
        ),
        "of two things that are no part of a body and no ordinary clothes": ~pl.any_horizontal(
            among(low(name), "parts", "clothes") for name in LEMMAS
        ),
        "of two things, which are not said to be one": ~among(first(VERB), "states")
        & (pl.col("subject_lemma") != pl.col("object_lemma")),
        "whose predicate says where or what without a verb left out": ~pl.any_horizontal(
            among(first(VERB), "nowhere"),
            among(first("predicate"), "nowhere"),
            among(first(VERB), "directions") & (verb != ""),
        ),
        "of deeds that a photo shows": ~pl.any_horizontal(among(first(VERB), "unseen"), said == "having", past),
        "whose predicate has its preposition, and its verb where it needs one": ~pl.any_horizontal(
            among(low(VERB), "objectless"), broken, (verb != "") & ~spared
        ),
        "of two things that are not the background, nor cover or fill a place": ~pl.any_horizontal(
            pl.col(BACKDROP), filled, among(low("subject_lemma"), "matter")
        ),
        "whose words cannot belong to another noun": ~pl.col(CONTESTED),
        "that the second parser finds too, or that a sentence begins with": pl.col(CONFIRMED).is_null()
        | pl.col(CONFIRMED)
        | pl.col(PLAIN),
    }


def shows_a_photo() -> pl.Expr:
    """Whether a caption has no mark or word of those that comment, or tell of what is drawn."""
    words = "|".join(sorted({*CLASSES["remarks"], *forms_of(CLASSES["drawings"])}))
    pattern = rf"(?i){_MARKS}|(?:^|[^\p{{L}}\p{{N}}])(?:{words})(?:[^\p{{L}}\p{{N}}]|$)"
    return ~pl.col("caption").str.contains(pattern)


def judged(relations: Relations, ratings: Ratings, min_support: int) -> tuple[pl.DataFrame, dict[str, int]]:
    """The relations that pass, in the order of the stage, and what is left of the captions at each step.

    Columns: ``row``; ``image`` and ``text``, numbers of photo and caption; `LEMMAS`, ``predicate_lemma``,
    ``subject_number``; ``s``, ``o`` and ``v``, the lemmas of subject and object and the verb in lower case; the ratings
    ``s_rating`` and ``o_rating``. Raises `WrongUse` where none passes.
    """
    meets = pl.concat(part.select(**steps(ratings)).collect() for part in relations.parts())
    begins, photos = relations.begins().select(pl.len()), relations.index.select(identity(PHOTO).n_unique())
    funnel = {
        "captions": relations.captions,
        "captions with relations": begins.collect(engine="streaming").item(),
        "photos, each of one name or more": photos.collect(engine="streaming").item(),
        "relations": meets.height,
    }
    passing = pl.repeat(True, meets.height, eager=True)
    for step in meets.iter_columns():
        passing &= step
        funnel[f"relations {step.name}"] = int(passing.sum())
    asked = ("subject", "object", *LEMMAS, VERB, "subject_number", PLAIN, PHOTO, "caption")
    kept = relations.only(*asked).rows(passing.arg_true().to_numpy()).filter(shows_a_photo())
    kept = kept.select(
        "row",
        *LEMMAS,
        "subject_number",
        PLAIN,
        text=identity("caption"),
        s_rating=rating(ratings, "subject"),
        o_rating=rating(ratings, "object"),
        **_words(),
    )
    funnel["relations of captions that neither comment nor tell of what is drawn"] = kept.height

    def support(*words: str) -> pl.Series:
        """Of each relation, how many photos have its words."""
        return photos_of(relations, kept, *words)

    kept = kept.filter(pl.col(PLAIN) | (support("s", "o") >= min_support))
    funnel[f"relations of pairs of words that {min_support} photos or more have, or that a sentence begins with"] = (
        kept.height
    )
    place = among(first(VERB), "prepositions", "unverbs", "owning")
    visible = pl.col("v").replace_strict([*ratings.rated], [*ratings.rated.values()], default=LOWEST) >= VISIBLE
    misread = ~pl.col(VERB).str.contains(" ", literal=True) & among(last("object_lemma"), "grounds")
    deed = ~place & visible & (support("v") >= min_support) & ~misread  # "running on beach", not "carrying pond"
    kept = kept.filter(deed | (support(VERB, "o") >= min_support))
    funnel[
        f"relations whose verb is in the captions of {min_support} photos or more and rated {VISIBLE:g} or more for "
        f"concreteness, or whose verb and object are together in those of {min_support} photos or more"
    ] = kept.height
    if not kept.height:
        left_over = ", ".join(f"{count} {step}" for step, count in funnel.items())
        raise WrongUse(
            f"no triplet can be mined from these captions under the strict rules: {left_over}; give more captions, or "
            "lower min_support"
        )
    return kept, funnel


def photos_of(relations: Relations, asked: pl.DataFrame, *words: str, of: pl.Expr | None = None) -> pl.Series:
    """Of each row, how many photos have relations with its words. of: which relations count, all when absent."""
    different = asked.select(words).unique().with_row_index("number")
    seen = []
    for part in relations.parts():
        counted = part if of is None else part.filter(of)
        of_words = counted.select(**_words()).join(different.lazy(), on=words).select("number", "image")
        seen.append(of_words.unique().collect())
    photos = pl.concat(seen).unique().group_by("number").agg(photos=pl.len()).join(different, on="number")
    return asked.select(words).join(photos, on=words, how="left", maintain_order="left")["photos"]


def _words() -> dict[str, pl.Expr]:
    return {
        "s": low("subject_lemma"),
        "o": low("object_lemma"),
        "v": first(VERB),
        VERB: pl.col(VERB),
        "image": identity(PHOTO),
    }
