"""How alike images and texts are to a scorer; by a dual encoder's features, each of which is computed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import (
    MATCHING_SCORES,
    Ensemble,
    Grounding,
    Matching,
    Picture,
    Query,
    Statement,
    TextPair,
)
from twinset.evaluation.features.passes import Passes, lots
from twinset.evaluation.features.pictures import Pictures, Unusable
from twinset.evaluation.features.store import FeatureStore, text_name
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, NotApplicable, Scorer, unit

Asked = Matching | Query | Statement | Grounding
Gallery = Sequence[Picture] | Sequence[str]
Left = dict[str, Unusable]  # by the key of an example
LOT = 256  # images with several features that are compared at a time
GALLERIES = 2  # whose features are held; queries that share a gallery come together
AHEAD = 2  # passes whose images may be decoded before the network asks for them
TEXT_SHOWN = 60  # characters of a text in a message


class Silence(NamedTuple):
    """A question that a model did not answer. what: was asked. reason: by which they are counted."""

    key: str
    what: str
    reason: str


class Similarities(ABC):
    """Similarities of one model. `prepare` some examples first, then ask for theirs.

    matching: the columns that `of_matching` gives. silences: what was not answered of the examples prepared last.
    by_pairs: whether what `prepare` holds grows with the pairs of queries and entries of galleries.
    """

    matching: pa.Schema = MATCHING_SCORES
    by_pairs = False

    def __init__(self, model: Scorer, store: FeatureStore, batch: int) -> None:
        self.name, self.store, self.pictures = model.name, store, Pictures()
        self.passes = Passes(model.name, store, batch)
        self._encoder = model.encoder if isinstance(model, Composer) else model
        self._cut: set[bytes] = set()  # names of texts; few, or the benchmark is not for this model
        self.silences: list[Silence] = []
        self.silent, self.asked = Counter[str](), 0  # questions without an answer, by reason, of those asked

    @abstractmethod
    def prepare(self, examples: Sequence[Asked]) -> Left:
        """Compute what examples need and the store lacks; returns those that have an image that cannot be used. Raises
        `NotApplicable`: the model cannot answer such an example.
        """

    @abstractmethod
    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        """Similarity of each image with each text of an example, shape (images, texts)."""

    @abstractmethod
    def gallery(self, query: Query) -> Floats:
        """Similarity of a query with each entry of its gallery, shape (entries,)."""

    def of_matching(self, example: Matching) -> dict[str, float | None]:
        """The columns of a prepared example, without those of its identity."""
        scores = self.matrix(example.images, example.captions)
        return {f"s{i}{j}": float(scores[i, j]) for i in range(len(scores)) for j in (0, 1)}

    def start_count(self) -> None:
        """Begin to count what is asked for, for `counted`."""
        self._cut.clear()
        self.silent.clear()
        self.asked = 0
        self.store.start_count()

    def counted(self) -> dict[str, Any]:
        """How many images, texts and pairs were asked for, how many texts the model sees only the beginning of, and how
        many questions it did not answer, by reason.
        """
        cut = {"cut_texts": len(self._cut)} if self._cut else {}
        return self.store.counted() | cut | ({"unanswered": dict(sorted(self.silent.items()))} if self.silent else {})

    def _note(self, silences: list[Silence], asked: int) -> None:
        self.silences, self.asked = silences, self.asked + asked
        self.silent.update(one.reason for one in silences)

    def _count_cut(self, texts: Iterable[str]) -> None:
        self._cut.update(text_name(text) for text in self._encoder.too_long(list(texts)))

    def close(self) -> None:
        """End the threads that decode."""
        self.pictures.close()

    def _named(self, examples: Iterable[Asked], galleries: Iterable[tuple[Gallery, str]]) -> Named:
        """The names of all pictures that can be read, each once."""
        found: Named = {}
        asked = [(picture, one.key) for one in examples for picture in own_pictures(one)]
        asked += [(entry, key) for gallery, key in galleries for entry in gallery if isinstance(entry, Picture)]
        for picture, key in asked:
            name = self._name_or_none(picture)
            if name is not None:
                found.setdefault(name, (picture, f"{picture.where} (example {key})"))
        return found

    def _name_or_none(self, picture: Picture) -> bytes | None:
        try:
            return self.pictures.name(picture)
        except Unusable:
            return None

    def _left_out(self, examples: Sequence[Asked]) -> Left:
        found, galleries = Left(), dict[int, Unusable | None]()
        for example in examples:
            problem = self._unusable(own_pictures(example))
            if problem is None and isinstance(example, Query):
                gallery = example.gallery
                if id(gallery) not in galleries:
                    galleries[id(gallery)] = self._unusable([one for one in gallery if isinstance(one, Picture)])
                problem = galleries[id(gallery)]
            if problem is not None:
                found[example.key] = problem
        return found

    def _unusable(self, pictures: Sequence[Picture]) -> Unusable | None:
        for picture in pictures:
            try:
                self.pictures.name(picture)
            except Unusable as unusable:
                return unusable
        return None


Named = dict[bytes, tuple[Picture, str]]  # by name: where to read it, and what it is for messages


class ByFeatures(Similarities):
    """Cosines of a dual encoder's features; each image and each text is encoded once.

    Args:
        composer: makes queries of an image with a text; None for a plain dual encoder.
    """

    def __init__(self, encoder: DualEncoder, store: FeatureStore, batch: int, composer: Composer | None = None) -> None:
        super().__init__(composer or encoder, store, batch)
        self.encoder, self.composer = encoder, composer
        self._window: dict[bytes, Floats] = {}
        self._galleries: OrderedDict[int, tuple[Gallery, Floats]] = OrderedDict()

    def prepare(self, examples: Sequence[Asked]) -> Left:
        for example in examples:
            self._check(example)
        galleries = {id(one.gallery): (one.gallery, one.key) for one in examples if isinstance(one, Query)}
        fresh = [galleries[place] for place in galleries if place not in self._galleries]
        texts = {text: one.key for one in examples for text in own_texts(one)}
        entries = [(entry, key) for gallery, key in fresh for entry in gallery if isinstance(entry, str)]
        texts |= {text: key for entry, key in entries for text in _said(entry)}
        self._encode_texts(texts)
        self._encode_images(self._named(examples, fresh))
        left_out = self._left_out(examples)
        usable = [one for one in examples if one.key not in left_out]
        names = [self.pictures.name(picture) for one in usable for picture in own_pictures(one)]
        self._window = self.store.find([*names, *(text_name(text) for one in usable for text in own_texts(one))])
        return left_out

    def _check(self, example: Asked) -> None:
        if self.composer is None:
            if of_texts(example):
                return
            if isinstance(example, Query) and (example.image is None) == (example.text is None):
                raise NotApplicable(
                    f"{self.name}: does not say what an image together with a text asks for (example {example.key}); "
                    f"name a rule, such as --model image+text:{self.name}"
                )
        elif not isinstance(example, Query) or example.image is None or example.text is None:
            raise NotApplicable(
                f"{self.name}: composes queries of an image and a text, and example {example.key} has none; name the "
                f"encoder alone, --model {self.encoder.name}"
            )

    def _encode_texts(self, texts: dict[str, str]) -> None:
        """texts: with the key of an example that has them."""
        self._count_cut(texts)
        named = {text_name(text): (text, key) for text, key in texts.items()}
        inputs = [
            (name, f"the text {named[name][0][:TEXT_SHOWN]!r} (example {named[name][1]})", named[name][0])
            for name in self.store.missing(named)
        ]
        self.passes.run(inputs, self.encoder.text_features)

    def _encode_images(self, named: Named) -> None:
        missing = ((name, named[name][0]) for name in self.store.missing(named))
        decoded = self.pictures.decoded(missing, self.encoder.prepare, AHEAD * self.passes.batch)
        inputs = ((name, named[name][1], prepared) for name, _, prepared in decoded)
        for some in lots(inputs, self.passes.batch):
            self.passes.run(some, self.encoder.image_features)

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        rows = np.stack([self._window[self.pictures.name(picture)] for picture in images])
        return cosines(unit(rows), unit(np.stack([self._window[text_name(text)] for text in texts])))

    def gallery(self, query: Query) -> Floats:
        if of_texts(query):
            features = self.store.find(text_name(text) for entry in query.gallery for text in _said(entry))
            pairs = [[unit(features[text_name(text)][None]) for text in _said(entry)] for entry in query.gallery]
            return np.array([cosines(first, second)[0, 0] for first, second in pairs], np.float32)
        found = self._galleries.get(id(query.gallery))
        if found is None:
            names = [
                [text_name(text) for text in _said(one)] if isinstance(one, str) else [self.pictures.name(one)]
                for one in query.gallery
            ]
            features = self.store.find(name for some in names for name in some)
            found = query.gallery, unit(np.stack([_mean([features[name] for name in some]) for some in names]))
            self._galleries[id(query.gallery)] = found  # it holds the gallery, so that its id is not another's
            if len(self._galleries) > GALLERIES:
                self._galleries.popitem(last=False)
        self._galleries.move_to_end(id(query.gallery))
        image = None if query.image is None else self._window[self.pictures.name(query.image)][None]
        text = None if query.text is None else self._window[text_name(query.text)][None]
        if self.composer is not None and image is not None and text is not None and query.text is not None:
            asked = np.asarray(self.composer.compose_said(image, text, [query.text]), np.float32)
        else:
            asked = unit(image if image is not None else text)  # type: ignore[arg-type]  # it has one: `_check`
        width = found[1].shape[1]
        fits = asked.shape == (1, width) or (self.encoder.several and not (width % asked.size and asked.size % width))
        if not fits or not np.isfinite(asked).all():
            raise WrongUse(f"{self.name}: the query of example {query.key} has NaN or the shape {asked.shape}")
        return cosines(found[1], asked)[:, 0]


def of_texts(example: Asked) -> bool:
    """Whether an example compares texts alone."""
    return isinstance(example, Query) and isinstance(next(iter(example.gallery), None), TextPair)


def _said(text: Picture | str) -> Sequence[str]:
    """The texts of an entry of a gallery."""
    assert isinstance(text, str)
    return text.texts if isinstance(text, Ensemble) else (text,)


def _mean(features: Sequence[Floats]) -> Floats:
    """Of several the mean of the normalised ones, as open_clip's zero-shot classifier; one as it is."""
    return features[0] if len(features) == 1 else unit(np.stack(features)).mean(0)


def cosines(first: Floats, second: Floats) -> Floats:
    """Similarities of unit features, shape (n, m) of (n, d) and (m, d), as float32; the greatest of k, where one of
    them has rows of k features, (n, k d).
    """
    if second.shape[1] > first.shape[1]:
        return cosines(second, first).T
    if first.shape[1] > (width := second.shape[1]):
        lots = (first[start : start + LOT].reshape(-1, width) for start in range(0, len(first), LOT))
        return np.concatenate(
            [cosines(unit(lot), second).reshape(-1, first.shape[1] // width, len(second)).max(1) for lot in lots]
        )
    # s_ij = Σ_k a_ik b_jk, summed in float64 and rounded once: equal features tie exactly, wherever in a gallery they
    # stand, which float32 sums of a BLAS do not promise.
    return (first.astype(np.float64) @ second.astype(np.float64).T).astype(np.float32)


def own_pictures(example: Asked) -> Sequence[Picture]:
    """Pictures of an example without its gallery."""
    if isinstance(example, Matching):
        return example.images
    if isinstance(example, Query):
        return () if example.image is None else (example.image,)
    return (example.image,) if isinstance(example, Statement) else example.frames


def own_texts(example: Asked) -> Sequence[str]:
    """Texts of an example without its gallery."""
    if isinstance(example, Query):
        return () if example.text is None else (example.text,)
    return (example.text,) if isinstance(example, Statement) else example.captions
