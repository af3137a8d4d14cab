"""The pictures of a report: examples with their images and captions, beside what models answered.

They are kept in the run's folder, in ``pictures``: a page can be made again without the benchmark.
"""

import io
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.cards.sheet import Block, Cell, Marked, mark_difference, thumbnail, words
from twinset.contracts.errors import TwinsetError
from twinset.evaluation.examples import FIRST, TOP, Benchmark, Grounding, LeftOut, Matching, Picture, Query, Statement
from twinset.evaluation.report.mistakes import Mistake, answers_to
from twinset.evaluation.report.results import BenchmarkResults
from twinset.shards.storage.whole_file import whole_file

PIXELS, QUALITY = (480, 480), 85  # of kept pictures
QUERY = "query"  # label of what is asked of a gallery; entries have their place
_TYPES = {"key": pa.string(), "label": pa.string(), "text": pa.string(), "jpeg": pa.binary(), "right": pa.bool_()}
_DIGEST = b"data_digest"


@dataclass(frozen=True, slots=True)
class Part:
    """An image of an example, its caption, or both. jpeg: empty where the image cannot be read. right: a target."""

    label: str
    text: str
    jpeg: bytes | None
    right: bool = False

    def cell(self, label: str, marked: Marked | None = None, side: int = 0) -> Cell:
        """As the page shows it; the target of a query is framed."""
        label += ": cannot be read" if self.jpeg == b"" else ""
        outline = "right" if self.right else ""
        return Cell(label, self.jpeg or None, marked or words(self.text), side, outline)  # type: ignore[arg-type]


def pictures(
    out: Path, results: BenchmarkResults, benchmark: Benchmark | None, wanted: Mapping[str, Collection[int]]
) -> dict[str, dict[str, Part]]:
    """The parts of examples by key and label: those that the run keeps, and others from the benchmark, if it is there.

    Args:
        wanted: by key, places of entries of a gallery that are shown.
    """
    path = out / "pictures" / f"{results.name}.parquet"
    digest = " ".join(sorted({model.scored.about.data_digest for model in results.models})).encode()
    kept = _kept(path, digest)
    missing = {key: places for key, places in wanted.items() if not {*map(str, places)} < kept.get(key, {}).keys()}
    if benchmark is None or not missing:
        return kept
    for example in benchmark.examples():
        if not isinstance(example, LeftOut) and example.key in missing:
            kept[example.key] = {part.label: part for part in _parts(example, missing.pop(example.key))}
            if not missing:
                break
    rows = [{"key": key, **asdict(part)} for key, parts in sorted(kept.items()) for part in parts.values()]
    with whole_file(path) as unfinished:
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(_TYPES, {_DIGEST: digest})), unfinished)
    return kept


def _kept(path: Path, digest: bytes) -> dict[str, dict[str, Part]]:
    """What is kept of these files of the benchmark; nothing from a damaged file, which is written again."""
    kept = defaultdict[str, dict[str, Part]](dict)
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError):
        return {}
    if table.schema.equals(pa.schema(_TYPES)) and (table.schema.metadata or {}).get(_DIGEST) == digest:
        for row in table.to_pylist():
            kept[row["key"]][row["label"]] = Part(row["label"], row["text"], row["jpeg"], row["right"])
    return dict(kept)


def _parts(example: Matching | Query | Statement | Grounding, places: Collection[int]) -> Iterator[Part]:
    """All parts of an example; of a gallery the first target and the entries at some places."""
    if isinstance(example, Query):
        yield _part(QUERY, example.image, example.text)
        for place in sorted({*places, *sorted(example.targets)[:1]}):
            if place in range(len(example.gallery)):
                entry, right = example.gallery[place], place in example.targets
                image, text = (entry, None) if isinstance(entry, Picture) else (None, entry)
                yield _part(str(place), image, text, right)
    elif isinstance(example, Statement):
        yield _part("image", example.image, f"{example.text} ({'true' if example.true else 'not true'})")
    elif isinstance(example, Matching):
        for side, (image, caption) in enumerate(zip_longest(example.images, example.captions)):
            yield _part(f"caption {side}" if image is None else f"image {side}", image, caption)
    else:
        # The two frames between which the boundary lies.
        after = int(np.clip(np.searchsorted(example.times, example.boundary), 1, max(len(example.times) - 1, 1)))
        for side, (frame, caption) in enumerate(zip_longest(example.frames[after - 1 : after + 1], example.captions)):
            yield _part("after" if frame is None else f"{example.times[after - 1 + side]:.2f} s", frame, caption)


def _part(label: str, picture: Picture | None, text: str | None, right: bool = False) -> Part:
    if picture is None:
        return Part(label, text or "", None, right)
    stream = io.BytesIO()
    with suppress(TwinsetError, OSError):  # it could be read when it was scored; the page says where it cannot any more
        thumbnail(picture.read(), label, PIXELS).convert("RGB").save(stream, "JPEG", quality=QUALITY)
    return Part(label, text or "", stream.getvalue(), right)


def mistake_blocks(out: Path, results: BenchmarkResults, benchmark: Benchmark | None) -> Iterator[dict[str, Any]]:
    """By model its worst mistakes: the example, and what the model answered; then the best of other models that are
    right (EqBen, Figures 8 and 9). Of a query each answer has the entries that the model ranks first.
    """
    keys = {mistake.key for model in results.models for mistake in model.mistakes}
    answers = {model.name: answers_to(model.scored, keys) for model in results.models} if results.same_data else {}
    shown = {
        model.name: [[("", mistake), *_better(mistake, model.name, answers)] for mistake in model.mistakes]
        for model in results.models
    }
    wanted = defaultdict[str, set[int]](set)
    for mistakes in shown.values():
        for answered in mistakes:
            for _, answer in answered:
                wanted[answer.key].update(_first(answer))
    parts = pictures(out, results, benchmark, wanted)
    for model, mistakes in shown.items():
        blocks = []
        for answered in mistakes:
            mistake = answered[0][1]
            here, strips = parts.get(mistake.key, {}), []
            for name, answer in answered:
                cells = [here[str(place)].cell(label) for place, label in _first(answer).items() if str(place) in here]
                strips.append((name, answer, Block(answer.key, cells, FIRST, "")))
            blocks.append((_block(mistake, here), strips))
        yield {"model": model, "blocks": blocks, "without": sum(not block.cells for block, _ in blocks)}


def _better(mistake: Mistake, model: str, answers: Mapping[str, Mapping[str, Mistake]]) -> list[tuple[str, Mistake]]:
    """The other model that answers a question best, where one is right."""
    rivals = [(name, of[mistake.key]) for name, of in answers.items() if name != model and mistake.key in of]
    # Scores that are equal, or on the threshold, are wrong; 0 entries before the target, or 0 seconds, are right.
    by_rank = {"s00", "margin"}.isdisjoint
    right = [(name, answer) for name, answer in rivals if answer.by < 0 or (answer.by == 0 and by_rank(answer.scores))]
    return sorted(right, key=lambda answer: answer[1].by)[:1]


def _first(answer: Mistake) -> dict[int, str]:
    """Ranks of the entries that a model ranks first, by place; nothing where these are not known."""
    return {place: str(rank) for rank, place in enumerate(answer.scores.get(TOP) or (), 1)}


def _block(mistake: Mistake, parts: Mapping[str, Part]) -> Block:
    note = " / ".join(dict.fromkeys(filter(None, (mistake.subset, mistake.category))))
    if QUERY in parts:
        target = [part.cell("target") for part in parts.values() if part.right][:1]
        return Block(mistake.key, [parts[QUERY].cell(QUERY), *target], 2, note)
    marked: tuple[Marked | None, ...] = (None, None)
    if len(parts) == 2:
        first, second = parts.values()
        marked = mark_difference(first.text, second.text)
    cells = [part.cell(part.label, marked[side], side) for side, part in enumerate(parts.values())]
    return Block(mistake.key, cells, 2 if cells else 1, note)
