"""How triplets of the published rules fare under the strict ones, in shares of them."""

from __future__ import annotations

import numpy as np

from generators.triplets.graphs import Codes, Relations
from generators.triplets.mining import TripletTable
from generators.triplets.pool import Bools, Floats, distinct, found_in, rate
from generators.triplets.ratings import Ratings
from manifests.receipt import Model

LISTED = 20


class Overwritten(Model):
    """A rated word that the published rules rate as another, whose plural inflect takes it for ("dog", of "dogs")."""

    word: str
    rated: float
    published: float
    relations: int


class Differences(Model):
    """Shares (0 to 1) of ``triplets`` that the published rules mined.

    The first six: target and reference share object or image, the reference's image shows the target's subject and
    object, the distractor is of the reference's or the target's image, or shows the target's subject and object (words
    as lemmas). unrated: a word of the six has no rating. by_overwriting: kept for ratings that a plural overwrote.
    by_distractor: kept for the distractor's words. any: at least one of all these. strict_dropped: share of strict
    triplets whose four words miss the threshold by the published ratings. overwritten: words so rated, most frequent
    first.
    """

    triplets: int
    same_object: float
    same_image: float
    reference_shows_target: float
    distractor_of_reference_image: float
    distractor_of_target_image: float
    distractor_shows_target: float
    unrated: float
    by_overwriting: float
    by_distractor: float
    any: float
    strict_dropped: float | None
    overwritten: list[Overwritten]


def differences(
    relations: Relations, ratings: Ratings, threshold: float, published: TripletTable, strict: TripletTable | None
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
    kept_ratings = _without_overwriting(relations, ratings)
    four = score(as_published.subject_rating, as_published.object_rating, reference, target)
    six = score(kept_ratings[relations.subject], kept_ratings[relations.object], *all_three)
    found = {
        "same_object": lemmas.object[reference] == lemmas.object[target],
        "same_image": image[reference] == image[target],
        "reference_shows_target": shows(image[reference], pair[target]),
        "distractor_of_reference_image": image[distractor] == image[reference],
        "distractor_of_target_image": image[distractor] == image[target],
        "distractor_shows_target": shows(image[distractor], pair[target]),
        "unrated": np.isnan(score(lemmas.subject_rating, lemmas.object_rating, *all_three)),
        "by_overwriting": six <= threshold,
        "by_distractor": four <= threshold,
    }
    strict_dropped = None
    if strict is not None and len(strict):
        mean = score(as_published.subject_rating, as_published.object_rating, strict.reference, strict.target)
        strict_dropped = float((mean <= threshold).mean())
    return Differences(
        triplets=len(published),
        **{name: _share(mask) for name, mask in found.items()},
        any=_share(np.any(list(found.values()), axis=0)),
        strict_dropped=strict_dropped,
        overwritten=_overwritten(relations, ratings),
    )


def _share(mask: Bools) -> float:
    return round(float(mask.mean()), 6)


def _without_overwriting(relations: Relations, ratings: Ratings) -> Floats:
    """The published rating of each word, but its own where it has one."""
    published = ratings.published_of(relations.words)
    own = [ratings.rated.get(word) for word in relations.words]
    return np.array([theirs if mine is None else mine for mine, theirs in zip(own, published.tolist(), strict=True)])


def _overwritten(relations: Relations, ratings: Ratings) -> list[Overwritten]:
    published, own = ratings.published_of(relations.words), _without_overwriting(relations, ratings)
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
