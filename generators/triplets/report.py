"""What was mined of what, and by how much the published rules differ on the same captions."""

from __future__ import annotations

import numpy as np

from generators.triplets.differences import Differences, differences
from generators.triplets.draws import Draws
from generators.triplets.graphs import Codes, Relations
from generators.triplets.mining import Miner, TripletTable
from generators.triplets.pool import funnel, make_pool, rate
from generators.triplets.ratings import Ratings, Rules
from manifests.errors import WrongUse
from manifests.receipt import Model

SAMPLE = 20_000  # triplets looked at: shares are true to within half a per cent
FREQUENT = 20
BINS = 20


class MiningReport(Model):
    """Numbers for the card and the flow's artifacts.

    funnels: of the rules under which something can be mined, how much is left of the captions at each step.
    mined and left_out: of the first `SAMPLE` numbers, of which the rest tells: subjects, objects, predicates: the most
    frequent of target relations, with how often; histogram: counts of mean concreteness between neighbours in edges.
    differences: None when nothing can be mined under the published rules.
    """

    rules: Rules
    threshold: float
    min_images: int
    funnels: dict[str, dict[str, int]]
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


def make_report(
    relations: Relations,
    ratings: Ratings,
    rules: Rules,
    min_images: int,
    threshold: float,
    draws: Draws,
    distractors: bool,
) -> MiningReport:
    """Mine a sample under both rules and compare; a second, or ten for millions of captions, and the memory of
    another pool.

    ratings: loaded for the published rules. Raises `WrongUse` when nothing can be mined under ``rules``.
    """
    funnels: dict[str, dict[str, int]] = {}
    mined: dict[str, TripletTable] = {}
    for which in ("published", "strict"):
        try:
            funnels[which], mined[which] = _sample(relations, ratings, which, min_images, threshold, draws, distractors)
        except WrongUse:
            if which == rules:
                raise
    table = mined[rules]
    counts, edges = np.histogram(table.concreteness, bins=np.linspace(threshold, 5.0, BINS + 1))
    return MiningReport(
        rules=rules,
        threshold=threshold,
        min_images=min_images,
        funnels=funnels,
        mined=len(table),
        left_out=table.left_out,
        subjects=_frequent(relations.subject[table.target], relations.words),
        objects=_frequent(relations.object[table.target], relations.words),
        predicates=_frequent(relations.predicate[table.target], relations.words),
        edges=[round(edge, 4) for edge in edges.tolist()],
        histogram=counts.tolist(),
        differences=differences(relations, ratings, threshold, mined["published"], mined.get("strict"))
        if mined.get("published")
        else None,
    )


def _sample(
    relations: Relations,
    ratings: Ratings,
    rules: Rules,
    min_images: int,
    threshold: float,
    draws: Draws,
    distractors: bool,
) -> tuple[dict[str, int], TripletTable]:
    pool = make_pool(relations, rate(relations, ratings, rules), rules, min_images)
    miner = Miner(pool, threshold, distractors)
    steps = {**funnel(pool), "references within reach of the threshold": len(miner.rules.references.relation)}
    return steps, miner.mine(draws, 0, SAMPLE)


def _frequent(codes: Codes, words: list[str]) -> dict[str, int]:
    """The words that occur most, most frequent first; of equally frequent ones those first in the alphabet."""
    found, counts = np.unique(codes, return_counts=True)
    chosen = np.lexsort((found, -counts))[:FREQUENT]
    return {words[found[at]]: int(counts[at]) for at in chosen}
