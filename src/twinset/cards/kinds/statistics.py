"""What is counted of samples for their card: in the whole index, and in the JSON of samples that are looked at."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.kind import CardKind
from twinset.cards.plots import Counts
from twinset.cards.sheet import words_of
from twinset.contracts.kinds.kind import SampleKind
from twinset.generators.words_alone.guesses import gaps, guesses, same_bag
from twinset.shards.read import index_batches, index_columns, of_kind, read_spread
from twinset.shards.storage.store import Store

SAMPLED = 64  # samples whose images are looked at: each may cost a read of its whole tar
FREQUENT = 12
LONGEST = 200  # characters of a condition that is counted
WORD = r"[^\W_]+(?:['’-][^\W_]+)*"
_UNREAD = {"key", "identity", "tar", "split", "content", "sources", "licence", "credit", "source_url"}


def statistics(store: Store, subset: str, kind: CardKind, records: Sequence[Any]) -> dict[str, Any]:
    """What the template of a kind shows, by name: what every kind has, and its own numbers.

    group_sizes: groups by their number of samples; top_groups_share: share (0-1) of the samples that the largest tenth
    of the groups has. sampled: samples that were looked at, as `records_of`; image_sizes: these by (width, height).
    """
    rows = index_frame(store, subset, [name for name in index_columns(store, subset) if name not in _UNREAD])
    groups = repeats(rows["group"])
    return {
        "group_sizes": how_often(groups),
        "top_groups_share": share_of_top(groups, 10),
        "sampled": len(records),
        "image_sizes": how_often(tuple(kind.shown(record).size) for record in records),
        **kind.numbers(rows, records),
    }


def records_of(store: Store, subset: str, kind: SampleKind) -> list[Any]:
    """The JSON of samples that are looked at, evenly spread over a subset; none where they have no images."""
    return [sample.json for sample in of_kind(read_spread(store, subset, SAMPLED), [kind], "this")]


def index_frame(store: Store, subset: str, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of a subset's index."""
    batches = [pl.DataFrame(batch) for batch in index_batches(store, subset, columns)]
    return pl.concat(batches or [pl.DataFrame(schema=list(columns))]).cast({pl.Null: pl.String})  # of one without rows


def how_often(values: Iterable[Any]) -> dict[Any, int]:
    """Each value with how often it occurs, in order."""
    return dict(sorted(Counter(values).items()))


def repeats(values: pl.Series) -> pl.Series:
    """How often each different text occurs, the most frequent first; the empty one does not count."""
    return values.filter(values != "").value_counts(sort=True, name="times")["times"]


def share_of_top(times: pl.Series, part: int) -> float:
    """Share (0-1) of all that the most frequent ``part``-th has, at least one; times: as `repeats` gives them."""
    return float(times.head(-(-len(times) // part)).sum()) / float(times.sum()) if len(times) else 0.0


def joined(rows: pl.DataFrame, columns: Iterable[str]) -> pl.Series:
    """Columns one below the other."""
    return pl.concat([rows[name].alias("") for name in columns])


def word_counts(texts: pl.Series) -> Counts:
    """Texts by their number of words."""
    return how_often(texts.str.count_matches(WORD))


def told_blind(rows: pl.DataFrame, captions: Sequence[str], scores: Iterable[str] = ()) -> dict[str, Any]:
    """How often the first of two captions is guessed from lengths and scores, and pairs of the same words."""
    first, second = captions
    bags = (same_bag(*map(words_of, pair)) for pair in rows.select(first, second).iter_rows())
    return {"same_bag": sum(bags), "given_away": guesses(rows.select("group", **gaps(first, second, scores)))}


def condition_numbers(rows: pl.DataFrame) -> dict[str, Any]:
    """What is counted of conditions. top_conditions_share: share (0-1) that the most frequent hundredth has."""
    conditions = rows["condition"].str.slice(0, LONGEST)
    ranked = conditions.value_counts(name="times").sort("times", "condition", descending=[True, False])
    return {
        "condition_words": word_counts(rows["condition"]),
        "conditions": ranked.height,
        "frequent": dict(ranked.head(FREQUENT).iter_rows()),
        "top_conditions_share": share_of_top(ranked["times"], 100),
    }


def score_spreads(
    records: Iterable[Any], meanings: Mapping[str, str], unmeasured: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Least, middle and largest value of each score of samples, by name; what was not measured does not count.

    Args:
        meanings: what scores mean by name, without the 0 or 1 of the image that one is of.
        unmeasured: the number that stands for "not measured", by name.
    """
    scores = pl.DataFrame([record.scores for record in records], infer_schema_length=None)
    spreads = []
    for name in sorted(scores.columns) if meanings else ():
        values = scores[name].drop_nulls()
        values = values.filter(values != unmeasured[name]) if name in unmeasured else values
        spread = {"samples": len(values), "least": values.min(), "middle": values.median(), "most": values.max()}
        spreads.append({"name": name, "meaning": meanings.get(name) or meanings.get(name[:-1], ""), **spread})
    return spreads
