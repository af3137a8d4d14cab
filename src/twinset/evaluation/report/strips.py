"""The first entries that two models find for the same query, side by side (EqBen, Figure 9)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twinset.cards.sheet import Block, Cell, Outline, words
from twinset.evaluation.examples import FIRST, TOP, Benchmark, Picture, Query
from twinset.evaluation.report.mistakes import Name, Question, Shown, jpeg, keep, kept
from twinset.evaluation.report.model_answers import ModelAnswers, floats
from twinset.evaluation.report.results import BenchmarkResults

COUNT = 6  # queries
POOL = 400  # candidates, of which the shown ones are chosen: one group should not fill the page
PIXELS = (240, 240)
RIGHT = "right"  # label of a target


@dataclass(frozen=True, slots=True)
class Found:
    """What a model finds: how many wrong entries are not behind its best target, and the first places."""

    model: str
    before: int
    top: Sequence[int]


@dataclass(frozen=True, slots=True)
class Strips:
    """A query on which two models differ: the first has a target in front, the second the farthest behind."""

    key: str
    subset: str
    found: tuple[Found, ...]

    @property
    def names(self) -> list[Name]:
        """The query, and the entries that are shown, as they are kept."""
        return [(self.key, None), *((self.key, place) for place in sorted({p for one in self.found for p in one.top}))]


def strips_of(results: BenchmarkResults, count: int = COUNT) -> list[Strips]:
    """At most ``count`` queries, the farthest behind first, each model as often in front as it can be; one a group as
    far as there are enough. None where models answered different data, or files do not name the first entries.
    """
    models = [one.scored for one in results.models if TOP in pq.read_schema(one.scored.path).names]
    if results.asked != "query" or len(models) < 2 or not results.same_data:
        return []
    keys, groups, before = _before(models)
    behind, first = np.nanmax(before, axis=0), before == 0  # NaN: a model was not asked
    differ = np.flatnonzero(first.any(axis=0) & (behind > 0))
    order = differ[np.argsort(-behind[differ], kind="stable")][:POOL]
    winners = first.argmax(axis=0)
    times, turns = Counter[int | str](), list[tuple[int, int, int]]()
    for place in order.tolist():
        winner, group = int(winners[place]), str(groups[place])
        turns.append((times[group], times[winner], place))  # how often each came before
        times.update((winner, group))
    chosen = [place for *_, place in sorted(turns, key=lambda one: one[:2])[:count]]
    pairs = {keys[place].as_py(): (int(winners[place]), int(np.nanargmax(before[:, place]))) for place in chosen}
    rows = [_rows(one, list(pairs)) for one in models]
    return [
        Strips(key, rows[pair[0]][key]["subset"], tuple(_found(models[one], rows[one][key]) for one in pair))
        for key, pair in pairs.items()
        if all(rows[one][key][TOP] for one in pair)
    ]


def _found(model: ModelAnswers, row: Mapping[str, Any]) -> Found:
    return Found(model.about.model, row["higher"] + row["tied"], row[TOP])


def _before(models: Sequence[ModelAnswers]) -> tuple[pa.Array, pa.Array, NDArray[np.float32]]:
    """Keys and groups of the first model's queries, and of each model the wrong entries before the target, (m, n)."""
    known = pq.read_table(models[0].path, columns=["key", "group"], partitioning=None).combine_chunks()
    keys, groups = (known.column(name).combine_chunks() for name in known.column_names)
    before = np.full((len(models), len(keys)), np.nan, np.float32)
    for number, one in enumerate(models):
        rows = pq.read_table(one.path, columns=["key", "higher", "tied"], partitioning=None)
        places = pc.index_in(keys, value_set=rows.column("key").cast(keys.type).combine_chunks())
        there = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
        values = floats(rows, "higher") + floats(rows, "tied")
        before[number, there] = values[places.drop_null().to_numpy()]
    return keys, groups, before


def _rows(one: ModelAnswers, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    found, wanted = dict[str, dict[str, Any]](), pa.array(keys, pa.string())
    for batch in pq.ParquetFile(one.path).iter_batches(columns=["key", "subset", "higher", "tied", TOP]):
        for row in batch.filter(pc.is_in(batch.column("key").cast(pa.string()), wanted)).to_pylist():
            found[row["key"]] = row
    return found


def strip_blocks(
    out: Path, results: BenchmarkResults, benchmark: Benchmark | None
) -> Iterator[tuple[Block, list[tuple[Found, Block]]]]:
    """Each query as a block with one of each model's strip; pictures are read from the benchmark, or were kept before
    in ``strips``. A query whose pictures are not there is left out.
    """
    asked = strips_of(results)
    if not asked:
        return
    path = strips_file(out, results)
    digest = results.models[0].scored.about.data_digest
    names = [name for one in asked for name in one.names]
    shown = kept(path, digest) if benchmark is None else keep(path, benchmark, names, digest, entry)
    for one in asked:
        if all(name in shown for name in one.names):
            asks = shown[one.key, None]
            query = Block(one.key, [cell("query", asks)], FIRST if asks.images else 1, one.subset)
            strips = []
            for of in one.found:
                entries = [
                    cell(str(n), found := shown[one.key, place], "right" if _is_right(found) else "")
                    for n, place in enumerate(of.top, 1)
                ]
                strips.append(Block(one.key, entries, FIRST, ""))
            yield query, list(zip(one.found, strips, strict=True))


def strips_file(out: Path, results: BenchmarkResults) -> Path:
    """Where the pictures of queries and entries of a benchmark's galleries lie."""
    return out / "strips" / f"{results.models[0].scored.folder}.parquet"


def entry(example: Question, place: int | None) -> Shown:
    """The query, or an entry of its gallery, whose label says whether it is a target."""
    assert isinstance(example, Query)
    if place is None:
        parts: list[Picture | str | None] = [example.image, example.text]
    else:
        parts = [example.gallery[place]] if place < len(example.gallery) else []
    label = RIGHT if place in example.targets else ""
    images = [(label, jpeg(one, example.key, PIXELS)) for one in parts if isinstance(one, Picture)]
    return Shown(images, [(label, one) for one in parts if isinstance(one, str)])


def _is_right(shown: Shown) -> bool:
    return any(label == RIGHT for label, _ in (*shown.images, *shown.texts))


def cell(label: str, shown: Shown, outline: Outline = "") -> Cell:
    """A query, or an entry of its gallery, as it was kept."""
    image = next((jpeg for _, jpeg in shown.images), None)
    text = next((text for _, text in shown.texts), "")
    unread = bool(shown.images) and image is None
    return Cell(f"{label}: cannot be read" if unread else label, image, words(text), outline=outline)
