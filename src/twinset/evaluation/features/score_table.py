"""The table of scores of a model on a benchmark: a row an example, streamed into a Parquet file."""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import (
    FIRST,
    GROUNDING_ERRORS,
    QUERY_ORDERS,
    QUERY_RANKS,
    QUERY_TARGETS,
    STATEMENT_MARGINS,
    TOP,
    Benchmark,
    Grounding,
    LeftOut,
    Matching,
    Query,
    Statement,
)
from twinset.evaluation.features.similarities import Asked, Gallery, Similarities, own_pictures, own_texts
from twinset.evaluation.metrics.galleries import SETS
from twinset.evaluation.metrics.measure import APART
from twinset.models.encoders.contract import NotApplicable
from twinset.shards.storage.whole_file import whole_file

OPPOSITES = ({"left", "right"}, {"on", "under"}, {"front", "behind"})
SUBSETS = ("a", "b")  # where four images show the same two objects
_KEY = b"twinset"
Row = Mapping[str, Any]


def add_sets(path: Path) -> None:
    """Write a table of ranks again with the columns `SETS`: null of rows whose pair or set is not whole."""
    table = pq.read_table(path)
    found = columns_of(table.select(["subset", "group", "category", "higher", "tied"]).to_pylist())
    for name in SETS:
        table = table.append_column(name, pa.array([one.get(name) for one in found], pa.float32()))
    about = json.loads(table.schema.metadata[_KEY])
    with whole_file(path) as temporary:
        writer = pq.ParquetWriter(temporary, table.schema.remove_metadata(), store_schema=False)
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True)})
        writer.close()


def columns_of(rows: Sequence[Row]) -> list[dict[str, float]]:
    """Of each row `SETS`, as far as its pair and its set are whole."""
    members: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(rows):
        if row["subset"] in SUBSETS:
            members[row["subset"], row["group"]][row["category"]] = place
    found: list[dict[str, float]] = [{} for _ in rows]
    for one in members.values():
        pairs = [[one[name] for name in names] for names in OPPOSITES if names <= one.keys()]
        sets = [[place for pair in pairs for place in pair]] if len(pairs) == 2 else []
        for what, some in (("pair", pairs), ("set", sets)):
            for places in some:
                right, chance = 1.0, 1.0
                for place in places:
                    higher, tied = rows[place]["higher"], rows[place]["tied"]
                    right *= higher + tied == 0
                    chance *= (higher == 0) / (tied + 1)  # the one right caption among equal ones
                for place in places:
                    found[place] |= {f"{what}_right": right, f"{what}_chance": chance}
    return found


WINDOW = 2048  # images and entries of galleries that are prepared together
PAIRS = 1 << 16  # the same, where each query is paired with all of its gallery
#: Characters of a text. Models read fewer; tokenizers take time that grows with the square of a word's length.
LONGEST_TEXT = 10_000
TOO_LONG = f"text over {LONGEST_TEXT:,} characters"
NAMED = 5  # examples left out that are named on the terminal; all are in a file
SCHEMAS = {Query: QUERY_RANKS, Statement: STATEMENT_MARGINS, Grounding: GROUNDING_ERRORS}
#: Metrics of queries that need more than the best target.
OF_EVERY_TARGET = frozenset({"all-targets", "average-precision", "map"})
PEOPLES_ORDER = "ranking"  # the metric of galleries that people put in order
SETS_TOGETHER = "sets"  # the metric of rows that are right together
_LOG = logging.getLogger("twinset")


def write_scores(
    benchmark: Benchmark,
    similarities: Similarities,
    path: Path,
    facts: dict[str, Any],
    on_progress: Callable[[int], None] = lambda done: None,
    level: int = logging.WARNING,
) -> int:
    """Score all examples of a benchmark.

    The file's metadata has, under ``twinset``, ``facts`` with ``data_digest``, ``left_out``, ``seconds`` and how many
    different ``images``, ``texts`` or ``pairs`` of them the benchmark needs; ``cut_texts``, where there are any, counts
    texts of which the model reads only the beginning. Seconds are those of the network for all that the benchmark
    needs, in whatever run it was encoded: so a run again, from the cache, writes the same bytes. Examples that are left
    out are listed beside it, in ``NAME.left_out.jsonl``, and questions without an answer, counted by reason under
    ``unanswered``, in ``NAME.unanswered.jsonl``.

    Args:
        on_progress: called with the number of examples done.
        level: of what is logged about examples that are left out and texts that are cut.

    Returns:
        The number of rows.

    Raises:
        WrongUse: nothing of the benchmark can be scored, the model answers nothing, or it mixes kinds of examples.
    """
    listing = path.with_suffix(".left_out.jsonl")
    silent = path.with_suffix(".unanswered.jsonl")
    left_out, rows, writer, subsets = Counter[str](), 0, None, set[str]()
    schemas: dict[type, pa.Schema] = {**SCHEMAS, Matching: similarities.matching}
    if every := bool(OF_EVERY_TARGET & {*benchmark.metrics}):
        schemas[Query] = QUERY_TARGETS
    if PEOPLES_ORDER in benchmark.metrics:
        schemas[Query] = QUERY_ORDERS
    if benchmark.metrics:
        facts = {**facts, "metrics": [*benchmark.metrics]}
    similarities.start_count()
    with whole_file(path) as temporary, whole_file(listing) as listed, whole_file(silent) as told_nothing:
        try:
            with listed.open("w", encoding="utf-8") as lost, told_nothing.open("w", encoding="utf-8") as silences:

                def leave_out(key: str | None, where: str, reason: str) -> None:
                    if left_out.total() < NAMED:
                        of = "" if key is None else f" (example {key})"
                        _LOG.log(level, "%s: %s%s: left out, %s", benchmark.name, where, of, reason)
                    left_out[reason] += 1
                    lost.write(json.dumps({"key": key, "where": where, "reason": reason}, ensure_ascii=True) + "\n")

                for window in windows(benchmark, leave_out, similarities.by_pairs):
                    kind = type(window[0])
                    if writer is None:
                        # Not Arrow's own copy of the schema: it would hide the metadata, known only at the end.
                        writer = pq.ParquetWriter(temporary, schemas[kind], store_schema=False)
                    if any(not writer.schema.equals(schemas[type(one)]) for one in window):
                        raise WrongUse(f"{benchmark.name}: mixes kinds of examples; read its parts with --only")
                    unusable = similarities.prepare(window)
                    for one in similarities.silences:
                        if similarities.silent.total() <= NAMED:
                            _LOG.warning("%s: example %s, %s: no answer, %s", benchmark.name, *one)
                        silences.write(json.dumps(one._asdict(), ensure_ascii=True) + "\n")
                    scored = []
                    for example in window:
                        if (problem := unusable.get(example.key)) is not None:
                            leave_out(example.key, problem.where, problem.reason)
                        elif (reason := _cannot_be_asked(example)) is not None:
                            leave_out(example.key, example.key, reason)
                        else:
                            scored.append(_row(example, similarities, every, facts.get("threshold")))
                    if scored:
                        writer.write_table(pa.Table.from_pylist(scored, schemas[kind]))
                    rows += len(scored)
                    subsets.update(row["subset"] for row in scored)
                    on_progress(rows + left_out.total())
            if writer is None or not rows:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common()) or "it has none"
                raise WrongUse(
                    f"{benchmark.name}: not one example can be scored ({reasons}); is --data the right folder?"
                )
            if (without := similarities.silent).total():
                counts = ", ".join(f"{count:,} {reason}" for reason, count in without.most_common())
                _LOG.warning(
                    "%s: %s gives %d answers of %d no score (%s), listed in %s",
                    benchmark.name,
                    similarities.name,
                    without.total(),
                    similarities.asked,
                    counts,
                    silent,
                )
                if without.total() >= similarities.asked:
                    raise WrongUse(f"{benchmark.name}: {similarities.name} answers nothing ({counts}); ask it by hand")
            if left_out.total() > NAMED:
                _LOG.log(level, "%s: %d examples left out, listed in %s", benchmark.name, left_out.total(), listing)
            told = {**facts, "data_digest": benchmark.digest(), "left_out": dict(sorted(left_out.items()))}
            told |= {APART: True} if benchmark.apart and len(subsets) > 1 else {}
            counted = similarities.counted()
            if cut := counted.get("cut_texts"):
                what = "%s: %d texts are longer than %s reads, and are cut"
                _LOG.log(level, what, benchmark.name, cut, similarities.name)
            told |= counted | {"seconds": round(similarities.store.seconds(), 3)}
            writer.add_key_value_metadata({"twinset": json.dumps(told, sort_keys=True)})
            writer.close()
            for empty, beside in ((not left_out, listed), (not without.total(), told_nothing)):
                if empty:
                    beside.unlink()
        finally:
            if writer is not None:
                writer.close()
    for empty, beside in ((not left_out, listing), (not without.total(), silent)):
        if empty:
            beside.unlink(missing_ok=True)
    if SETS_TOGETHER in benchmark.metrics:
        add_sets(path)
    return rows


def windows(
    benchmark: Benchmark, leave_out: Callable[[str | None, str, str], None], by_pairs: bool
) -> Iterator[list[Asked]]:
    """The examples of a benchmark, some at a time.

    Args:
        leave_out: called with key (or None), place and reason of those that cannot be asked.
        by_pairs: whether a gallery costs memory for each of its queries, and not once.
    """
    most = PAIRS if by_pairs else WINDOW
    window: list[Asked] = []
    last: Gallery | None = None
    size, long_entry = 0, False
    for example in benchmark.examples():
        if isinstance(example, LeftOut):
            leave_out(None, example.where, example.reason)
            continue
        fresh = isinstance(example, Query) and example.gallery is not last
        if isinstance(example, Query) and fresh:
            last = example.gallery
            long_entry = any(isinstance(entry, str) and len(entry) > LONGEST_TEXT for entry in last)
        if (isinstance(example, Query) and long_entry) or any(len(text) > LONGEST_TEXT for text in own_texts(example)):
            leave_out(example.key, example.key, TOO_LONG)
            continue
        size += 1 + len(own_pictures(example)) + (len(last or ()) if fresh or by_pairs else 0)
        window.append(example)
        if size >= most:
            yield window
            window, size = [], 0
    if window:
        yield window


def _cannot_be_asked(example: Asked) -> str | None:
    if isinstance(example, Grounding) and len(example.frames) < 2:
        return "fewer than two frames"
    if isinstance(example, Query) and not (example.targets - example.excluded):
        return "no target to rank"
    return None


def _row(example: Asked, similarities: Similarities, every: bool, threshold: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": example.key,
        "subset": example.subset,
        "category": example.category,
        "group": example.group,
    }
    if isinstance(example, Matching):
        return row | similarities.of_matching(example)
    if isinstance(example, Query):
        more: dict[str, Any] = {"tags": ";".join(example.tags)} if every else {}
        scores = similarities.gallery(example)
        if example.order:
            before = len(scores) - np.searchsorted(np.sort(scores), scores, "right")
            more |= {"places": before.tolist(), "people": list(example.order)}
        return row | more | ranks(scores, example.targets, example.excluded, every)
    if isinstance(example, Statement):
        if threshold is None:
            raise NotApplicable(
                f"{similarities.name}: has no score above which a text is true of an image, which example "
                f"{example.key} asks; name a model with P(yes) or a matching head, such as blip-itm:FOLDER"
            )
        score = float(similarities.matrix([example.image], [example.text])[0, 0])
        correct = score > threshold if example.true else score < threshold  # without an answer it is the threshold
        return row | {"margin": abs(score - threshold) * (1 if correct else -1), "correct": correct}
    return row | {"errors": grounding_errors(similarities.matrix(example.frames, example.captions), example)}


def ranks(
    scores: np.ndarray[Any, Any], targets: frozenset[int], excluded: frozenset[int], every: bool = False
) -> dict[str, Any]:
    """The columns of `evaluation.examples.QUERY_RANKS` for the float32 scores of a gallery, shape (entries,).

    ``entries`` and ``targets`` count those that are not excluded; targets are entries too. every: the columns of
    `evaluation.examples.QUERY_TARGETS` too.
    """
    target = np.zeros(len(scores), np.bool_)
    target[sorted(targets - excluded)] = True
    wrong = ~target
    wrong[sorted(excluded)] = False
    best = scores[target].max()  # the best of several targets: finding one is enough
    others = np.sort(scores[wrong]) if every else scores[wrong]
    found: dict[str, Any] = {
        "higher": int((others > best).sum()),
        "tied": int((others == best).sum()),
        "entries": int(wrong.sum() + target.sum()),
        "targets": int(target.sum()),
        "tied_targets": int((scores[target] == best).sum()),
        "best_wrong": int(np.where(wrong, scores, -np.inf).argmax()) if wrong.any() else None,
        TOP: _first(scores, wrong, target),
    }
    if every:
        left, right = (np.searchsorted(others, scores[target], side) for side in ("left", "right"))
        found |= {"above": (len(others) - right).tolist(), "level": (right - left).tolist()}
    return found


def _first(scores: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> list[int]:
    ranked = np.flatnonzero(wrong | target)
    if len(ranked) > FIRST:
        ranked = ranked[scores[ranked] >= np.partition(scores[ranked], -FIRST)[-FIRST]]
    order = np.lexsort((ranked, target[ranked], -scores[ranked]))  # by score; a tie counts against the target
    return [int(place) for place in ranked[order][:FIRST]]


def grounding_errors(scores: np.ndarray[Any, Any], example: Grounding) -> list[float]:
    """Seconds from the best-scoring gaps between frames to the boundary (EqBen, A.6); several where scores tie.

    Args:
        scores: of each frame with both captions, float32, shape (frames, 2).
    """
    # s_t = s(I_t, T1) + s(I_{t+1}, T2), for the gap between frames t and t + 1
    gaps = scores[:-1, 0] + scores[1:, 1]
    # A gap lies at its middle, (time_t + time_{t+1}) / 2: the paper does not say where.
    middles = (example.times[:-1] + example.times[1:]) / 2
    errors: list[float] = np.abs(middles[gaps == gaps.max()] - example.boundary).tolist()
    return errors
