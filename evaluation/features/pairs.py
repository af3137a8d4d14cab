"""Scores of models that read an image together with a text, and of those that only choose among captions."""

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from twinset.evaluation.answers.figures import scores
from twinset.evaluation.examples import Matching, Picture, Query
from twinset.evaluation.features.passes import lots
from twinset.evaluation.features.similarities import (
    AHEAD,
    TEXT_SHOWN,
    Asked,
    Left,
    Similarities,
    own_pictures,
    own_texts,
)
from twinset.evaluation.features.store import FeatureStore, pair_name, text_name
from twinset.models.encoders.contract import Chooser, Floats, Matcher, NotApplicable


class ByPairs(Similarities):
    """Scores of a model that reads an image together with a text; each pair is scored once."""

    def __init__(self, scorer: Matcher, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer = scorer
        self._window: dict[bytes, Floats] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        for example in examples:
            if isinstance(example, Query) and (example.image is None) == (example.text is None):
                raise NotApplicable(
                    f"{self.name}: scores an image with a text, and example {example.key} asks with both; name a "
                    "dual encoder and a rule, such as --model image+text:open_clip:ViT-B-32:openai"
                )
        galleries = {id(one.gallery): (one.gallery, one.key) for one in examples if isinstance(one, Query)}
        named = self._named(examples, galleries.values())
        texts: dict[bytes, dict[bytes, str]] = {}  # of each image by name: texts by the name of the pair
        for example in examples:
            for picture, text in pairs_of(example):
                if (name := self._name_or_none(picture)) is not None:
                    texts.setdefault(name, {})[pair_name(name, text_name(text))] = text
        self._count_cut({text for pairs in texts.values() for text in pairs.values()})
        missing = set(self.store.missing(pair for pairs in texts.values() for pair in pairs))
        wanted = [name for name, pairs in texts.items() if not missing.isdisjoint(pairs)]
        decoded = self.pictures.decoded(
            ((name, named[name][0]) for name in wanted), lambda image: image, AHEAD * self.passes.batch
        )
        inputs = (
            (pair, f"{named[name][1]} with {text[:TEXT_SHOWN]!r}", (image, text))
            for name, _, image in decoded
            for pair, text in texts[name].items()
            if pair in missing
        )
        for some in lots(inputs, self.passes.batch):
            self.passes.run(some, lambda pairs: self.scorer.score(*zip(*pairs, strict=True)))
        left_out = self._left_out(examples)
        usable = [one for one in examples if one.key not in left_out]
        self._window = self.store.find(self._pair(*pair) for one in usable for pair in pairs_of(one))
        return left_out

    def _pair(self, picture: Picture, text: str) -> bytes:
        return pair_name(self.pictures.name(picture), text_name(text))

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        found = [self._window[self._pair(*pair)][0] for pair in product(images, texts)]
        return np.array(found, np.float32).reshape(len(images), len(texts))

    def gallery(self, query: Query) -> Floats:
        return np.array([self._window[self._pair(*pair)][0] for pair in pairs_of(query)], np.float32)


def pairs_of(example: Asked) -> Iterator[tuple[Picture, str]]:
    """All pairs that an example asks about; of queries, those with the entries of the gallery, in order."""
    if not isinstance(example, Query):
        yield from product(own_pictures(example), own_texts(example))
        return
    for entry in example.gallery:
        if isinstance(entry, Picture):
            assert example.text is not None
            yield entry, example.text
        else:
            assert example.image is not None
            yield example.image, entry


class ByChoices(Similarities):
    """A model that is shown an image with both captions of an example, in both orders.

    `evaluation.answers.figures.scores` makes scores of what it chooses. Choices are not kept in the store: a scorer
    keeps its own.
    """

    def __init__(self, scorer: Chooser, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer, self.batch = scorer, batch
        self._window: dict[tuple[bytes, tuple[str, str]], tuple[float, float]] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        asked: dict[bytes, set[tuple[str, str]]] = {}
        for one in examples:
            if not isinstance(one, Matching):
                raise NotApplicable(
                    f"{self.name}: chooses between two captions of an image, which example {one.key} does not ask for; "
                    "name a dual encoder such as open_clip:ViT-B-32:openai, or openai-yesno:MODEL"
                )
            for picture in one.images:
                if (name := self._name_or_none(picture)) is not None:
                    asked.setdefault(name, set()).add(one.captions)
        self._window = {}
        named = self._named(examples, ())
        decoded = self.pictures.decoded(((name, named[name][0]) for name in asked), lambda image: image, 2 * self.batch)
        while some := [*islice(decoded, self.batch)]:
            pairs = [(name, image, two) for name, _, image in some for two in sorted(asked[name])]
            images = [image for _, image, _ in pairs]
            # Both orders in one call: a server is asked for all of them side by side.
            captions = [two for _, _, two in pairs]
            chosen = self.scorer.choose(images * 2, captions + [two[::-1] for two in captions])
            self.passes.done += len(chosen)
            for place, (name, _, two) in enumerate(pairs):
                self._window[name, two] = scores(chosen[place], chosen[len(pairs) + place])
        return self._left_out(examples)

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        first, second = texts
        rows = [self._window[self.pictures.name(picture), (first, second)] for picture in images]
        return np.array(rows, np.float32)

    def gallery(self, query: object) -> Floats:
        """No query comes here: `prepare` refuses them."""
        raise NotApplicable(f"{self.name}: chooses between two captions; it cannot rank a gallery")
