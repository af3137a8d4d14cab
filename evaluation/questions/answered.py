"""Scores that came back: of the pairs that were asked, or a row an example as one's own code wrote them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL.Image import Image
from pydantic import TypeAdapter, ValidationError

from twinset.evaluation.examples import Benchmark
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import FeatureStore, pair_name
from twinset.evaluation.questions.asked import ABOUT, IMAGES, PAIR_COLUMNS, PAIRS, TEXTS, Place
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import WrittenScores
from twinset.evaluation.score_files.opening import ScoreFile, open_scores
from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import Floats, Matcher
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.spool import temporary_folder

_PLACES = TypeAdapter(list[Place])
_ROWS = 65_536
_NONE = "it is not what `twinset eval questions` wrote; write the questions again"


def score_answers(
    file: Path, questions: Path, model: str, out: Path, moved: Mapping[str, str], threshold: float | None = None
) -> tuple[list[WrittenScores], list[Benchmark]]:
    """Write score files, as `evaluation.run.run` does, of scores that other code gave to questions.

    Args:
        file: Parquet or CSV with the columns image, text and score, a row for each of the questions' pairs.
        questions: folder that `evaluation.questions.asked.write_questions` wrote.
        model: name in files and reports.
        out: folder of the run.
        moved: folders of benchmarks that lie elsewhere now, by name.
        threshold: score above which the model says that an image and a text match.

    Returns:
        The files, and the benchmarks that they are about.

    Raises:
        WrongUse: a pair has no score or two, or was not asked; or a benchmark is not what was asked.
    """
    try:
        places = _PLACES.validate_json((questions / ABOUT).read_bytes())
    except (OSError, ValidationError) as error:
        raise WrongUse(f"{questions / ABOUT}: {_NONE}") from error
    if unknown := next((name for name in moved if name not in [one.name for one in places]), None):
        raise WrongUse(f"--benchmark {unknown}: {questions} asks {', '.join(one.name for one in places)}")
    benchmarks = [one for place in places for one in place.opened(moved.get(place.name))]
    scorer = _Elsewhere(model, sha256_of_file(file)[0], threshold)
    facts = {"model": model, "model_digest": scorer.digest(), **({} if threshold is None else {"threshold": threshold})}
    written = list[WrittenScores]()
    with temporary_folder() as scratch:
        store = FeatureStore(scratch, "answers")
        similarities = ByPairs(scorer, store, 1)
        try:
            for names, scores in _scored_pairs(open_scores(file), questions):
                store.keep(names, scores[:, None], 0.0)
            for benchmark in benchmarks:
                path = scores_path(out, benchmark.name, model)
                about = {"benchmark": benchmark.name, "title": benchmark.title}
                rows = write_scores(benchmark, similarities, path, facts | about)
                written.append(WrittenScores(benchmark.name, model, path, rows, 0))
        finally:
            similarities.close()
            store.close()
    return written, benchmarks


class _Elsewhere(Matcher):
    """A model whose scores are all known already."""

    def __init__(self, name: str, digest: str, threshold: float | None) -> None:
        self.name, self.threshold, self._digest = name, threshold, digest

    def digest(self) -> str:
        return self._digest

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        raise WrongUse(f"{texts[0][:60]!r} was not asked with an image that the benchmark has now; {_NONE}")


def _scored_pairs(file: ScoreFile, questions: Path) -> Iterator[tuple[list[bytes], Floats]]:
    """Names of pairs, some at a time, and their scores; raises `WrongUse` unless each pair is there once."""
    images, texts = (_digests(questions / name) for name in (IMAGES, TEXTS))
    asked = np.concatenate([[np.int64(0)][:0], *(_code(some) for some in _columns(questions / PAIRS))])
    seen = np.zeros(len(asked), np.bool_)
    for batch in file.batches(PAIR_COLUMNS.names):
        image, text = batch.counts("image"), batch.counts("text")
        code = image << 32 | text
        place = np.minimum(np.searchsorted(asked, code), len(asked) - 1)
        if (strange := asked[place] != code).any():
            raise batch.wrong("columns image, text", strange, f"a pair that {questions} does not ask; remove the row")
        first = np.zeros(len(code), np.bool_)
        first[np.unique(place, return_index=True)[1]] = True
        if (twice := ~first | seen[place]).any():
            raise batch.wrong("columns image, text", twice, "a pair that an earlier row has; keep one of them")
        seen[place] = True
        scores = batch.numbers("score").astype(np.float32)
        yield [pair_name(b"i" + images[i], b"t" + texts[t]) for i, t in zip(image, text, strict=True)], scores
    if not seen.all():
        missing = int(asked[seen.argmin()])
        raise WrongUse(
            f"{file.where}: {int((~seen).sum()):,} of {len(asked):,} pairs have no score, the first of them image "
            f"{missing >> 32}, text {missing & 0xFFFFFFFF}; score every row of {questions / PAIRS}"
        )


def _code(pairs: pa.RecordBatch) -> NDArray[np.int64]:
    image, text = (np.asarray(pairs.column(name), np.int64) for name in ("image", "text"))
    return np.asarray(image << 32 | text)


def _columns(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches(path, ["image", "text"], _ROWS)
    except (OSError, pa.ArrowException, WrongUse) as error:
        raise WrongUse(f"{path}: {_NONE}") from error


def _digests(path: Path) -> list[bytes]:
    """The sha256 of each image, or text, in order of their numbers."""
    try:
        found = pq.read_table(path, columns=["sha256"]).column("sha256").to_pylist()
        return [bytes.fromhex(one) for one in found]
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise WrongUse(f"{path}: {_NONE}") from error
