"""How alike images and texts are to a scorer; by a dual encoder's features, each of which is computed once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeGuard, TypeVar

import numpy as np
import pyarrow as pa

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.parts import OutOfMemory
from twinset.evaluation.examples import (
    MATCHING_SCORES,
    Ensemble,
    Grounding,
    Matching,
    Picture,
    Query,
    Statement,
)
from twinset.evaluation.features.pictures import Pictures, Unusable, lots
from twinset.evaluation.features.store import FeatureStore, text_name
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, NotApplicable, Scorer, unit

T = TypeVar("T")
Input = tuple[bytes, str, T]  # name in a store; what it is, for messages; what the model reads
Asked = Matching | Query | Statement | Grounding
Gallery = Sequence[Picture] | Sequence[str]
Left = dict[str, Unusable]  # by the key of an example
TEXT_SHOWN = 60  # characters of a text in a message


class Similarities:
    """Similarities of one model. `prepare` some examples first, then ask for theirs.

    matching: columns of `of_matching`. by_pairs: whether what `prepare` computes grows with the pairs of queries and
    entries of galleries. unanswered: questions without an answer since `start_count`, by reason, of those ``asked``.
    cut: names of texts of which the model reads only the beginning. computed: inputs that a pass was made for.
    """

    matching: pa.Schema = MATCHING_SCORES
    by_pairs = False

    def __init__(self, model: Scorer, store: FeatureStore, batch: int) -> None:
        self.name, self.store, self.pictures = model.name, store, Pictures()
        self.batch, self.computed = batch, 0
        self._reader = model.encoder if isinstance(model, Composer) else model
        self.start_count()

    def start_count(self) -> None:
        """Forget what was counted."""
        self.unanswered, self.asked, self.cut = Counter[str](), 0, set[bytes]()
        self.store.used.clear()

    def prepare(self, examples: Sequence[Asked]) -> Left:
        """Compute what examples need and the store lacks; returns those with an image that cannot be used."""
        for example in examples:
            if problem := self.refusal(example):
                raise NotApplicable(f"{self.name}: {problem}")
        texts, pictures = dict[bytes, str](), dict[bytes, Picture]()
        for entry in entries(examples):
            if isinstance(entry, str):
                texts |= {text_name(text): text for text in all_said(entry)}
            elif isinstance(name := self.pictures.name_or_problem(entry), bytes):
                pictures[name] = entry
        self.cut.update(map(text_name, self._reader.too_long([*texts.values()])))
        try:
            self.compute(examples, pictures, texts)
        finally:
            self.store.flush()
        return self.left_out(examples)

    def refusal(self, example: Asked) -> str | None:
        """Why the model cannot answer an example, and what can."""
        return None

    def compute(self, examples: Sequence[Asked], pictures: dict[bytes, Picture], texts: dict[bytes, str]) -> None:
        """Compute what the store lacks, of pictures that can be read and of texts, by name."""

    def passes(
        self, inputs: Iterable[Input[T]], give: Callable[[list[T]], Floats], silent: bool = False
    ) -> Iterator[tuple[list[bytes], Floats, float]]:
        """Names of the inputs of a pass, what the model gives for them, shape (inputs, d), and the seconds it took.

        All passes have ``batch`` inputs, of which the last is repeated: with one shape the kernels are the same, and a
        feature is the same bits whatever else was encoded before, by a killed run or for another benchmark.
        silent: whether the model may give NaN in the first column, for an input that it does not answer.

        Raises `WrongUse`: the model gives NaN, infinity or another shape; `BuildFailed`: memory runs out.
        """
        from twinset.models.device import within_memory

        for lot in lots(inputs, self.batch):
            names, shown, read = zip(*lot, strict=True)
            filled = [*read] + [read[-1]] * (self.batch - len(lot))
            began = time.monotonic()
            try:
                values = np.asarray(within_memory(partial(give, filled)))
            except OutOfMemory as error:
                message = f"memory runs out for {self.batch} inputs ({error}); name a smaller --batch"
                raise BuildFailed(f"{self.name}: {message}") from error
            seconds = time.monotonic() - began
            values = values[:, None] if values.ndim == 1 else values
            if values.ndim != 2 or len(values) != self.batch or values.dtype != np.float32:
                what = f"gave an array {values.shape} of {values.dtype} for {self.batch} inputs, from {shown[0]} on"
                raise WrongUse(f"{self.name}: {what}; a scorer gives float32 of shape (n, d), or (n,) for pairs")
            values = values[: len(lot)]
            bad = ~np.isfinite(values).all(axis=1) & ~(silent & np.isnan(values[:, 0]))
            if bad.any():
                remedy = "its weights are damaged, or it does not run in float32: get the checkpoint again"
                raise WrongUse(f"{self.name}: gives NaN or infinity for {shown[bad.argmax()]}; {remedy}")
            self.computed += len(lot)
            yield [*names], values, seconds

    def left_out(self, examples: Sequence[Asked]) -> Left:
        """Examples with an image that cannot be used."""
        galleries = {id(example.gallery): example.gallery for example in examples if isinstance(example, Query)}
        problems = {place: self._problem(gallery) for place, gallery in galleries.items()}
        left = Left()
        for example in examples:
            shared = problems[id(example.gallery)] if isinstance(example, Query) else None
            if problem := self._problem(own_pictures(example)) or shared:
                left[example.key] = problem
        return left

    def _problem(self, shown: Gallery) -> Unusable | None:
        names = (self.pictures.name_or_problem(entry) for entry in shown if isinstance(entry, Picture))
        return next((name for name in names if isinstance(name, Unusable)), None)

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        """Similarity of each image with each text of an example, shape (images, texts)."""
        raise NotApplicable(f"{self.name}: has no scores of an image and a text")

    def gallery(self, query: Query) -> Floats:
        """Similarity of a query with each entry of its gallery, shape (entries,)."""
        raise NotApplicable(f"{self.name}: cannot rank a gallery")

    def of_matching(self, example: Matching) -> dict[str, float | None]:
        """The columns of a prepared example, without those of its identity."""
        scores = self.matrix(example.images, example.captions)
        return {f"s{i}{j}": float(scores[i, j]) for i in range(len(scores)) for j in (0, 1)}


class ByFeatures(Similarities):
    """Similarities by features of a dual encoder; a composer makes queries of an image and a text from them."""

    def __init__(self, encoder: DualEncoder, store: FeatureStore, batch: int, composer: Composer | None = None) -> None:
        super().__init__(composer or encoder, store, batch)
        self.encoder, self.composer = encoder, composer
        self._gallery: tuple[Gallery, Floats] | None = None  # the last; queries that share one come together

    def refusal(self, example: Asked) -> str | None:
        if composed(example) == (self.composer is not None):
            return None
        if self.composer is None:
            what = "does not say what an image together with a text asks for"
            return f"{what} (example {example.key}); name a rule, such as --model image+text:{self.name}"
        what = f"composes queries of an image and a text, and example {example.key} has none"
        return f"{what}; name the encoder alone, --model {self.encoder.name}"

    def compute(self, examples: Sequence[Asked], pictures: dict[bytes, Picture], texts: dict[bytes, str]) -> None:
        read = [(name, repr(texts[name][:TEXT_SHOWN]), texts[name]) for name in self.store.missing(texts)]
        for features in self.passes(read, self.encoder.text_features):
            self.store.keep(*features)
        missing = ((name, pictures[name]) for name in self.store.missing(pictures))
        decoded = self.pictures.decoded(missing, self.encoder.prepare)
        prepared = ((name, picture.where, image) for name, picture, image in decoded)
        for features in self.passes(prepared, self.encoder.image_features):
            self.store.keep(*features)

    def features(self, shown: Gallery) -> Floats:
        """Features of pictures or texts that were prepared, shape (n, d), not normalised."""
        names = [
            [self.pictures.name(entry)] if isinstance(entry, Picture) else [*map(text_name, all_said(entry))]
            for entry in shown
        ]
        known = self.store.find(name for several in names for name in several)
        # Of several the mean of the normalised ones, as open_clip's zero-shot classifier.
        rows = ([known[name] for name in several] for several in names)
        return np.stack([row[0] if len(row) == 1 else unit(np.stack(row)).mean(0) for row in rows])

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        return cosines(unit(self.features(images)), unit(self.features(texts)))

    def gallery(self, query: Query) -> Floats:
        if self._gallery is None or self._gallery[0] is not query.gallery:
            self._gallery = query.gallery, unit(self.features(query.gallery))
        own = [self.features(shown) for shown in (own_pictures(query), own_texts(query)) if shown]
        asked = unit(own[0])
        if self.composer is not None:
            asked = np.asarray(self.composer.compose(own[0], own[1], own_texts(query)), np.float32)
            if asked.shape != (1, self._gallery[1].shape[1]) or not np.isfinite(asked).all():
                raise WrongUse(f"{self.name}: the query of example {query.key} has NaN or the shape {asked.shape}")
        return cosines(self._gallery[1], asked)[:, 0]


def cosines(first: Floats, second: Floats) -> Floats:
    """Similarities of unit features, shape (n, m) of (n, d) and (m, d), as float32; the greatest of k, where one of
    them has rows of k features, (n, k d).
    """
    if second.shape[1] > first.shape[1]:
        return cosines(second, first).T
    if first.shape[1] > (width := second.shape[1]):
        several = cosines(unit(first.reshape(-1, width)), second).reshape(len(first), -1, len(second))
        return np.asarray(several.max(1))
    # s_ij = Σ_k a_ik b_jk, summed in float64 and rounded once: equal features tie exactly, wherever in a gallery they
    # stand, which float32 sums of a BLAS do not promise.
    return (first.astype(np.float64) @ second.astype(np.float64).T).astype(np.float32)


def composed(example: Asked) -> TypeGuard[Query]:
    """Whether an example asks with an image and a text together."""
    return isinstance(example, Query) and example.image is not None and example.text is not None


def own_pictures(example: Asked) -> Sequence[Picture]:
    """Pictures of an example without its gallery."""
    if isinstance(example, Query | Statement):
        return () if example.image is None else (example.image,)
    return example.images if isinstance(example, Matching) else example.frames


def own_texts(example: Asked) -> Sequence[str]:
    """Texts of an example without its gallery."""
    if isinstance(example, Query | Statement):
        return () if example.text is None else (example.text,)
    return example.captions


def all_said(text: str) -> Sequence[str]:
    """The texts of an entry of a gallery, or of any text."""
    return text.texts if isinstance(text, Ensemble) else (text,)


def entries(examples: Iterable[Asked]) -> Iterator[Picture | str]:
    """All pictures and texts of examples; those of a gallery that queries share once."""
    galleries = set[int]()
    for example in examples:
        yield from own_pictures(example)
        yield from own_texts(example)
        if isinstance(example, Query) and id(example.gallery) not in galleries:
            galleries.add(id(example.gallery))
            yield from example.gallery
