"""The published selection, transcribed: one row after the other, in lists and dicts, with pandas' quantiles.

What `generators.selection` must agree with: which rows reach the refinement, and how many of each cell it keeps.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GRID, COARSE = 50, 10


def refine(pairs: Sequence[tuple[float, float]], seed: int = 0) -> list[int]:
    """Adversarial refinement of (first gap, second gap); unlike the released code gaps of 1 are in the last bin."""
    rng, cells, kept = random.Random(seed), defaultdict[tuple[str, int, int], list[int]](list), []
    for number, (first, second) in enumerate(pairs):
        if first == 0 and second == 0:
            kept.append(number)
        elif first == 0 or second == 0:
            axis, gap = ("second", second) if first == 0 else ("first", first)
            cells[axis, _signed(gap, COARSE), 0].append(number)
        else:
            cells["both", _signed(first, GRID), _signed(second, GRID)].append(number)
    for where, members in cells.items():
        name, first_bin, second_bin = where
        opposite = cells.get((name, -first_bin, -second_bin), [])
        kept += rng.sample(members, min(len(members), len(opposite)))
    return kept


def _signed(gap: float, bins: int) -> int:
    size = min(int(abs(gap) * bins) + 1, bins)
    return size if gap > 0 else -size


def before_refinement(rows: Iterable[Mapping[str, Any]], kinds: Sequence[str], quantile: float = 0.645) -> list[str]:
    """Ids of the rows that reach the refinement, kind by kind."""
    import pandas as pd

    table = pd.DataFrame(list(rows))
    table["kind"] = table["type"] + "_" + table["subtype"]
    parts = []
    for kind in kinds:
        part = table[(table["kind"] == kind) & (table["similarity"] < 0.999)]
        vera, cola = part["vera_negative"].quantile(quantile), part["cola_negative"].quantile(quantile)
        parts.append(part[(part["vera_negative"] >= vera) & (part["cola_negative"] >= cola)])
    found, prompts = [], set[str]()
    for one in pd.concat(parts).to_dict("records"):
        text = one["negative_caption"]
        if text[-1] != "." or len(text) <= 10:
            continue
        prompt = text.replace(".", "")
        if prompt not in prompts:
            prompts.add(prompt)
            found.append(one["caption_id"])
    return found
