"""The table of scores of a model on a benchmark: a row an example, written as a Parquet file."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
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
    """Score all examples of a benchmark; returns their number. A run again, from the cache, writes the same bytes.

    The file's metadata has, under ``twinset``, ``facts`` with ``data_digest``, ``left_out`` and ``unanswered`` by
    reason, what `FeatureStore.counted` gives, and ``cut_texts``, of which the model reads only the beginning. Examples
    that are left out are listed beside it, in ``NAME.left_out.jsonl``.

    Args:
        on_progress: called with the number of examples done.
        level: of what is logged about left out examples, cut texts and questions without an answer.

    Raises:
        WrongUse: nothing of the benchmark can be scored, the model answers nothing, or it mixes kinds of examples.
    """
    similarities.start_count()
    lost: Lost = []
    tables = list[pa.Table]()
    for scored in _tables(benchmark, similarities, lost, facts.get("threshold")):
        if tables and not scored.schema.equals(tables[0].schema):
            raise WrongUse(f"{benchmark.name}: mixes kinds of examples; read its parts with --only")
        tables.append(scored)
        on_progress(sum(map(len, tables)) + len(lost))
    left_out, unanswered, cut = Counter(reason for *_, reason in lost), similarities.unanswered, len(similarities.cut)
    reasons, silences = (", ".join(f"{n:,} {why}" for why, n in whys.most_common()) for whys in (left_out, unanswered))
    if not tables:
        why = reasons or "it has none"
        raise WrongUse(f"{benchmark.name}: not one example can be scored ({why}); is --data the right folder?")
    if unanswered and unanswered.total() >= similarities.asked:
        raise WrongUse(f"{benchmark.name}: {similarities.name} answers nothing ({silences}); ask it by hand")
    table, listing = pa.concat_tables(tables), path.with_suffix(".left_out.jsonl")
    about = {**facts, "data_digest": benchmark.digest(), "left_out": left_out, **similarities.store.counted()}
    apart = benchmark.apart and len(table["subset"].unique()) > 1
    more = {"metrics": [*benchmark.metrics], APART: apart, "unanswered": unanswered, "cut_texts": cut}
    listing.unlink(missing_ok=True)
    if lost:
        rows = (dict(zip(("key", "where", "reason"), example, strict=True)) for example in lost)
        write_text(listing, "".join(json.dumps(row) + "\n" for row in rows))
        _LOG.log(level, "%s: %d examples left out (%s), listed in %s", benchmark.name, len(lost), reasons, listing)
    if cut:
        _LOG.log(level, "%s: %d texts are longer than %s reads, and are cut", benchmark.name, cut, similarities.name)
    if unanswered:
        total = f"{unanswered.total()} answers of {similarities.asked} ({silences})"
        _LOG.log(level, "%s: %s gives no score in %s", benchmark.name, similarities.name, total)
    save_scores(table, about | {name: fact for name, fact in more.items() if fact}, path)
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
                rows.append((type(example), _row(example, similarities, threshold)))
        for kind in dict.fromkeys(kind for kind, _ in rows):
            yield pa.Table.from_pylist([row for of, row in rows if of is kind], schemas[kind])


def windows(
    benchmark: Benchmark, leave_out: Callable[[str | None, str, str], None], by_pairs: bool
) -> Iterator[list[Asked]]:
    """The examples of a benchmark, some at a time. leave_out: called with key (or None), place and reason of those that
    cannot be asked. by_pairs: whether a gallery costs memory for each of its queries, and not once.
    """
    window = list[Asked]()
    gallery: Gallery | None = None
    size, long_entry = 0, False
    for example in benchmark.examples():
        if isinstance(example, LeftOut):
            leave_out(None, example.where, example.reason)
            continue
        entries = example.gallery if isinstance(example, Query) else ()
        fresh = entries is not gallery
        if fresh:
            gallery = entries
            long_entry = any(isinstance(entry, str) and len(entry) > LONGEST_TEXT for entry in entries)
        if long_entry or any(len(text) > LONGEST_TEXT for text in own_texts(example)):
            leave_out(example.key, example.key, TOO_LONG)
            continue
        size += 1 + len(own_pictures(example)) + (len(entries) if fresh or by_pairs else 0)
        window.append(example)
        if size >= (PAIRS if by_pairs else WINDOW):
            yield window
            window, size = [], 0
    if window:
        yield window


def _row(example: Asked, similarities: Similarities, threshold: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(example, name) for name in ("key", "subset", "category", "group")}
    if isinstance(example, Matching):
        return row | similarities.of_matching(example)
    if isinstance(example, Query):
        scores = similarities.gallery(example)
        row["tags"] = ";".join(example.tags)
        if example.order:
            places = len(scores) - np.searchsorted(np.sort(scores), scores, "right")
            row |= {"places": places.tolist(), "people": [*example.order]}
        return row | ranks(scores, example.targets, example.excluded)
    if isinstance(example, Statement):
        if threshold is None:
            raise NotApplicable(
                f"{similarities.name}: has no score above which a text is true of an image, which example "
                f"{example.key} asks; name a model with P(yes) or a matching head, such as blip-itm:FOLDER"
            )
        score, threshold = (
            float(similarities.matrix([example.image], [example.text])[0, 0]),
            float(np.float32(threshold)),
        )
        correct = score > threshold if example.true else score < threshold  # without an answer it is the threshold
        return row | {"margin": abs(score - threshold) * (1 if correct else -1), "correct": correct}
    return row | {"errors": grounding_errors(similarities.matrix(example.frames, example.captions), example)}


def ranks(scores: Floats, targets: frozenset[int], excluded: frozenset[int]) -> dict[str, Any]:
    """The columns of `evaluation.examples.QUERY_TARGETS` for the float32 scores of a gallery, shape (entries,).

    ``entries`` and ``targets`` count those that are not excluded; targets are entries too.
    """
    target = np.zeros(len(scores), np.bool_)
    target[sorted(targets - excluded)] = True
    wrong = ~target
    wrong[sorted(excluded)] = False
    best = scores[target].max()  # the best of several targets: finding one is enough
    wrong_scores = np.sort(scores[wrong])
    lower, no_lower = (np.searchsorted(wrong_scores, scores[target], side) for side in ("left", "right"))
    ranked = np.flatnonzero(wrong | target)
    order = np.lexsort((ranked, target[ranked], -scores[ranked]))  # by score; a tie counts against the target
    return {
        "higher": int((wrong_scores > best).sum()),
        "tied": int((wrong_scores == best).sum()),
        "entries": int(wrong.sum() + target.sum()),
        "targets": int(target.sum()),
        "tied_targets": int((scores[target] == best).sum()),
        "best_wrong": int(np.where(wrong, scores, -np.inf).argmax()) if wrong.any() else None,
        examples.TOP: ranked[order][: examples.FIRST].tolist(),
        "above": (len(wrong_scores) - no_lower).tolist(),
        "level": (no_lower - lower).tolist(),
    }


def grounding_errors(scores: Floats, example: Grounding) -> list[float]:
    """Seconds from the best-scoring gaps between frames to the boundary (EqBen, A.6); several where scores tie. scores:
    of each frame with both captions, float32, shape (frames, 2).
    """
    # s_t = s(I_t, T1) + s(I_{t+1}, T2), for the gap between frames t and t + 1
    gaps = scores[:-1, 0] + scores[1:, 1]
    # A gap lies at its middle, (time_t + time_{t+1}) / 2: the paper does not say where.
    middles: NDArray[np.float64] = (example.times[:-1] + example.times[1:]) / 2
    return list(np.abs(middles[gaps == gaps.max()] - example.boundary).tolist())
