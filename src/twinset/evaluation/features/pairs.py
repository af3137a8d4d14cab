"""Scores of models that read an image together with a text, and answers of those that only choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from twinset.evaluation.answers.figures import scores
from twinset.evaluation.examples import MATCHING_CHOICES, Matching, OwnQuestion, Picture, Query
from twinset.evaluation.features.pictures import lots
from twinset.evaluation.features.similarities import (
    TEXT_SHOWN,
    Asked,
    Similarities,
    composed,
    own_pictures,
    own_texts,
)
from twinset.evaluation.features.store import FeatureStore, pair_name, text_name
from twinset.models.encoders.contract import Chooser, Direction, Floats, Matcher, Question

if TYPE_CHECKING:
    from PIL.Image import Image


class ByPairs(Similarities):
    """Scores of a model that reads an image together with a text; each pair is scored once."""

    by_pairs = True

    def __init__(self, scorer: Matcher, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer = scorer
        self._silent: dict[bytes, str] = {}  # why pairs have no answer

    def refusal(self, example: Asked) -> str | None:
        if not composed(example):
            return None
        what = "asks with both; name a rule and an encoder, such as --model image+text:open_clip:ViT-B-32:openai"
        return f"scores an image with a text, and example {example.key} {what}"

    def compute(self, examples: Sequence[Asked], pictures: dict[bytes, Picture], texts: dict[bytes, str]) -> None:
        asked: dict[bytes, dict[bytes, str]] = {}  # of each image by name: texts by the name of the pair
        for picture, text in (pair for example in examples for pair in pairs_of(example)):
            if isinstance(name := self.pictures.name_or_problem(picture), bytes):
                asked.setdefault(name, {})[self._pair(picture, text)] = text
        missing = set(self.store.missing(pair for of_image in asked.values() for pair in of_image))
        wanted = [(name, pictures[name]) for name, of_image in asked.items() if not missing.isdisjoint(of_image)]
        inputs = (
            (pair, f"{picture.where} with {text[:TEXT_SHOWN]!r}", (image, text))
            for name, picture, image in self.pictures.decoded(wanted, lambda image: image)
            for pair, text in asked[name].items()
            if pair in missing
        )
        reasons = self.scorer.reasons
        for names, values, seconds in self.passes(inputs, self._give, bool(reasons)):
            answered = ~np.isnan(values[:, 0])
            self.store.keep([names[at] for at in np.flatnonzero(answered)], values[answered, :1], seconds)
            self._silent |= {names[at]: reasons[int(values[at, 1])] for at in np.flatnonzero(~answered)}

    def _give(self, pairs: Sequence[tuple[Image, str]]) -> Floats:
        images, texts = zip(*pairs, strict=True)
        return self.scorer.score(images, texts)

    def _pair(self, picture: Picture, text: str) -> bytes:
        statement = f"{text.asked} {text.answers[text.right]}" if isinstance(text, OwnQuestion) else text
        return pair_name(self.pictures.name(picture), text_name(statement))

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        return self._scores(product(images, texts)).reshape(len(images), len(texts))

    def gallery(self, query: Query) -> Floats:
        return self._scores(pairs_of(query))

    def _scores(self, pairs: Iterable[tuple[Picture, str]]) -> Floats:
        """Scores of the pairs of an example: where one of them has no answer, all tie, which is strictly wrong."""
        names = [self._pair(*pair) for pair in pairs]
        kept = self.store.find(names)
        self.asked += len(names)
        if len(kept) < len({*names}):
            self.unanswered.update(self._silent[name] for name in names if name not in kept)
            return np.full(len(names), self.scorer.threshold or 0, np.float32)
        return np.concatenate([kept[name] for name in names])


def pairs_of(example: Asked) -> Iterator[tuple[Picture, str]]:
    """All pairs that an example asks about; of queries, those with the entries of the gallery, in order."""
    if not isinstance(example, Query):
        yield from product(own_pictures(example), own_texts(example))
        return
    for entry in example.gallery:
        if isinstance(entry, Picture):
            yield entry, example.text or ""
        elif example.image is not None:
            yield example.image, entry


class ByChoices(Similarities):
    """A model that is asked which caption fits an image, which image a caption, or for the whole pairing.

    Each in both orders; of one image only the first. Choices are not kept in the store: a scorer keeps its own.
    """

    matching = MATCHING_CHOICES

    def __init__(self, scorer: Chooser, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer = scorer
        self._choices: dict[str, dict[str, float | None]] = {}  # columns by the key of an example

    def refusal(self, example: Asked) -> str | None:
        if not isinstance(example, Matching):
            what = f"chooses between two captions or two images, which example {example.key} does not ask for"
            return f"{what}; name a dual encoder such as open_clip:ViT-B-32:openai, or openai-yesno:MODEL"
        if len(example.images) == 1 and "text" not in self.scorer.directions:
            return f"asks about two images, and example {example.key} has one"
        return None

    def compute(self, examples: Sequence[Asked], pictures: dict[bytes, Picture], texts: dict[bytes, str]) -> None:
        self._choices = {}
        for lot in lots((example for example in examples if isinstance(example, Matching)), self.batch):
            names = {self.pictures.name_or_problem(picture) for example in lot for picture in example.images}
            wanted = [(name, picture) for name, picture in pictures.items() if name in names]
            images = {name: image for name, _, image in self.pictures.decoded(wanted, lambda image: image)}
            broken = self.left_out(lot)
            asked = {example.key: self._questions(example, images) for example in lot if example.key not in broken}
            # Both orders in one call: a server is asked for all of them side by side.
            orders = [order for questions in asked.values() for versions in questions.values() for order in versions]
            choices = iter(self.scorer.choose(orders))
            self.computed += len(orders)
            self.asked += len(orders)
            for key, questions in asked.items():
                chosen = {name: (next(choices), next(choices)) for name in questions}
                self._choices[key] = choice_columns(chosen)
                self.unanswered.update(why for answers in chosen.values() for why in answers if isinstance(why, str))

    def _questions(self, example: Matching, images: Mapping[bytes, Image]) -> dict[str, tuple[Question, Question]]:
        """What is asked of an example by column, as shown in order and in reverse."""
        shown = tuple(images[self.pictures.name(picture)] for picture in example.images)
        captions = example.captions
        asked: list[tuple[str, Direction, tuple[Image, ...], tuple[str, ...]]] = [
            (name, "text", (image,), captions) for name, image in zip(("ipos2t", "ineg2t"), shown, strict=False)
        ]
        if len(shown) == 2:
            asked += [("tpos2i", "image", shown, captions[:1]), ("tneg2i", "image", shown, captions[1:])]
            asked.append(("pairing", "pairing", shown, captions))
        return {
            name: (
                Question(direction, pictures, texts),
                Question(direction, pictures[::-1] if direction == "image" else pictures, texts[::-1]),
            )
            for name, direction, pictures, texts in asked
            if direction in self.scorer.directions
        }

    def of_matching(self, example: Matching) -> dict[str, float | None]:
        return self._choices[example.key]


#: By what is chosen; of a pairing, the caption of either image: "1;1" is none.
_PLACES: dict[tuple[int, ...] | str, int] = {(0,): 0, (1,): 1, (0, 1): 0, (1, 0): 1}


def choice_columns(chosen: Mapping[str, tuple[tuple[int, ...] | str, ...]]) -> dict[str, float | None]:
    """Columns of `MATCHING_CHOICES` from what was chosen in order and in reverse, by column."""
    row: dict[str, float | None] = {}
    for name, answers in chosen.items():
        straight, swapped = map(_PLACES.get, answers)
        if name == "pairing":
            row |= {"order12": float(straight == 0), "order21": float(swapped == 1)}
        row[name] = scores(straight, swapped)[name in ("ineg2t", "tneg2i")]
    return row
