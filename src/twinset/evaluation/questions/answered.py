"""Scores that came back: of the pairs that were asked, or a row an example as one's own code wrote them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, Picture, Query
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import Asked, Left, Similarities, entries
from twinset.evaluation.features.store import FeatureStore, text_name
from twinset.evaluation.questions.asked import ABOUT, IMAGES, PAIR_COLUMNS, PAIRS, TEXTS, Place
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import WrittenScores
from twinset.evaluation.score_files.opening import ScoreFile, open_scores
from twinset.models.encoders.contract import Floats, Scorer
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.spool import temporary_folder

_PLACES = TypeAdapter(list[Place])
_ROWS = 65_536
_COLUMNS = "columns image, text"
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
    table, written = _Table(open_scores(file), questions), list[WrittenScores]()
    with ExitStack() as stack:
        store = FeatureStore(stack.enter_context(temporary_folder()), "nothing")
        similarities = stack.enter_context(closing(_ByTable(scorer, store, table)))
        for benchmark in benchmarks:
            path = scores_path(out, benchmark.name, model)
            about = {"benchmark": benchmark.name, "title": benchmark.title}
            rows = write_scores(benchmark, similarities, path, facts | about)
            written.append(WrittenScores(benchmark.name, model, path, rows, 0))
    return written, benchmarks


class _Elsewhere(Scorer):
    """A model whose scores are all known already."""

    def __init__(self, name: str, digest: str, threshold: float | None) -> None:
        self.name, self.threshold, self._digest = name, threshold, digest

    def digest(self) -> str:
        return self._digest


class _Table:
    """The scores of all pairs that were asked: 12 bytes a pair.

    Raises:
        WrongUse: a pair has no score or two, or was not asked.
    """

    def __init__(self, file: ScoreFile, questions: Path) -> None:
        self.images, self.texts = (_numbers(questions / name, kind) for name, kind in ((IMAGES, b"i"), (TEXTS, b"t")))
        self._asked = np.concatenate([np.empty(0, np.int64), *map(_code, _columns(questions / PAIRS))])
        self._scores = np.full(len(self._asked), np.nan, np.float32)
        for batch in file.batches(PAIR_COLUMNS.names):
            code = batch.counts("image") << 32 | batch.counts("text")
            place = self._place(code)
            if (strange := self._asked[place] != code).any():
                raise batch.wrong(_COLUMNS, strange, f"a pair that {questions} does not ask; remove the row")
            first = np.zeros(len(code), np.bool_)
            first[np.unique(place, return_index=True)[1]] = True
            if (twice := ~first | ~np.isnan(self._scores[place])).any():
                raise batch.wrong(_COLUMNS, twice, "a pair that an earlier row has; keep one of them")
            self._scores[place] = batch.numbers("score")
        if (missing := np.isnan(self._scores)).any():
            code = self._asked[missing.argmax()]
            raise WrongUse(
                f"{file.where}: {int(missing.sum()):,} of {len(missing):,} pairs have no score, first image "
                f"{code >> 32}, text {code & 0xFFFFFFFF}; score every row of {questions / PAIRS}"
            )

    def scores(self, images: Sequence[bytes], texts: Sequence[str]) -> Floats:
        """Of each image, by its name in a store, with each text, shape (images, texts)."""
        rows = np.array([self.images[name] for name in images], np.int64)
        columns = np.array([self.texts[text_name(text)] for text in texts], np.int64)
        return np.asarray(self._scores[self._place(rows[:, None] << 32 | columns[None])])

    def _place(self, code: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.minimum(np.searchsorted(self._asked, code), len(self._asked) - 1)


class _ByTable(Similarities):
    """Scores from a table. The benchmark is that of the questions: their digests agree."""

    def __init__(self, scorer: Scorer, store: FeatureStore, table: _Table) -> None:
        super().__init__(scorer, store, 1)
        self.table = table

    def prepare(self, examples: Sequence[Asked]) -> Left:
        strange = (
            (name, entry)
            for entry in entries(examples)
            if isinstance(entry, Picture)
            and isinstance(name := self.pictures.name_or_problem(entry), bytes)
            and name not in self.table.images
        )
        for _, picture, _ in self.pictures.decoded(strange, lambda image: image):
            raise WrongUse(f"{picture.where}: is not as it was when the questions were written; write them again")
        return self.left_out(examples)

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        return self.table.scores([self.pictures.name(picture) for picture in images], texts)

    def gallery(self, query: Query) -> Floats:
        if query.image is not None:
            texts = [entry for entry in query.gallery if isinstance(entry, str)]
            return np.asarray(self.matrix([query.image], texts)[0])
        assert query.text is not None
        pictures = [entry for entry in query.gallery if isinstance(entry, Picture)]
        return np.asarray(self.matrix(pictures, [query.text])[:, 0])


def _code(pairs: pa.RecordBatch) -> NDArray[np.int64]:
    image, text = (np.asarray(pairs.column(name), np.int64) for name in ("image", "text"))
    return np.asarray(image << 32 | text)


def _columns(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches(path, ["image", "text"], _ROWS)
    except (OSError, pa.ArrowException, WrongUse) as error:
        raise WrongUse(f"{path}: {_NONE}") from error


def _numbers(path: Path, kind: bytes) -> dict[bytes, int]:
    """The numbers of images or texts, by their names in a store. kind: first byte of these."""
    try:
        found = pq.read_table(path, columns=["sha256"]).column("sha256").to_pylist()
        return {kind + bytes.fromhex(one): number for number, one in enumerate(found)}
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise WrongUse(f"{path}: {_NONE}") from error
