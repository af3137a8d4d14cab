"""What was mined of what."""

from typing import Any

from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.relations import SAID, Relations
from twinset.generators.triplets.strict import StrictRules

SAMPLE = 20_000  # triplets looked at: shares are true to within half a per cent
FREQUENT = 20


def make_report(relations: Relations, miner: Miner, draws: Draws) -> dict[str, Any]:
    """What the card tells of mining.

    Returns:
        ``funnel``: how much is left of the captions at each step, in order. ``estimated``: whether what captions leave
        out could be estimated. ``mined`` and ``left_out``: of the first `SAMPLE` numbers, of which ``subjects``,
        ``objects`` and ``predicates`` are the most frequent of target relations, with how often.
    """
    rules, table = miner.rules, miner.mine(draws, 0, SAMPLE)
    targets = relations.texts(rules.pool.row[table.target])
    words = {f"{name}s": targets[name].value_counts().sort("count", name, descending=[True, False]) for name in SAID}
    return {
        "funnel": {**rules.pool.funnel, "references within reach of the threshold": len(rules.references.relation)},
        "estimated": isinstance(rules, StrictRules) and rules.estimated,
        "mined": len(table),
        "left_out": table.left_out,
        **{name: dict(counts.head(FREQUENT).iter_rows()) for name, counts in words.items()},
    }
