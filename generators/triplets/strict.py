"""The strict rules: those of GeneCIS's paper (sections 5.2 and 6.2), and no pairs that teach the wrong thing.

Relations are those that say what a photo shows, and were not misread; words are judged by closed classes
(``relation_words.yaml``). All four words of reference and target are rated, and their mean exceeds the threshold. Both
subjects are singular, or both plural. No caption of the reference's photo has the target's object in it, in whatever
sentence and under whatever name, so that it never satisfies the condition: object and photo differ always. Captions
leave much out: so no target has an object that is worn, nor a place where the reference's relation does not say one. No
caption of the distractor's photo has the target's subject in it: it would be as right as the target. The distractor's
own two words pass the threshold too, which keeps out pronouns: they may stand for the target's subject.
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
SIDES, LEMMAS, VERB = ("subject", "object"), ("subject_lemma", "object_lemma"), "predicate_lemma"
#: Marks of quotations, exclamations, questions, headings and pauses.
_MARKS = r"[\"“”«»`?!#@:;…]|''|\.\.\."
WORDS = 4
DISTRACTOR = 3  # slot of random numbers
EXACT = 1e-9  # sums that differ by less are equal: ratings have two decimals


class StrictRules(Miner):
    """Draws as the published procedure's first ones, of which every one that breaks a rule is drawn again."""

    def __init__(
        self,
        relations: Relations,
        ratings: Mapping[str, float],
        threshold: float,
        min_images: int,
        min_support: int = 2,
        distractors: bool = False,
    ) -> None:
        """Prepare the relations; the arguments are those of `generators.triplets.source.Triplets`.

        Raises `WrongUse` when nothing can pass.
        """
        frame, funnel = judged(relations, ratings, min_support)
        self._mentions = Mentions(relations, frame["image"], pl.concat([frame[side] for side in SIDES]))
        nouns = (pl.col(side).replace_strict(self._mentions.nouns, return_dtype=pl.Int32) for side in SIDES)
        frame = frame.with_columns(noun.name.suffix("_noun") for noun in nouns)
        self.relations, self.threshold, self.distractors = relations, threshold, distractors
        self.pool = pool = Pool(frame, min_images, funnel)
        best = pool.relations.group_by("pair", maintain_order=True).agg(pl.max("rating"), pl.first("worn"))
        can_be = ~pl.col("worn")
        if distractors:
            self._of_object, self._places = pool.by_object(2 * threshold + EXACT)
            best, can_be = best.with_columns(self._places), can_be & (pl.col("len") > pl.col("len_own"))
        every = np.ones(len(frame))
        # A triplet passes when the ratings of reference and target, two words each, sum up to more than 4 * threshold.
        gain = best.select(pl.when(can_be).then("rating").otherwise(NEVER)).to_series()
        pool.weigh(gain, every, every < 1, WORDS * threshold)

    def propose(self, states: U64) -> pl.DataFrame:
        _, reference, target = self.pool.sample(states)
        given, asked = self.pool.relations[reference], self.pool.relations[target]
        total = given["rating"] + asked["rating"]
        passes = (total > WORDS * self.threshold + EXACT) & (given["plural"] == asked["plural"])
        passes &= ~self._mentions.of(given["image"], asked["object_noun"]) & (given["placed"] | ~asked["placed"])
        drawn = pl.DataFrame({"reference": given["row"], "target": asked["row"], "concreteness": total / WORDS})
        if not self.distractors:
            return drawn.with_columns(passes=passes, distractor=pl.lit(None, pl.get_index_type()))
        start, count, own_start, own_count = self._places[asked["pair"]].to_numpy().T
        place = start + below(states, DISTRACTOR, count - own_count)
        place += np.where(place >= own_start, own_count, 0)  # the pair's own lie together
        distractor = self.pool.relations[self._of_object[place]]
        passes &= ~self._mentions.of(distractor["image"], asked["subject_noun"])
        return drawn.with_columns(passes=passes, distractor=distractor["row"])


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


def steps(ratings: Mapping[str, float]) -> dict[str, pl.Expr]:
    """What is asked of each relation, by itself, as the funnel says after "relations"."""
    rated, text, verb = [*ratings], low("predicate"), pl.col("verb")
    nouns = pl.all_horizontal(pl.col("subject_pos", "object_pos").is_in(["NOUN", "PROPN"]))
    no_thing = [
        among(low(name), "measures", "places", "parts", "clothes")
        | among(last(name), "pictures", "times", "regions", "roles")
        for name in LEMMAS
    ]
    past = (
        ~text.str.contains(" ", literal=True) & ~text.str.contains("(ing|s)$") & (pl.col("predicate") != pl.col(VERB))
    )
    spared = among(verb, "placing") | ((text == "with") & (verb == "pose"))
    broken = text.str.contains(" ", literal=True) & among(first("predicate"), "unverbs") & ~text.is_in(sorted(PHRASES))
    filled = among(first(VERB), "owning") & among(first("object_lemma"), "grounds")
    return {
        "with both words rated": pl.all_horizontal(
            low(side).is_in(rated) | low(f"{side}_lemma").is_in(rated) for side in ("subject", "object")
        ),
        "that are of two nouns": nouns,
        "whose caption begins with the subject, and denies nothing": (pl.col("subject_start") == 0) & ~pl.col(NEGATED),
        "without measures, places, times, pictures, names, kin, body parts and ordinary clothes": ~pl.any_horizontal(
            pl.col(STAND_IN), *no_thing
        ),
        "of two things, whose predicate says where or what and is a deed that a photo shows": ~pl.any_horizontal(
            pl.col("subject_lemma") == pl.col("object_lemma"),
            among(first(VERB), "states", "nowhere", "unseen"),
            among(first("predicate"), "nowhere"),
            among(first(VERB), "directions") & (verb != ""),
            text == "having",
            past,
        ),
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

    Columns: ``row``; ``image`` and ``text``, numbers of photo and caption; ``subject`` and ``object``, lemmas in lower
    case; ``plural``, of the subject; ``rating``, the sum of both words'; ``worn``, of the object; ``placed``, whether
    the predicate says a place.
    """
    asked = steps(ratings)
    misread = ~pl.col(VERB).str.contains(" ", literal=True) & among(last("object_lemma"), "grounds")
    visible = first(VERB).is_in([word for word, mean in ratings.items() if mean >= VISIBLE])
    worn = among(last("object_lemma"), "worn")
    lemmas = {"subject": low("subject_lemma"), "object": low("object_lemma"), "predicate": pl.col(VERB)}
    words = {**lemmas, "verb": first(VERB), "subject_word": low("subject"), "object_word": low("object")}
    every = relations.index.select(
        "row",
        PLAIN,
        **{name: word.cast(pl.Categorical) for name, word in words.items()},
        image=identity(PHOTO),
        text=identity("caption"),
        plural=pl.col("subject_number") == "plural",
        worn=worn,
        placed=_says_where() & ~worn,
        # "running on beach", not "carrying pond"
        deed=~among(first(VERB), "prepositions", "unverbs", "owning") & visible & ~misread,
        **asked,
    ).collect(engine="streaming")
    funnel = {
        "captions": relations.captions,
        "photos, each of one name or more": every["image"].n_unique(),
        "relations": every.height,
    }
    rules = [*asked]
    for number, rule in enumerate(rules, 1):
        funnel[f"relations {rule}"] = every.select(pl.all_horizontal(rules[:number]).sum()).item()
    kept = every.filter(pl.all_horizontal(rules)).drop(rules)
    supported = {"of_pair": SIDES, "of_verb": ("verb",), "of_condition": ("predicate", "object")}
    for name, shared in supported.items():
        alike = every.select(*shared, "image").join(kept, on=shared, how="semi")
        support = alike.group_by(shared).agg((pl.col("image").n_unique() >= min_support).alias(name))
        kept = kept.join(support, on=shared, how="left", maintain_order="left")
    many = f"{min_support} photos or more"
    kept = kept.filter(pl.col(PLAIN) | pl.col("of_pair"))
    funnel[f"relations of pairs of words that {many} have, or that a sentence begins with"] = kept.height
    kept = kept.filter(pl.col("deed") & pl.col("of_verb") | pl.col("of_condition"))
    shown = f"in the captions of {many} and rated {VISIBLE:g} or more for concreteness"
    funnel[f"relations whose verb is {shown}, or with the object in those of {many}"] = kept.height
    texts = pl.col(*words).exclude("verb", "predicate").cast(pl.String)
    ratings_of = kept.select(texts.replace_strict(ratings, default=None, return_dtype=pl.Float64))
    rated = ratings_of.select(pl.sum_horizontal(pl.coalesce(f"{side}_word", side) for side in SIDES)).to_series()
    return kept.select("row", "image", "text", *SIDES, "plural", "worn", "placed", rating=rated), funnel


def _says_where() -> pl.Expr:
    """Whether a predicate begins or ends with a preposition of a place, or is a phrase of one."""
    words, prepositions = low(VERB).str.splitn(" ", 2).struct, sorted(CLASSES["prepositions"])
    ends = words.field("field_0").is_in(prepositions) | words.field("field_1").is_in(prepositions).fill_null(False)
    return ends | low(VERB).is_in(sorted(PHRASES))
