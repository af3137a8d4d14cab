"""Relations written for the tests, and ratings for their words."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.contracts.licences.terms import TERMS
from twinset.generators.triplets.relations import Relations

LEMMAS = {"hats": "hat", "glasses": "glass", "dogs": "dog", "men": "man"}
RATED = {
    **dict.fromkeys(("horse", "ball", "tree"), 5.0),
    **dict.fromkeys(("hat", "glass", "dog", "bird"), 4.9),
    **{"man": 4.8, "floor": 4.8, "crown": 4.7, "stick": 4.6, "king": 4.6, "glasses": 4.0, "idea": 1.6},
    **dict.fromkeys(("chewing", "riding", "wearing"), 4.0),
}


def relations_of(stated: str, others: Sequence[tuple[str, str]] = (), **columns: list[Any]) -> Relations:
    """The relations as a stage of scene graphs has them, each of a caption of its own.

    stated: image, subject, predicate and object of each, with commas between them. others: captions without relations,
    as photo and text. columns: in place of what a plain relation has.
    """
    words = [relation.split() for relation in stated.split(", ")]
    named = [(image, subject, " ".join(predicate), object_) for image, subject, *predicate, object_ in words]
    frame = pl.DataFrame(named, ["image_id", "subject", "predicate", "object"], orient="row").with_row_index("row")
    singular = pl.col("subject") == pl.col("subject").replace(LEMMAS)
    frame = frame.with_columns(
        *(pl.col(side).replace(LEMMAS).alias(f"{side}_lemma") for side in ("subject", "object")),
        caption_id=pl.col("row").cast(pl.String),
        caption=pl.concat_str("subject", "predicate", "object", separator=" "),
        image=pl.col("image_id") + ".jpg",
        photo="image_id",
        predicate_lemma="predicate",
        subject_number=pl.when(singular).then(pl.lit("singular")).otherwise(pl.lit("plural")),
        subject_start=0,
        confirmed=pl.lit(None, pl.Boolean),
        **dict.fromkeys(("subject_pos", "object_pos"), pl.lit("NOUN")),
        **dict.fromkeys(("negated", "backdrop", "contested", "stand_in", "plain"), pl.lit(False)),
        **dict.fromkeys(("verb", *TERMS), pl.lit("")),
    )
    frame = frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    silent = pl.DataFrame(others, {"photo": pl.String, "caption": pl.String}, orient="row")
    return Relations(frame.lazy(), silent, len(named))


def numbered(image: str, words: str, count: int) -> str:
    """A relation of each of several images."""
    return ", ".join(f"{image}{number} {words}" for number in range(count))


#: Subjects of unlike numbers of images, words that are unrated or plurals, and pairs that cannot but be alike.
#: A dog's stick is in one of the images of its ball. Nearly all that crowns are said of is in one image, so that the
#: 101st draw of a target is often as bad as those before. A king has one object, a glass four images.
OWN = ", ".join(
    [
        numbered("m", "man with hat", 4),
        "m4 man wearing glasses, m5 man wearing glasses, m0 man on horse, m6 man on horse, m7 man on horse",
        "m8 man on horse, m6 man with idea, m9 man in thingummy, m9 man near horse",
        numbered("d", "dog with ball", 6),
        "d0 dog chewing stick, d0 bird on stick, d1 bird on horse",
        *["c0 crown on floor"] * 40,
        "c2 crown near floor, c3 crown near floor, c4 crown near floor",
        *["c0 crown with king"] * 40,
        "c1 crown with king",
        numbered("t", "tree with bird", 8),
        *["t8 tree near ball"] * 3,
        numbered("x", "tree behind man", 5),
        numbered("f", "king with crown", 9),
        "g0 glass on floor, g1 glass on tree, g2 glass on ball, g3 glass on horse",
    ]
)
