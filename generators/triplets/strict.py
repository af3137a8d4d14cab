"""The strict rules: those of GeneCIS's paper (sections 5.2 and 6.2), and no pairs that teach the wrong thing.

Relations are those that say what a photo shows, and were not misread; words are judged by closed classes
(``relation_words.yaml``). All four words of reference and target are rated, and their mean exceeds the threshold. Both
subjects are singular, or both plural. No caption of the reference's photo has the target's object in it, in whatever
sentence and under whatever name, so that it never satisfies the condition: object and photo differ always. What the
captions leave out is estimated (`generators.triplets.mentions`): no target has an object that the reference may well
show unsaid. Where this can be estimated, and the target's photo has several captions, two of them name the subject and
two the object, so that an error in one caption makes no condition. Where it cannot, no target has an object that is
worn, nor a place where the reference's relation does not say one. No caption of the distractor's photo has the target's
subject in it: it would be as right as the target. The distractor's own two words pass the threshold too, which keeps
out pronouns: they may stand for the target's subject.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import BACKDROP, CONFIRMED, CONTESTED, NEGATED, PHOTO, PLAIN, STAND_IN
from twinset.generators.triplets.draws import U64, below
from twinset.generators.triplets.mentions import Mentions, forms_of
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import NEVER, Pool
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
WORDS = 4
DISTRACTOR = 3  # slot of random numbers
EXACT = 1e-9  # sums that differ by less are equal: ratings have two decimals
RELIABLE = 0.7  # odds up to which an object may be a target's: three of five photos that show it say so


class StrictRules(Miner):
    """Draws as the published procedure's first ones, of which every one that breaks a rule is drawn again.

    estimated: whether it is known how reliably captions name things.
    """

    def __init__(
        self,
        relations: Relations,
        ratings: Mapping[str, float],
        threshold: float,
        min_images: int,
        min_support: int = 2,
        max_unsaid: float = 1.0,
        distractors: bool = False,
    ) -> None:
        """Prepare the relations; the arguments are those of `generators.triplets.source.Triplets`.

        Raises `WrongUse` when nothing can pass.
        """
        frame, funnel = judged(relations, ratings, min_support)
        mentions = Mentions(relations, frame["image"], pl.concat([frame[name] for name in LEMMAS]))
        self.relations, self.threshold, self.distractors = relations, threshold, distractors
        self.estimated = mentions.estimable
        self._guarded = not self.estimated and max_unsaid < 1
        worn = among(last("object_lemma"), "worn")
        frame = frame.with_columns(
            *(pl.col(name).replace_strict(mentions.nouns, return_dtype=pl.Int32) for name in LEMMAS),
            confirmed=pl.lit(True),
            reliable=~worn if self._guarded else pl.lit(True),
            placed=_says_where() & ~worn,
            photo="image",
        )
        if self.estimated:
            frame = frame.with_columns(confirmed=_confirmed(frame, mentions))
            if max_unsaid < 1:
                unsaid = mentions.unsaid(frame.select(subject="subject_lemma", object="object_lemma"))
                reliable = (pl.col("share") <= max_unsaid) & (pl.col("odds") <= RELIABLE)
                frame = frame.with_columns(reliable=unsaid.select(reliable).to_series())
        self.pool = pool = Pool(frame, min_images, funnel)
        photos = pool.relations.select("photo", number=pl.col("image").cast(pl.Int64) * 2**32).unique().lazy()
        said = mentions.named.lazy().join(photos, left_on="image", right_on="photo")
        keys = said.select(pl.col("number") + pl.col("noun")).collect(engine="streaming").to_series()
        del mentions  # with the most memory
        self._named_keys = np.append(keys.to_numpy(), np.iinfo(np.int64).max)  # a search ends before the last
        self._named_keys.sort()
        best = pool.relations.group_by("pair", maintain_order=True).agg(pl.max("rating"), pl.first("reliable"))
        can_be = pl.col("reliable")
        if distractors:
            self._of_object, self._places = pool.by_object(2 * threshold + EXACT)
            best, can_be = best.with_columns(self._places), can_be & (pl.col("len") > pl.col("len_own"))
        every = np.ones(len(frame))
        # A triplet passes when the ratings of reference and target, two words each, sum up to more than 4 * threshold.
        gain = best.select(pl.when(can_be).then("rating").otherwise(NEVER)).to_series()
        pool.weigh(gain, every, every < 1, WORDS * threshold)

    def propose(self, states: U64) -> pl.DataFrame:
        _, reference, target = self.pool.sample(states)
        said, asked = self.pool.relations[reference], self.pool.relations[target]
        total = said["rating"] + asked["rating"]
        passes = (total > WORDS * self.threshold + EXACT) & (said["subject_number"] == asked["subject_number"])
        passes &= asked["confirmed"] & ~self._named(said["image"], asked["object_lemma"])
        if self._guarded:
            passes &= said["placed"] | ~asked["placed"]
        drawn = pl.DataFrame({"reference": said["row"], "target": asked["row"], "concreteness": total / WORDS})
        if not self.distractors:
            return drawn.with_columns(passes=passes, distractor=pl.lit(None, pl.get_index_type()))
        start, count, own_start, own_count = self._places[asked["pair"]].to_numpy().T
        place = start + below(states, DISTRACTOR, count - own_count)
        place += np.where(place >= own_start, own_count, 0)  # the pair's own lie together
        distractor = self.pool.relations[self._of_object[place]]
        passes &= ~self._named(distractor["image"], asked["subject_lemma"])
        return drawn.with_columns(passes=passes, distractor=distractor["row"])

    def _named(self, photos: pl.Series, nouns: pl.Series) -> pl.Series:
        """Whether some caption of each photo names or implies a noun."""
        keys = photos.to_numpy().astype(np.int64) << 32 | nouns.to_numpy()
        return pl.Series(self._named_keys[np.searchsorted(self._named_keys, keys)] == keys)


def _confirmed(frame: pl.DataFrame, mentions: Mentions) -> pl.Series:
    """Whether two captions of a relation's photo name its subject, and two its object, or it has not several; a few
    photos may have captions of one fact each, which need not repeat each other."""
    twice = mentions.named.filter(pl.col("captions") > 1).select("image", "noun", named=True)
    confirmed = pl.repeat(True, frame.height, eager=True)
    for side in LEMMAS:
        nouns = frame.select("image", noun=side)
        confirmed &= nouns.join(twice, on=["image", "noun"], how="left", maintain_order="left")["named"].fill_null(
            False
        )
    return confirmed | ~frame["image"].is_in(mentions.several.implode())


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


def _says_where() -> pl.Expr:
    """Whether a predicate begins or ends with a preposition of a place, or is a phrase of one."""
    words, prepositions = low(VERB).str.splitn(" ", 2).struct, sorted(CLASSES["prepositions"])
    ends = words.field("field_0").is_in(prepositions) | words.field("field_1").is_in(prepositions).fill_null(False)
    return ends | low(VERB).is_in(sorted(PHRASES))


def steps(ratings: Mapping[str, float]) -> dict[str, pl.Expr]:
    """What is asked of each relation, by itself, as the funnel says after "relations"."""
    rated, said, verb = [*ratings], low("predicate"), pl.col("verb")
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
        "with both words rated": pl.all_horizontal(
            low(side).is_in(rated) | low(f"{side}_lemma").is_in(rated) for side in ("subject", "object")
        ),
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
        "of captions that neither comment nor tell of what is drawn": shows_a_photo(),
    }


def shows_a_photo() -> pl.Expr:
    """Whether a caption has no mark or word of those that comment, or tell of what is drawn."""
    words = "|".join(sorted({*CLASSES["remarks"], *forms_of(CLASSES["drawings"])}))
    pattern = rf"(?i){_MARKS}|(?:^|[^\p{{L}}\p{{N}}])(?:{words})(?:[^\p{{L}}\p{{N}}]|$)"
    return ~pl.col("caption").str.contains(pattern)


def judged(relations: Relations, ratings: Mapping[str, float], min_support: int) -> tuple[pl.DataFrame, dict[str, int]]:
    """The relations that pass, in the order of the stage, and what is left of the captions at each step.

    Columns: ``row``; ``image`` and ``text``, numbers of photo and caption; `LEMMAS`, `VERB`, ``subject_number``;
    ``subject`` and ``object``, lemmas in lower case; ``rating``, the sum of theirs; ``seen``, how many photos have
    relations of the subject with rated words.
    """
    asked, image = steps(ratings), pl.col("image")
    misread = ~pl.col(VERB).str.contains(" ", literal=True) & among(last("object_lemma"), "grounds")
    visible = first(VERB).is_in([word for word, mean in ratings.items() if mean >= VISIBLE])
    every = relations.index.select(
        "row",
        PLAIN,
        subject=low("subject_lemma").cast(pl.Categorical),
        object=low("object_lemma").cast(pl.Categorical),
        verb=first(VERB).cast(pl.Categorical),
        predicate=pl.col(VERB).cast(pl.Categorical),
        image=identity(PHOTO),
        # "running on beach", not "carrying pond"
        deed=~among(first(VERB), "prepositions", "unverbs", "owning") & visible & ~misread,
        **asked,
    ).collect(engine="streaming")
    pairs, verbs, conditions = (  # of words that so many photos have
        image.n_unique().over(words) >= min_support
        for words in (("subject", "object"), "verb", ("predicate", "object"))
    )
    many = f"{min_support} photos or more"
    asked[f"of pairs of words that {many} have, or that a sentence begins with"] = pl.col(PLAIN) | pairs
    said = (
        f"whose verb is in the captions of {many} and rated {VISIBLE:g} or more for concreteness, or whose verb and "
        f"object are together in those of {many}"
    )
    asked[said] = (pl.col("deed") & verbs) | conditions
    kept = every.with_columns(
        seen=image.filter(next(iter(asked))).n_unique().over("subject"),
        **{name: step for name, step in asked.items() if name not in every.columns},
    )
    funnel = {
        "captions": relations.captions,
        "photos, each of one name or more": every["image"].n_unique(),
        "relations": every.height,
    }
    for name in asked:
        kept = kept.filter(name)
        funnel[f"relations {name}"] = kept.height
    columns = ("subject", "object", *LEMMAS, VERB, "subject_number")
    rows = relations.rows(kept["row"], *columns, text=identity("caption"))
    rated = (
        pl.coalesce(low(name).replace_strict(ratings, default=None, return_dtype=pl.Float64) for name in (side, lemma))
        for side, lemma in zip(("subject", "object"), LEMMAS, strict=True)
    )
    rows = rows.with_columns(rating=pl.sum_horizontal(rated), subject=low("subject_lemma"), object=low("object_lemma"))
    return kept.select("row", "image", "seen").join(rows, on="row", maintain_order="left"), funnel
