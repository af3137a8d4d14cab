"""What was mined of what, and by how much the published rules differ on the same captions."""

import numpy as np

from twinset.generators.triplets.captions import SEVERAL
from twinset.generators.triplets.draws import Bools, Codes, Draws, Floats, distinct, found_in
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import Miner, TripletTable
from twinset.generators.triplets.pool import Pool, funnel, rate
from twinset.generators.triplets.ratings import Ratings, Rules
from twinset.generators.triplets.rules import StrictRules
from twinset.generators.triplets.source import Triplets
from twinset.manifests.errors import WrongUse
from twinset.manifests.receipt import Model

SAMPLE = 20_000  # triplets looked at: shares are true to within half a per cent
FREQUENT = 20
BINS = 20
LISTED = 20  # overwritten words
#: The step of the funnel that nothing can be said of.
UNKNOWN = (
    f"pairs of words whose objects references may show unsaid (too few images have the {SEVERAL} captions that tell)"
)


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
    as lemmas); None of distractors that are not stored.
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


class MiningReport(Model):
    """Numbers for the card and the flow's artifacts.

    funnels: of the rules under which something can be mined, how much is left of the captions at each step.
    refused: share of `SAMPLE` draws that each of the strict rules for pairs refuses, of these rules alone.
    mined and left_out: of the first `SAMPLE` numbers, of which the rest tells: subjects, objects, predicates: the most
    frequent of target relations, with how often; histogram: counts of mean concreteness between neighbours in edges.
    differences: None when nothing can be mined under the published rules.
    """

    rules: Rules
    threshold: float
    min_images: int
    min_support: int
    max_unsaid: float
    funnels: dict[str, dict[str, int]]
    refused: dict[str, float]
    mined: int
    left_out: int
    subjects: dict[str, int]
    objects: dict[str, int]
    predicates: dict[str, int]
    edges: list[float]
    histogram: list[int]
    differences: Differences | None

    def to_bytes(self) -> bytes:
        """JSON, as `Model.to_bytes` writes it but for the order of keys, which is that of steps and of frequency."""
        return self.model_dump_json().encode() + b"\n"


def make_report(relations: Relations, ratings: Ratings, source: Triplets, draws: Draws) -> MiningReport:
    """Mine a sample under both rules and compare; a second, or ten for millions of captions, and the memory of
    another pool.

    ratings: loaded for the published rules. Raises `WrongUse` when nothing can be mined under the source's.
    """
    funnels: dict[str, dict[str, int]] = {}
    mined: dict[str, TripletTable] = {}
    refused: dict[str, float] = {}
    for which in ("published", "strict"):
        try:
            pool = Pool(relations, ratings, which, source.min_images, source.min_support)
            miner = Miner(pool, source.threshold, source.distractors, source.max_unsaid)
        except WrongUse:
            if which == source.rules:
                raise
            continue
        within: dict[str, int] = {}
        if isinstance(miner.rules, StrictRules):
            eligible = pool.eligible[pool.subject]
            within["pairs of words of eligible subjects"] = int(eligible.sum())
            said = f"pairs of words whose objects at most {100 * source.max_unsaid:g}% of the references show unsaid"
            within[said if miner.rules.estimated else UNKNOWN] = int((miner.rules.reliable & eligible).sum())
        within["references within reach of the threshold"] = len(miner.rules.references.relation)
        funnels[which], mined[which] = {**funnel(miner.pool), **within}, miner.mine(draws, 0, SAMPLE)
        if which == source.rules and isinstance(miner.rules, StrictRules):
            first = np.arange(SAMPLE)
            counts = miner.rules.refused(draws.states(first, np.zeros_like(first)))
            refused = {rule: count / SAMPLE for rule, count in counts.items()}
        del miner, pool  # which go before others are made
    table = mined[source.rules]
    histogram, edges = np.histogram(table.concreteness, bins=np.linspace(source.threshold, 5.0, BINS + 1))
    return MiningReport(
        rules=source.rules,
        threshold=source.threshold,
        min_images=source.min_images,
        min_support=source.min_support,
        max_unsaid=source.max_unsaid,
        funnels=funnels,
        refused=refused,
        mined=len(table),
        left_out=table.left_out,
        subjects=_frequent(relations.subject[table.target], relations.words),
        objects=_frequent(relations.object[table.target], relations.words),
        predicates=_frequent(relations.predicate[table.target], relations.words),
        edges=[round(edge, 4) for edge in edges.tolist()],
        histogram=histogram.tolist(),
        differences=_differences(relations, ratings, source, mined["published"], mined.get("strict"))
        if mined.get("published")
        else None,
    )


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


def _frequent(codes: Codes, words: list[str]) -> dict[str, int]:
    """The words that occur most, most frequent first; of equally frequent ones those first in the alphabet."""
    found, counts = np.unique(codes, return_counts=True)
    chosen = np.lexsort((found, -counts))[:FREQUENT]
    return {words[found[at]]: int(counts[at]) for at in chosen}
