"""By how much GeneCIS's published rules of mining differ from the strict ones, on captions of a built subset, as JSON:

python -m studies.mining_rules OUT SUBSET CONCRETENESS
"""

import sys
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import Bools, Codes, Draws, Floats, distinct, found_in
from twinset.generators.triplets.graphs import Relations, load_relations
from twinset.generators.triplets.mining import Miner, TripletTable
from twinset.generators.triplets.pool import Pool, rate
from twinset.generators.triplets.ratings import Ratings, Rules, load_ratings
from twinset.generators.triplets.source import Triplets
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import read_settings
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store

SAMPLE = 20_000  # triplets looked at: shares are true to within half a per cent
LISTED = 20  # overwritten words


class Overwritten(BaseModel):
    """A rated word that the published rules rate as another, whose plural inflect takes it for ("dog", of "dogs")."""

    word: str
    rated: float
    published: float
    relations: int


class Differences(BaseModel):
    """Shares (0 to 1) of ``triplets`` that the published rules mined.

    The first six: target and reference share object or image, the reference's image shows the target's subject and
    object, the distractor is of the reference's or the target's image, or shows the target's subject and object (words
    as lemmas); None of rules without distractors.
    unrated: a word of the six has no rating. by_overwriting: kept for ratings that a plural overwrote.
    by_distractor: kept for the distractor's words. any: at least one of all these. strict_dropped: share of strict
    triplets whose four words miss the threshold by the published ratings. overwritten: words so rated, most frequent
    first.
    """

    triplets: int
    same_object: float
    same_image: float
    reference_shows_target: float
    distractor_of_reference_image: float | None = None
    distractor_of_target_image: float | None = None
    distractor_shows_target: float | None = None
    unrated: float
    by_overwriting: float
    by_distractor: float
    any: float
    strict_dropped: float | None
    overwritten: list[Overwritten]


def compare(relations: Relations, ratings: Ratings, source: Triplets, draws: Draws) -> Differences | None:
    """Mine a sample under both rules and compare; None when nothing can be mined under the published ones.

    ratings: loaded for the published rules.
    """
    published = _mined("published", relations, ratings, source, draws)
    if not published:
        return None
    return _differences(relations, ratings, source, published, _mined("strict", relations, ratings, source, draws))


def _mined(rules: Rules, relations: Relations, ratings: Ratings, source: Triplets, draws: Draws) -> TripletTable | None:
    try:
        pool = Pool(relations, ratings, rules, source.min_images, source.min_support, source.balance)
        miner = Miner(pool, source.threshold, source.distractors, source.max_unsaid)
    except WrongUse:
        return None
    return miner.mine(draws, 0, SAMPLE)


def _differences(
    relations: Relations, ratings: Ratings, source: Triplets, published: TripletTable, strict: TripletTable | None
) -> Differences:
    """Judge each published triplet by each strict rule; ratings were loaded for the published rules."""
    lemmas, as_published = rate(relations, ratings, "strict"), rate(relations, ratings, "published")
    image = relations.image
    _, pair = np.unique(lemmas.subject.astype(np.int64) << 32 | lemmas.object, return_inverse=True)
    shown = distinct(pair.astype(np.int64) << 32 | image)

    def shows(images: Codes, pairs: Codes) -> Bools:
        return found_in(shown, pairs.astype(np.int64) << 32 | images)

    def score(subject: Floats, object_: Floats, *rows: Codes) -> Floats:
        return np.asarray(np.mean([side[row] for row in rows for side in (subject, object_)], axis=0))

    reference, target, distractor = published.reference, published.target, published.distractor
    all_three = (reference, target, distractor)
    theirs = ratings.published_of(relations.words)  # of each word; its own where it has one
    own = np.array([ratings.rated.get(word, rating) for word, rating in zip(relations.words, theirs, strict=True)])
    four = score(as_published.subject_rating, as_published.object_rating, reference, target)
    six = score(own[relations.subject], own[relations.object], *all_three)
    of_distractors = {
        "distractor_of_reference_image": image[distractor] == image[reference],
        "distractor_of_target_image": image[distractor] == image[target],
        "distractor_shows_target": shows(image[distractor], pair[target]),
    }
    found = {
        "same_object": lemmas.object[reference] == lemmas.object[target],
        "same_image": image[reference] == image[target],
        "reference_shows_target": shows(image[reference], pair[target]),
        **(of_distractors if source.distractors else {}),
        "unrated": np.isnan(score(lemmas.subject_rating, lemmas.object_rating, *all_three)),
        "by_overwriting": six <= source.threshold,
        "by_distractor": four <= source.threshold,
    }
    found["any"] = np.any(list(found.values()), axis=0)
    strict_dropped = None
    if strict is not None and len(strict):
        mean = score(as_published.subject_rating, as_published.object_rating, strict.reference, strict.target)
        strict_dropped = float((mean <= source.threshold).mean())
    return Differences(
        triplets=len(published),
        **{name: round(float(mask.mean()), 6) for name, mask in found.items()},
        strict_dropped=strict_dropped,
        overwritten=_overwritten(relations, own, theirs),
    )


def _overwritten(relations: Relations, own: Floats, published: Floats) -> list[Overwritten]:
    """own, published: ratings of all words."""
    number = np.bincount(relations.subject, minlength=len(own)) + np.bincount(relations.object, minlength=len(own))
    changed = np.flatnonzero((published != own) & (number > 0))
    chosen = changed[np.lexsort((changed, -number[changed]))][:LISTED].tolist()
    return [
        Overwritten(
            word=relations.words[code],
            rated=float(own[code]),
            published=float(published[code]),
            relations=int(number[code]),
        )
        for code in chosen
    ]


def main() -> int:
    """Compare on the captions of a finished subset; returns the exit code."""
    out, subset, concreteness = sys.argv[1:]
    store = Store(out)
    recipe, found = read_settings(store, subset)
    source = found.source
    if not isinstance(source, Triplets):
        raise WrongUse(f"{out}/{subset}: not mined triplets; name a subset of genecis-triplets")
    graphs = next(home for home in stages_in(store) if home.rpartition("/")[2] == source.graphs)
    relations = load_relations(FinishedStage(store, graphs))
    shares = compare(relations, load_ratings(Path(concreteness), "published"), source, Draws(recipe.seed, subset))
    print(shares.model_dump_json(indent=2) if shares else "the published rules find no triplet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
