"""What a benchmark asks of a model, and the columns of the scores that a model answers with.

A reader (`evaluation.benchmarks`) yields examples, a scorer (`evaluation.scorers`) turns them into a table of scores,
and `evaluation.metrics` reads nothing but such tables: so other people's scores are measured as our own are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: Columns that every table of scores begins with. group: source image or video; its examples are resampled together.
IDENTITY = (("key", pa.string()), ("subset", pa.string()), ("category", pa.string()), ("group", pa.string()))
#: Of matchings: similarity of image i and caption j, float32; s10 and s11 are null where there is one image.
MATCHING_SCORES = pa.schema([*IDENTITY, *((name, pa.float32()) for name in ("s00", "s01", "s10", "s11"))])
#: Of matchings that people answered, who give no scores: whether the right caption was chosen for either image, and the
#: right image for either caption, under the first of the names that BiVLC's releases have.
_ANSWERS = ("text_score_i0", "text_score_i1", "image_score_c0", "image_score_c1")
MATCHING_OUTCOMES = pa.schema([*IDENTITY, *((name, pa.bool_()) for name in _ANSWERS)])
#: Of matchings that a model answered by choosing: 1, 0.5 or 0, null where it was not asked
#: (`evaluation.metrics.matching`).
_CHOICES = ("ipos2t", "ineg2t", "tpos2i", "tneg2i", "pairing", "order12", "order21")
MATCHING_CHOICES = pa.schema([*IDENTITY, *((name, pa.float32()) for name in _CHOICES)])
#: Of queries: how many wrong entries score higher than the best target, and how many the same; how many entries are
#: ranked, and how many of them are targets; how many targets score as the best one does (1 or more); the place in the
#: gallery of the wrong entry that scores highest, null where all are targets.
RANKS = ("higher", "tied", "entries", "targets", "tied_targets", "best_wrong")
#: And the places of the entries that score highest, best first, at most `FIRST`; of equal ones the targets come last.
TOP, FIRST = "top", 5
QUERY_RANKS = pa.schema([*IDENTITY, *((name, pa.int32()) for name in RANKS), (TOP, pa.list_(pa.int32()))])
#: The same of benchmarks whose metric is about every target: of each, in order, how many wrong entries score higher,
#: and how many the same; and the query's tags, with ";" between them.
QUERY_TARGETS = pa.schema(
    [*QUERY_RANKS, ("above", pa.list_(pa.int32())), ("level", pa.list_(pa.int32())), ("tags", pa.string())]
)
#: Of queries whose gallery people put in order: of each entry in turn, how many score higher, and how many people put
#: before it.
QUERY_ORDERS = pa.schema([*QUERY_RANKS, ("places", pa.list_(pa.int32())), ("people", pa.list_(pa.int32()))])
#: Of statements: how far the score is on the right side of the model's threshold (above, where the statement is true),
#: negative on the wrong one; and whether it is on the right one.
STATEMENT_MARGINS = pa.schema([*IDENTITY, ("margin", pa.float32()), ("correct", pa.bool_())])
#: Of groundings: seconds from each of the best-scoring gaps between frames to the boundary; several where scores tie.
GROUNDING_ERRORS = pa.schema([*IDENTITY, ("errors", pa.list_(pa.float32()))])


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it lies in a benchmark.

    where: file, or tar and member; for messages, and equal for the same image.
    read: its encoded bytes; raises `contracts.errors.WrongUse` or `OSError` when they cannot be had.
    """

    where: str
    read: Callable[[], bytes]


class Ensemble(str):
    """One thing said in several ways, such as a class in templates: its feature is the mean of theirs.

    As a text it is the first of them, which models that score pairs are asked with.
    """

    texts: tuple[str, ...]

    def __new__(cls, texts: Iterable[str]) -> Self:
        """texts: one or more."""
        variants = tuple(texts)
        made = super().__new__(cls, variants[0])
        made.texts = variants
        return made


class OwnQuestion(str):
    """A question that a benchmark itself asks about an image; the score is how likely the right of two answers is.

    As a text it is a caption, which models read that are asked nothing. asked: the question, in the benchmark's words.
    answers: both of them, in one order for all that ask the same. right: the place of the right one.
    """

    asked: str
    answers: tuple[str, str]
    right: int

    def __new__(cls, caption: str, asked: str, answers: tuple[str, str] = ("yes", "no"), right: int = 0) -> Self:
        made = super().__new__(cls, caption)
        made.asked, made.answers, made.right = asked, answers, right
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What all examples have; ``category`` is "" where the benchmark has none."""

    key: str
    subset: str
    group: str
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(Example):
    """Which caption belongs to which image: image i shows caption i. One or two images, two captions."""

    images: tuple[Picture, ...]
    captions: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Example):
    """Which entry of a gallery is meant by an image, a text, or an image with a text that modifies it.

    gallery: pictures or texts; queries that share one share the object, which then is encoded once.
    targets: places in the gallery of the right entries; one found is enough.
    excluded: places that are not ranked, such as the reference's own.
    tags: kinds of queries that it is one of, where it can be of several.
    order: how many entries people put before each, where they were asked; equal ones tie.
    """

    image: Picture | None
    text: str | None
    gallery: Sequence[Picture] | Sequence[str]
    targets: frozenset[int]
    excluded: frozenset[int] = frozenset()
    tags: tuple[str, ...] = ()
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Example):
    """Whether a text is true of an image; only models with a threshold can say."""

    image: Picture
    text: str
    true: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding(Example):
    """Between which two frames of a video does what one caption says become what the other says.

    frames, times: in order; seconds, shape (n,) float64.
    boundary: seconds.
    """

    frames: Sequence[Picture]
    times: NDArray[np.float64]
    captions: tuple[str, str]
    boundary: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An example that cannot be asked, such as one whose image is missing; counted in every report.

    where: file or record; reason: one of a few words, such as ``missing image``, by which they are counted.
    """

    where: str
    reason: str


class Benchmark(Protocol):
    """A benchmark as it lies on disk.

    name: as ``--benchmark`` takes it; title: with the year; citation: BibTeX key or URL of the paper. metrics: its own,
    by their names in `evaluation.metrics.score_kinds.KINDS`, beside what all benchmarks of its kind have. asks: name
    and version of its own questions (`OwnQuestion`), where it has any; the version is raised when their words change.
    apart: whether its subsets ask in different ways, so that there is no figure over all of them.
    """

    name: str
    title: str
    citation: str
    metrics: Sequence[str] = ()
    asks: str = ""
    apart: bool = False

    def examples(self) -> Iterator[Matching | Query | Statement | Grounding | LeftOut]:
        """All examples, streaming, in a fixed order; raises `contracts.errors.WrongUse` for files that are not it."""

    def digest(self) -> str:
        """Of what was read, sha256: recorded with scores. May be called after `examples`."""
