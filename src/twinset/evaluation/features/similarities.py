"""How alike images and texts are to a scorer; by a dual encoder's features, each of which is computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

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
LOT = 256  # images with several features that are compared at a time
TEXT_SHOWN = 60  # characters of a text in a message


class Silence(NamedTuple):
    """A question that a model did not answer. what: was asked. reason: by which they are counted."""

    key: str
    what: str
    reason: str


class Similarities:
    """Similarities of one model. `prepare` some examples first, then ask for theirs.

    matching: the columns that `of_matching` gives. by_pairs: whether what `prepare` computes grows with the pairs of
    queries and entries of galleries. silences: what was not answered since `start_count`, of the questions ``asked``.
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
        self.silences, self.asked, self.cut = list[Silence](), 0, set[bytes]()
        self.store.start_count()

    def prepare(self, examples: Sequence[Asked]) -> Left:
        """Compute what examples need and the store lacks; returns those that have an image that cannot be used. Raises
        `NotApplicable`: the model cannot answer such an example.
        """
        for example in examples:
            if problem := self.refusal(example):
                raise NotApplicable(f"{self.name}: {problem}")
        shown = [*entries(examples)]
        texts = {text_name(text): text for entry in shown if isinstance(entry, str) for text in all_said(entry)}
        self.cut.update(map(text_name, self._reader.too_long([*texts.values()])))
        pictures = ((self.pictures.name_or_problem(one), one) for one in shown if isinstance(one, Picture))
        try:
            self.compute(examples, {name: one for name, one in pictures if isinstance(name, bytes)}, texts)
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

        Args:
            silent: whether the model may give NaN in the first column, for an input that it does not answer.

        Raises:
            WrongUse: the model gives NaN, infinity or another shape.
            BuildFailed: memory runs out.
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
                raise WrongUse(
                    f"{self.name}: gave an array {values.shape} of {values.dtype} for {self.batch} inputs, from "
                    f"{shown[0]} on; a scorer gives float32 of shape ({self.batch}, d), or ({self.batch},) for pairs"
                )
            values = values[: len(lot)]
            bad = ~np.isfinite(values).all(axis=1) & ~(silent & np.isnan(values[:, 0]))
            if bad.any():
                raise WrongUse(
                    f"{self.name}: gives NaN or infinity for {shown[bad.argmax()]}; its weights are damaged, or the "
                    "model does not run in float32: get the checkpoint again"
                )
            self.computed += len(lot)
            yield [*names], values, seconds

    def left_out(self, examples: Sequence[Asked]) -> Left:
        """Examples with an image that cannot be used."""
        left, galleries = Left(), dict[int, Unusable | None]()
        for one in examples:
            problem = self._problem(own_pictures(one))
            if problem is None and isinstance(one, Query):
                if id(one.gallery) not in galleries:
                    galleries[id(one.gallery)] = self._problem(one.gallery)
                problem = galleries[id(one.gallery)]
            if problem is not None:
                left[one.key] = problem
        return left

    def _problem(self, shown: Gallery) -> Unusable | None:
        names = (self.pictures.name_or_problem(one) for one in shown if isinstance(one, Picture))
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

    def close(self) -> None:
        """End the threads that decode."""
        self.pictures.close()


class ByFeatures(Similarities):
    """Similarities by features of a dual encoder; a composer makes queries of an image and a text from them."""

    def __init__(self, encoder: DualEncoder, store: FeatureStore, batch: int, composer: Composer | None = None) -> None:
        super().__init__(composer or encoder, store, batch)
        self.encoder, self.composer = encoder, composer
        self._gallery: tuple[Gallery, Floats] | None = None  # the last; queries that share one come together

    def refusal(self, example: Asked) -> str | None:
        if self.composer is not None and not (isinstance(example, Query) and asks_with(example) == 2):
            return (
                f"composes queries of an image and a text, and example {example.key} has none; name the encoder alone, "
                f"--model {self.encoder.name}"
            )
        if self.composer is None and isinstance(example, Query) and asks_with(example) == 2:
            return (
                f"does not say what an image together with a text asks for (example {example.key}); name a rule, such "
                f"as --model image+text:{self.name}"
            )
        return None

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
            [self.pictures.name(one)] if isinstance(one, Picture) else [*map(text_name, all_said(one))] for one in shown
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
        if self.composer is None:
            asked = unit(own[0])
        else:
            asked = np.asarray(self.composer.compose_said(own[0], own[1], own_texts(query)), np.float32)
        width = self._gallery[1].shape[1]
        fits = asked.shape == (1, width) or (self.encoder.several and not (width % asked.size and asked.size % width))
        if not fits or not np.isfinite(asked).all():
            raise WrongUse(f"{self.name}: the query of example {query.key} has NaN or the shape {asked.shape}")
        return cosines(self._gallery[1], asked)[:, 0]


def cosines(first: Floats, second: Floats) -> Floats:
    """Similarities of unit features, shape (n, m) of (n, d) and (m, d), as float32; the greatest of k, where one of
    them has rows of k features, (n, k d).
    """
    if second.shape[1] > first.shape[1]:
        return cosines(second, first).T
    if first.shape[1] > (width := second.shape[1]):
        rows = (first[start : start + LOT].reshape(-1, width) for start in range(0, len(first), LOT))
        return np.concatenate(
            [cosines(unit(lot), second).reshape(-1, first.shape[1] // width, len(second)).max(1) for lot in rows]
        )
    # s_ij = Σ_k a_ik b_jk, summed in float64 and rounded once: equal features tie exactly, wherever in a gallery they
    # stand, which float32 sums of a BLAS do not promise.
    return (first.astype(np.float64) @ second.astype(np.float64).T).astype(np.float32)


def asks_with(query: Query) -> int:
    """Whether a query asks with an image and a text (2), with one of them (1), or with neither (0)."""
    return (query.image is not None) + (query.text is not None)


def own_pictures(example: Asked) -> Sequence[Picture]:
    """Pictures of an example without its gallery."""
    if isinstance(example, Matching):
        return example.images
    if isinstance(example, Grounding):
        return example.frames
    return () if example.image is None else (example.image,)


def own_texts(example: Asked) -> Sequence[str]:
    """Texts of an example without its gallery."""
    if isinstance(example, Matching | Grounding):
        return example.captions
    return () if example.text is None else (example.text,)


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
