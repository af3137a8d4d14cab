"""What was mined of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.generators.triplets.captions import SEVERAL
from twinset.generators.triplets.draws import Codes, Draws
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import IN_A_ROW, Miner, Uses
from twinset.generators.triplets.pool import Pool, funnel
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.rules import StrictRules

if TYPE_CHECKING:
    from twinset.generators.triplets.source import Triplets

SAMPLE = 20_000  # triplets looked at: shares are true to within half a per cent
FREQUENT = 20
#: The step of the funnel that nothing can be said of.
UNKNOWN = (
    f"pairs of words whose objects are not worn (too few images have the {SEVERAL} captions that tell what is unsaid)"
)


def make_report(relations: Relations, ratings: Ratings, source: Triplets, draws: Draws) -> dict[str, Any]:
    """What the card tells of mining: a sample is mined and counted in a second, ten for millions of captions.

    Args:
        ratings: loaded for the source's rules.

    Returns:
        ``funnel``: how much is left of the captions at each step, in order. ``refused``: share of `SAMPLE` draws that
        each of the strict rules for pairs refuses, of these rules alone, and share of what is mined that the limit of
        uses refuses. ``mined`` and ``left_out``: of the first `SAMPLE` numbers, of which ``subjects``, ``objects`` and
        ``predicates`` are the most frequent of target relations, with how often.

    Raises:
        WrongUse: nothing can be mined under the rules.
    """
    pool = Pool(relations, ratings, source.rules, source.min_images, source.min_support, source.balance)
    miner = Miner(pool, source.threshold, source.distractors, source.max_unsaid)
    steps, refused = funnel(pool), dict[str, float]()
    if isinstance(miner.rules, StrictRules):
        eligible = pool.eligible[pool.subject]
        steps["pairs of words of eligible subjects"] = int(eligible.sum())
        said = f"pairs of words whose objects at most {100 * source.max_unsaid:g}% of the references show unsaid"
        steps[said if miner.rules.estimated else UNKNOWN] = int((miner.rules.reliable & eligible).sum())
        first = np.arange(SAMPLE)
        counts = miner.rules.refused(draws.states(first, np.zeros_like(first)))
        refused = {rule: count / SAMPLE for rule, count in counts.items()}
    steps["references within reach of the threshold"] = len(miner.rules.references.relation)
    table = miner.mine(draws, 0, SAMPLE)
    if isinstance(miner.rules, StrictRules) and source.max_uses is not None:
        table = Uses(relations, source.max_uses).admitted(table)
        rule = f"one photo as reference or as target at most {source.max_uses} times in {IN_A_ROW:,}"
        refused[rule] = round(len(table.used) / SAMPLE, 6)
    parts = {"subjects": relations.subject, "objects": relations.object, "predicates": relations.predicate}
    words = {name: _frequent(codes[table.target], relations.words) for name, codes in parts.items()}
    return {"funnel": steps, "refused": refused, "mined": len(table), "left_out": table.left_out, **words}


def _frequent(codes: Codes, words: list[str]) -> dict[str, int]:
    """The words that occur most, most frequent first; of equally frequent ones those first in the alphabet."""
    found, counts = np.unique(codes, return_counts=True)
    chosen = np.lexsort((found, -counts))[:FREQUENT]
    return {words[found[at]]: int(counts[at]) for at in chosen}
