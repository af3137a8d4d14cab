"""The table of scores of a model on a benchmark: a row an example, written as a Parquet file."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation import examples
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Query, Statement
from twinset.evaluation.features.similarities import Asked, Gallery, Similarities, own_pictures, own_texts
from twinset.evaluation.metrics.measure import APART
from twinset.evaluation.score_files.opening import save_scores
from twinset.models.encoders.contract import Floats, NotApplicable
from twinset.shards.storage.whole_file import write_text

WINDOW = 2048  # images and entries of galleries that are prepared together
PAIRS = 1 << 16  # the same, where each query is paired with all of its gallery
#: Characters of a text. Models read fewer; tokenizers take time that grows with the square of a word's length.
LONGEST_TEXT = 10_000
TOO_LONG = f"text over {LONGEST_TEXT:,} characters"
#: Metrics of queries that need more than the best target.
OF_EVERY_TARGET = frozenset({"all-targets", "average-precision", "map"})
PEOPLES_ORDER = "ranking"  # the metric of galleries that people put in order
_LOG = logging.getLogger("twinset")
Lost = list[tuple[str | None, str, str]]  # examples that are left out: key, place and reason


def write_scores(
    benchmark: Benchmark,
    similarities: Similarities,
    path: Path,
    facts: dict[str, Any],
    on_progress: Callable[[int], None] = lambda done: None,
    level: int = logging.WARNING,
) -> int:
    """Score all examples of a benchmark.

    The file's metadata has, under ``twinset``, ``facts`` with ``data_digest``, ``left_out`` and ``unanswered`` by
    reason, what `FeatureStore.counted` gives, and ``cut_texts``, of which the model reads only the beginning. A run
    again, from the cache, writes the same bytes. Examples that are left out are listed beside it, in
    ``NAME.left_out.jsonl``, and questions without an answer in ``NAME.unanswered.jsonl``.

    Args:
        on_progress: called with the number of examples done.
        level: of what is logged about left out examples, cut texts and questions without an answer.

    Returns:
        The number of rows.

    Raises:
        WrongUse: nothing of the benchmark can be scored, the model answers nothing, or it mixes kinds of examples.
    """
    similarities.start_count()
    lost: Lost = []
    tables = list[pa.Table]()
    for some in _tables(benchmark, similarities, lost, facts.get("threshold")):
        if tables and not some.schema.equals(tables[0].schema):
            raise WrongUse(f"{benchmark.name}: mixes kinds of examples; read its parts with --only")
        tables.append(some)
        on_progress(sum(map(len, tables)) + len(lost))
    left_out = Counter(reason for *_, reason in lost)
    if not tables:
        reasons = _counts(left_out) or "it has none"
        raise WrongUse(f"{benchmark.name}: not one example can be scored ({reasons}); is --data the right folder?")
    table = pa.concat_tables(tables)
    silences = similarities.silences
    unanswered = Counter(silence.reason for silence in silences)
    if silences and len(silences) >= similarities.asked:
        raise WrongUse(f"{benchmark.name}: {similarities.name} answers nothing ({_counts(unanswered)}); ask it by hand")
    about = {**facts, "data_digest": benchmark.digest(), "left_out": left_out, **similarities.store.counted()}
    about |= {"metrics": [*benchmark.metrics]} if benchmark.metrics else {}
    about |= {APART: True} if benchmark.apart and len(table["subset"].unique()) > 1 else {}
    about |= {"unanswered": unanswered} if unanswered else {}
    about |= {"cut_texts": len(similarities.cut)} if similarities.cut else {}
    listing, silent = path.with_suffix(".left_out.jsonl"), path.with_suffix(".unanswered.jsonl")
    _write_lines(listing, [dict(zip(("key", "where", "reason"), one, strict=True)) for one in lost])
    _write_lines(silent, [silence._asdict() for silence in silences])
    save_scores(table, about, path)
    notes = {
        f"{len(lost)} examples left out ({_counts(left_out)}), listed in {listing}": lost,
        f"{len(similarities.cut)} texts are longer than {similarities.name} reads, and are cut": similarities.cut,
        f"{similarities.name} gives no score in {len(silences)} answers of {similarities.asked} "
        f"({_counts(unanswered)}), listed in {silent}": silences,
    }
    for note in (note for note, of in notes.items() if of):
        _LOG.log(level, "%s: %s", benchmark.name, note)
    return len(table)


def _tables(
    benchmark: Benchmark, similarities: Similarities, lost: Lost, threshold: float | None
) -> Iterator[pa.Table]:
    """Scores of some examples after the other. lost: gets those that cannot be scored."""
    every, ordered = bool(OF_EVERY_TARGET & {*benchmark.metrics}), PEOPLES_ORDER in benchmark.metrics
    schemas = {
        Matching: similarities.matching,
        Query: examples.QUERY_ORDERS if ordered else examples.QUERY_TARGETS if every else examples.QUERY_RANKS,
        Statement: examples.STATEMENT_MARGINS,
        Grounding: examples.GROUNDING_ERRORS,
    }
    for window in windows(benchmark, lambda *example: lost.append(example), similarities.by_pairs):
        unusable = similarities.prepare(window)
        rows = []
        for example in window:
            if (problem := unusable.get(example.key)) is not None:
                lost.append((example.key, problem.where, problem.reason))
            elif isinstance(example, Grounding) and len(example.frames) < 2:
                lost.append((example.key, example.key, "fewer than two frames"))
            elif isinstance(example, Query) and not example.targets - example.excluded:
                lost.append((example.key, example.key, "no target to rank"))
            else:
                rows.append((type(example), _row(example, similarities, every, threshold)))
        for kind in dict.fromkeys(kind for kind, _ in rows):
            yield pa.Table.from_pylist([row for of, row in rows if of is kind], schemas[kind])


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())


def _write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a JSON object a line; no rows, no file."""
    path.unlink(missing_ok=True)
    if rows:
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def windows(
    benchmark: Benchmark, leave_out: Callable[[str | None, str, str], None], by_pairs: bool
) -> Iterator[list[Asked]]:
    """The examples of a benchmark, some at a time.

    Args:
        leave_out: called with key (or None), place and reason of those that cannot be asked.
        by_pairs: whether a gallery costs memory for each of its queries, and not once.
    """
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
        if size >= (PAIRS if by_pairs else WINDOW):
            yield window
            window, size = [], 0
    if window:
        yield window


def _row(example: Asked, similarities: Similarities, every: bool, threshold: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(example, name) for name in ("key", "subset", "category", "group")}
    if isinstance(example, Matching):
        return row | similarities.of_matching(example)
    if isinstance(example, Query):
        scores = similarities.gallery(example)
        if example.order:
            places = len(scores) - np.searchsorted(np.sort(scores), scores, "right")
            row |= {"places": places.tolist(), "people": [*example.order]}
        return row | ranks(scores, example.targets, example.excluded, every)
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


def ranks(scores: Floats, targets: frozenset[int], excluded: frozenset[int], every: bool = False) -> dict[str, Any]:
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
    ranked = np.flatnonzero(wrong | target)
    order = np.lexsort((ranked, target[ranked], -scores[ranked]))  # by score; a tie counts against the target
    row: dict[str, Any] = {
        "higher": int((others > best).sum()),
        "tied": int((others == best).sum()),
        "entries": int(wrong.sum() + target.sum()),
        "targets": int(target.sum()),
        "tied_targets": int((scores[target] == best).sum()),
        "best_wrong": int(np.where(wrong, scores, -np.inf).argmax()) if wrong.any() else None,
        examples.TOP: ranked[order][: examples.FIRST].tolist(),
    }
    if every:
        left, right = (np.searchsorted(others, scores[target], side) for side in ("left", "right"))
        row |= {"above": (len(others) - right).tolist(), "level": (right - left).tolist()}
    return row


def grounding_errors(scores: Floats, example: Grounding) -> list[float]:
    """Seconds from the best-scoring gaps between frames to the boundary (EqBen, A.6); several where scores tie.

    Args:
        scores: of each frame with both captions, float32, shape (frames, 2).
    """
    # s_t = s(I_t, T1) + s(I_{t+1}, T2), for the gap between frames t and t + 1
    gaps = scores[:-1, 0] + scores[1:, 1]
    # A gap lies at its middle, (time_t + time_{t+1}) / 2: the paper does not say where.
    middles: NDArray[np.float64] = (example.times[:-1] + example.times[1:]) / 2
    errors: list[float] = np.abs(middles[gaps == gaps.max()] - example.boundary).tolist()
    return errors
