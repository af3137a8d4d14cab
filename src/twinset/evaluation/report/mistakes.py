"""The worst mistakes of a model: the questions that it answers wrongly with the greatest confidence.

Their pictures and captions are kept in the run's folder: a page can be made again without the benchmark.
"""

import io
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twinset.cards.sheet import thumbnail
from twinset.contracts.errors import TwinsetError
from twinset.evaluation.examples import (
    MATCHING_CHOICES,
    Benchmark,
    Grounding,
    LeftOut,
    Matching,
    Picture,
    Query,
    Statement,
)
from twinset.evaluation.metrics.matching import FINER, SCORES
from twinset.evaluation.report.model_answers import Asked, ModelAnswers, floats
from twinset.shards.storage.whole_file import whole_file

Question = Matching | Query | Statement | Grounding
COUNT = 8
#: Candidates from which the shown ones are chosen: one source image or video should not fill the page.
POOL = 400


@dataclass(frozen=True, slots=True)
class Mistake:
    """A question that was answered wrongly.

    by: how far the right answer was behind, in scores, entries of the gallery, or seconds. scores: the columns of its
    row that the model answered with.
    """

    key: str
    subset: str
    category: str
    group: str
    by: float
    scores: dict[str, float | list[float] | None]

    @property
    def best_wrong(self) -> int | None:
        """Of a query, the place in the gallery of the wrong entry that scores highest, where it is known."""
        place = self.scores.get("best_wrong")
        return int(place) if isinstance(place, int | float) else None


def worst_mistakes(scored: ModelAnswers, count: int = COUNT) -> list[Mistake]:
    """At most ``count`` mistakes, the worst first; one a group as far as there are enough groups.

    None where outcomes alone are known, which do not say how far off an answer is.
    """
    if not scored.scores and scored.schema is not MATCHING_CHOICES:
        return []
    by = _BY[scored.asked] if scored.scores else _choices
    pool: list[Mistake] = []
    for batch in pq.ParquetFile(scored.path).iter_batches(columns=scored.schema.names):
        wrong = by(batch)
        places = np.flatnonzero(wrong > 0)
        if len(places) > POOL:
            places = places[np.argpartition(-wrong[places], POOL)[:POOL]]
        rows = batch.take(pa.array(places)).to_pylist()
        pool += [_mistake(row, float(by)) for row, by in zip(rows, wrong[places], strict=True)]
        pool = sorted(pool, key=lambda one: (-one.by, one.key))[:POOL]
    seen: Counter[str] = Counter()
    order = []
    for one in pool:
        order.append((seen[one.group], one))
        seen[one.group] += 1
    # Stable: first the worst of each group, then the second of each.
    chosen = [one for _, one in sorted(order, key=lambda item: item[0])[:count]]
    return sorted(chosen, key=lambda one: (-one.by, one.key))


def answers_to(scored: ModelAnswers, keys: Collection[str]) -> dict[str, Mistake]:
    """What a model answered to some questions, by key; where it is right, ``by`` is 0 or less."""
    if not scored.scores:
        return {}
    found, wanted = dict[str, Mistake](), pa.array(sorted(keys), pa.string())
    for batch in pq.ParquetFile(scored.path).iter_batches(columns=scored.schema.names):
        some = batch.filter(pc.is_in(batch.column("key").cast(pa.string()), wanted))
        for row, by in zip(some.to_pylist(), _BY[scored.asked](some), strict=True):
            answer = _mistake(row, float(by))
            found[answer.key] = answer
    return found


def _mistake(row: dict[str, object], by: float) -> Mistake:
    named = {name: str(row.pop(name)) for name in ("key", "subset", "category", "group")}
    return Mistake(**named, by=by, scores=row)  # type: ignore[arg-type]


def _matching(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """The largest lead of a wrong answer over the right one, of the two or four comparisons of a row."""
    s00, s01, s10, s11 = (floats(batch, name) for name in SCORES)
    leads = np.stack([s01 - s00, s10 - s11, s10 - s00, s01 - s11])  # NaN where there is one image
    return np.asarray(np.fmax.reduce(leads), np.float64)


def _choices(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """How many comparisons of a row are wrong in both orders, of those that were asked."""
    wrong = np.stack([floats(batch, name) == 0 for name in (*FINER, "pairing")])
    return np.asarray(wrong.sum(axis=0), np.float64)


def _query(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Share of the gallery's other entries that score higher than the best target, ties as half."""
    higher, tied, entries = (floats(batch, name) for name in ("higher", "tied", "entries"))
    return np.asarray((higher + tied / 2) / np.maximum(entries - 1, 1), np.float64)


def _grounding(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Mean error in seconds of the gaps that score best."""
    return np.array([np.mean(errors) for errors in batch.column("errors").to_pylist()], np.float64)


_BY: dict[Asked, Callable[[pa.RecordBatch], NDArray[np.float64]]] = {
    "matching": _matching,
    "query": _query,
    "statement": lambda batch: -floats(batch, "margin"),
    "grounding": _grounding,
}


PIXELS = (480, 480)
QUERY_ROLES = ("query", "target", "best wrong entry")  # labels of what is shown of a query
QUALITY = 85
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("best_wrong", pa.int32()),
        ("images", pa.list_(pa.struct([("label", pa.string()), ("jpeg", pa.binary())]))),
        ("texts", pa.list_(pa.struct([("label", pa.string()), ("text", pa.string())]))),
    ]
)
_DIGEST = b"data_digest"
#: Key of an example, and of a query the place in the gallery of the wrong entry that is shown too.
Name = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """An example as it is shown. images: label and JPEG, None where it cannot be read. texts: label and text."""

    images: Sequence[tuple[str, bytes | None]]
    texts: Sequence[tuple[str, str]]


def kept_file(out: Path, benchmark: str) -> Path:
    """Where the pictures of a benchmark's mistakes lie."""
    return out / "mistakes" / f"{benchmark}.parquet"


def keep(
    path: Path,
    benchmark: Benchmark,
    names: Collection[Name],
    data_digest: str,
    show: Callable[[Question, int | None], Shown] | None = None,
) -> dict[Name, Shown]:
    """Read examples from a benchmark and keep them; returns them with those that were kept before.

    Args:
        show: what is kept of an example under a name; by default all that a mistake is shown with.
    """
    found = kept(path, data_digest)
    wanted: dict[str, list[int | None]] = {}
    for key, wrong in sorted(set(names) - set(found), key=str):
        wanted.setdefault(key, []).append(wrong)
    if not wanted:
        return found
    for example in benchmark.examples():
        if not isinstance(example, LeftOut) and example.key in wanted:
            for wrong in wanted.pop(example.key):
                found[example.key, wrong] = (show or _shown)(example, wrong)
            if not wanted:
                break
    rows = [
        {
            "key": key,
            "best_wrong": wrong,
            "images": [{"label": label, "jpeg": jpeg} for label, jpeg in shown.images],
            "texts": [{"label": label, "text": text} for label, text in shown.texts],
        }
        for (key, wrong), shown in sorted(found.items(), key=lambda item: str(item[0]))
    ]
    table = pa.Table.from_pylist(rows, _SCHEMA.with_metadata({_DIGEST: data_digest.encode()}))
    with whole_file(path) as beside:
        pq.write_table(table, beside)
    return found


def kept(path: Path, data_digest: str) -> dict[Name, Shown]:
    """The examples that were kept of a benchmark with this digest, by key.

    None of another state of its files, and none from a damaged file: they can be read from the benchmark again.
    """
    if not path.is_file():
        return {}
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError):
        return {}
    if not table.schema.equals(_SCHEMA) or (table.schema.metadata or {}).get(_DIGEST) != data_digest.encode():
        return {}
    return {
        (row["key"], row.get("best_wrong")): Shown(
            [(image["label"], image["jpeg"]) for image in row["images"]],
            [(text["label"], text["text"]) for text in row["texts"]],
        )
        for row in table.to_pylist()
    }


def _shown(example: Question, wrong: int | None) -> Shown:
    if isinstance(example, Matching):
        images: Mapping[str, Picture] = {f"image {place}": image for place, image in enumerate(example.images)}
        texts = {f"caption {place}": text for place, text in enumerate(example.captions)}
    elif isinstance(example, Query):
        images, texts = _shown_of_query(example, wrong)
    elif isinstance(example, Statement):
        images, texts = (
            {"image": example.image},
            {"statement": f"{example.text} ({'true' if example.true else 'not true'})"},
        )
    else:
        # The two frames between which the boundary lies.
        after = int(np.clip(np.searchsorted(example.times, example.boundary), 1, max(len(example.times) - 1, 1)))
        places = [place for place in (after - 1, after) if place < len(example.frames)]
        images = {f"{example.times[place]:.2f} s": example.frames[place] for place in places}
        texts = {"before": example.captions[0], "after": example.captions[1]}
    return Shown([(label, jpeg(image, example.key)) for label, image in images.items()], list(texts.items()))


def _shown_of_query(example: Query, wrong: int | None) -> tuple[dict[str, Picture], dict[str, str]]:
    """What is asked, the first target, and the wrong entry that scores highest: the role of each is its label."""
    images = {} if example.image is None else {QUERY_ROLES[0]: example.image}
    texts = {} if example.text is None else {QUERY_ROLES[0]: example.text}
    for role, place in zip(QUERY_ROLES[1:], (min(example.targets, default=None), wrong), strict=True):
        if place is None or not place < len(example.gallery):
            continue
        entry = example.gallery[place]
        if isinstance(entry, Picture):
            images[role] = entry
        else:
            texts[role] = entry
    return images, texts


def jpeg(picture: Picture, key: str, box: tuple[int, int] = PIXELS) -> bytes | None:
    """A picture of the example ``key`` made to fit (width, height) pixels; None where it cannot be read."""
    try:
        image = thumbnail(picture.read(), key, box)
    except (TwinsetError, OSError):
        return None  # it could be read when it was scored; the page says that it cannot any more
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()
