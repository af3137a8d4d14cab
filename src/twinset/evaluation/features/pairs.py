"""Scores of models that read an image together with a text, and answers of those that only choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from twinset.evaluation.answers.figures import scores
from twinset.evaluation.examples import MATCHING_CHOICES, MATCHING_SCORES, Matching, OwnQuestion, Picture, Query
from twinset.evaluation.features.passes import lots
from twinset.evaluation.features.similarities import (
    AHEAD,
    TEXT_SHOWN,
    Asked,
    Left,
    Silence,
    Similarities,
    of_texts,
    own_pictures,
    own_texts,
)
from twinset.evaluation.features.store import FeatureStore, pair_name, text_name
from twinset.models.encoders.contract import Chooser, Floats, Matcher, NotApplicable, Question

if TYPE_CHECKING:
    from PIL.Image import Image


#: Of `MATCHING_SCORES`, with the scores of both captions alone: `evaluation.features.prior`.
PRIORS = pa.schema([*MATCHING_SCORES, ("prior0", pa.float32()), ("prior1", pa.float32())])


class ByPairs(Similarities):
    """Scores of a model that reads an image together with a text; each pair is scored once."""

    by_pairs = True

    def __init__(self, scorer: Matcher, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer = scorer
        if scorer.has_prior:
            self.matching = PRIORS
        self._window: dict[bytes, Floats] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        for example in examples:
            if self.scorer.has_prior and not isinstance(example, Matching):
                raise NotApplicable(
                    f"{self.name}: its prior is removed from two captions alone, and example {example.key} has others"
                )
            if of_texts(example):
                raise NotApplicable(
                    f"{self.name}: scores an image with a text, and example {example.key} asks how alike two texts "
                    "are; name a dual encoder, such as --model open_clip:ViT-B-32:openai"
                )
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
                    texts.setdefault(name, {})[self._pair(picture, text)] = text
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
            self.passes.run(some, lambda pairs: self.scorer.score(*zip(*pairs, strict=True)), bool(self.scorer.reasons))
        left_out = self._left_out(examples)
        usable = [one for one in examples if one.key not in left_out]
        self._window = self.store.find(self._pair(*pair) for one in usable for pair in pairs_of(one))
        silent, without = list[Silence](), self.passes.unanswered
        asked = 0
        for one in usable if self.scorer.reasons else ():
            for picture, text in pairs_of(one):
                asked += 1
                if (code := without.get(self._pair(picture, text))) is not None:
                    what = f"{picture.where} with {text[:TEXT_SHOWN]!r}"
                    silent.append(Silence(one.key, what, self.scorer.reasons[code]))
        self._note(silent, asked)
        without.clear()
        return left_out

    def _pair(self, picture: Picture, text: str) -> bytes:
        said = f"{text.asked} {text.answers[text.right]}" if isinstance(text, OwnQuestion) else text
        return pair_name(self.pictures.name(picture), text_name(said))

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        return self._scores(product(images, texts)).reshape(len(images), len(texts))

    def of_matching(self, example: Matching) -> dict[str, float | None]:
        found = super().of_matching(example)
        if self.scorer.has_prior:
            pairs = [self._window.get(self._pair(*pair)) for pair in pairs_of(example)]
            known = [float(pair[-1]) for pair in pairs if pair is not None]  # of the first image first
            found |= {f"prior{j}": known[j] if len(known) == len(pairs) else None for j in (0, 1)}
        return found

    def gallery(self, query: Query) -> Floats:
        return self._scores(pairs_of(query))

    def _scores(self, pairs: Iterable[tuple[Picture, str]]) -> Floats:
        """Scores of the pairs of an example: where one of them has no answer, all tie, which is strictly wrong."""
        found = [self._window.get(self._pair(*pair)) for pair in pairs]
        known = [one[0] for one in found if one is not None]
        if len(known) < len(found):
            return np.full(len(found), self.scorer.threshold or 0, np.float32)
        return np.array(known, np.float32)


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
    """A model that is asked which caption fits an image, which image a caption, or for the whole pairing.

    Each in both orders; of one image only the first. Choices are not kept in the store: a scorer keeps its own.
    """

    matching = MATCHING_CHOICES

    def __init__(self, scorer: Chooser, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer, self.batch = scorer, batch
        self._window: dict[str, dict[str, float | None]] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        asked = list[Matching]()
        for one in examples:
            if not isinstance(one, Matching):
                raise NotApplicable(
                    f"{self.name}: chooses between two captions or two images, which example {one.key} does not ask "
                    "for; name a dual encoder such as open_clip:ViT-B-32:openai, or openai-yesno:MODEL"
                )
            if len(one.images) == 1 and "text" not in self.scorer.directions:
                raise NotApplicable(f"{self.name}: asks about two images, and example {one.key} has one")
            asked.append(one)
        self._window, silences, count = {}, list[Silence](), 0
        for some in lots(asked, self.batch):
            named = self._named(some, ())
            wanted = ((name, picture) for name, (picture, _) in named.items())
            images = {name: image for name, _, image in self.pictures.decoded(wanted, lambda one: one, 2 * self.batch)}
            found = {one.key: self._questions(one, images) for one in some if self._unusable(own_pictures(one)) is None}
            # Both orders in one call: a server is asked for all of them side by side. The same question once.
            orders = [order for questions in found.values() for two in questions.values() for order in two]
            each = {_identity(one): one for one in orders}
            choices = dict(zip(each, self.scorer.choose(list(each.values())), strict=True))
            self.passes.done += len(each)
            count += len(orders)
            for key, questions in found.items():
                told = {name: tuple(choices[_identity(one)] for one in two) for name, two in questions.items()}
                self._window[key] = choice_columns(told)
                silences += [
                    Silence(key, f"{name}, {order}", said)
                    for name, two in told.items()
                    for order, said in zip(("in order", "in reverse"), two, strict=True)
                    if isinstance(said, str)
                ]
        self._note(silences, count)
        return self._left_out(examples)

    def _questions(self, example: Matching, images: dict[bytes, Image]) -> dict[str, tuple[Question, Question]]:
        """What is asked of an example by column, as shown in order and in reverse."""
        shown = tuple(images[self.pictures.name(picture)] for picture in example.images)
        directions, captions = self.scorer.directions, example.captions
        found: dict[str, tuple[Question, Question]] = {}
        if "text" in directions:
            for name, image in zip(("ipos2t", "ineg2t"), shown, strict=False):
                found[name] = Question("text", (image,), captions), Question("text", (image,), captions[::-1])
        if "image" in directions and len(shown) == 2:
            for name, caption in zip(("tpos2i", "tneg2i"), captions, strict=True):
                found[name] = Question("image", shown, (caption,)), Question("image", shown[::-1], (caption,))
        if "pairing" in directions and len(shown) == 2:
            found["pairing"] = Question("pairing", shown, captions), Question("pairing", shown, captions[::-1])
        return found

    def of_matching(self, example: Matching) -> dict[str, float | None]:
        return self._window[example.key]

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        """Nothing asks for it: a choice is no score."""
        raise NotApplicable(f"{self.name}: chooses; it has no scores")

    def gallery(self, query: object) -> Floats:
        """No query comes here: `prepare` refuses them."""
        raise NotApplicable(f"{self.name}: chooses between two; it cannot rank a gallery")


def _identity(question: Question) -> tuple[object, ...]:
    return question.direction, *(id(image) for image in question.images), *question.captions


def choice_columns(told: Mapping[str, tuple[tuple[int, ...] | str, ...]]) -> dict[str, float | None]:
    """Columns of `MATCHING_CHOICES` from what was chosen in order and in reverse, by column."""
    row: dict[str, float | None] = {}
    for name, two in told.items():
        straight, swapped = (None if isinstance(said, str) else said for said in two)
        if name == "pairing":  # captions are shown in reverse: the right ones of both images are 1 and 0 then
            placed = [_PAIRINGS.get(one) if one is not None else None for one in (straight, swapped)]
            row |= {"order12": float(placed[0] == 0), "order21": float(placed[1] == 1)}
        else:
            placed = [None if one is None else one[0] for one in (straight, swapped)]
        row[name] = scores(*placed)[name in ("ineg2t", "tneg2i")]
    return row


_PAIRINGS: dict[tuple[int, ...], int] = {(0, 1): 0, (1, 0): 1}
