"""Scores that came back of the pairs that were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.built_dataset import open_benchmarks
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import FeatureStore, pair_name
from twinset.evaluation.questions.asked import ABOUT, IMAGES, PAIRS, TEXTS
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import WrittenScores, refuse_shared_files
from twinset.evaluation.score_files.opening import open_scores, wide_enough
from twinset.models.encoders.contract import Floats, Matcher
from twinset.shards.storage.spool import temporary_folder

if TYPE_CHECKING:
    from PIL.Image import Image

_PLACES = TypeAdapter(list[tuple[str, str, list[str]]])
_PAIR = ["image", "text"]


def score_answers(
    file: Path, questions: Path, model: str, out: Path, moved: Mapping[str, str], threshold: float | None = None
) -> tuple[list[WrittenScores], Sequence[Benchmark]]:
    """Write score files, as `evaluation.run.run` does, of scores that other code gave to questions.

    Args:
        file: Parquet or CSV with the columns image, text and score, a row for each of the questions' pairs.
        questions: folder that `write_questions` wrote. moved: folders of benchmarks that lie elsewhere now, by name.
        threshold: score above which the model says that an image and a text match.

    Raises:
        WrongUse: a pair has no score or two, or was not asked; or a benchmark asks something else now.
    """
    try:
        places = _PLACES.validate_json((questions / ABOUT).read_bytes())
    except (OSError, ValidationError) as error:
        raise WrongUse(f"{questions / ABOUT}: not what `twinset eval questions` wrote; write them again") from error
    names = [name for name, _, _ in places]
    for unknown in sorted({*moved} - {*names}):
        raise WrongUse(f"--benchmark {unknown}: {questions} asks {', '.join(names)}")
    opened = (open_benchmarks(name, moved.get(name, folder), subsets) for name, folder, subsets in places)
    benchmarks = [benchmark for parts in opened for benchmark in parts]
    refuse_shared_files(benchmarks, [model], out)
    scorer, written = _Elsewhere(model, sha256_of_file(file)[0], threshold), list[WrittenScores]()
    facts = {"model": model, "model_digest": scorer.digest(), **({} if threshold is None else {"threshold": threshold})}
    with temporary_folder() as folder:
        store = _Scores(folder, "scores")
        pairs = ByPairs(scorer, store, 1)
        pairs.matching = wide_enough(pairs.matching, _keep_scores(store, file, questions).to_numpy())
        for benchmark in benchmarks:
            path = scores_path(out, benchmark.name, model)
            about = {"benchmark": benchmark.name, "title": benchmark.title}
            rows = write_scores(benchmark, pairs, path, facts | about)
            written.append(WrittenScores(benchmark.name, model, path, rows, 0))
    return written, benchmarks


class _Scores(FeatureStore):
    """Scores in float64, in memory alone."""

    def flush(self) -> None:
        pass


class _Elsewhere(Matcher):
    """A model whose scores are all known already."""

    def __init__(self, name: str, digest: str, threshold: float | None) -> None:
        self.name, self.threshold, self._digest = name, threshold, digest

    def digest(self) -> str:
        return self._digest

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        raise WrongUse(f"{texts[0][:60]!r} was not asked of this image: a benchmark is not as it was; ask it again")


def _keep_scores(store: FeatureStore, file: Path, questions: Path) -> pl.Series:
    """Keep the scores of all pairs, and return them; raises `WrongUse` where one has none or two, or was not asked."""
    opened = open_scores(file)
    opened.refuse_repeats(_PAIR, "keep one of them")
    batch = opened.read([*_PAIR, "score"])
    scored = pl.DataFrame({**{name: batch.counts(name) for name in _PAIR}, "score": batch.numbers("score")})
    asked = pl.read_parquet(questions / PAIRS, columns=_PAIR).cast(pl.Int64)
    for image, text, _ in scored.join(asked, _PAIR, "anti").head(1).iter_rows():
        raise WrongUse(f"{file}: image {image}, text {text}: {questions} does not ask this pair; remove the row")
    missing = asked.join(scored, _PAIR, "anti")
    for image, text in missing.head(1).iter_rows():
        what = f"{len(missing):,} of {len(asked):,} pairs have no score, first image {image}, text {text}"
        raise WrongUse(f"{file}: {what}; score every row of {questions / PAIRS}")
    images, texts = (
        [b"?" + bytes.fromhex(digest) for digest in pl.read_parquet(questions / name)["sha256"]]
        for name in (IMAGES, TEXTS)
    )
    names = [pair_name(images[image], texts[text]) for image, text, _ in scored.iter_rows()]
    store.keep(names, scored["score"].to_numpy()[:, None], 0)
    return scored["score"]
