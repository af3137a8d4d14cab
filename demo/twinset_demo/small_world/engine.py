"""Answers questions about pictures of the small world by measuring them (`small_world.checker`); nothing is learned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from twinset import WrongUse
from twinset.contracts.kinds.samples import Pixels
from twinset.models.visual_questions.settings import Answers, Inquiry, Unanswered
from twinset.shards.media.decode import decode
from twinset_demo.small_diffusion.painter import SIZE
from twinset_demo.small_diffusion.relations import RELATIONS
from twinset_demo.small_diffusion.scenes import COLOURS, COUNTS, OBJECTS, PLACES, POSITIONS, SIZES, STYLES, TIMES
from twinset_demo.small_world.checker import Seen, read_picture
from twinset_demo.small_world.relations import SeenThings, read_arrangement_picture, relation_between

_WORD = re.compile(r"[a-z]+")


def _words() -> dict[str, tuple[str, str]]:
    """What a word of a question asks for: an attribute of `Seen`, and the value that it must have."""
    found = {one: ("style", one) for one in STYLES}
    found |= {one: ("count", one) for one in COUNTS[1:]}
    found |= {one: ("size", one) for one in SIZES if one}
    found |= {one: ("colour", one) for one in COLOURS}
    found |= {form: ("shape", one) for one, plural in OBJECTS.items() for form in (one, plural)}
    # Of a phrase such as "on the left" the last word; "at night" is asked for as "Is it night?".
    phrases = {"position": POSITIONS, "place": PLACES, "time": TIMES}
    return found | {one.split()[-1]: (name, one) for name, ones in phrases.items() for one in ones if one}


class SmallWorldChecker:
    """An engine (`models.visual_questions.settings.VisualQuestionAnswerer`) for 64 × 64 pictures.

    A question is answered yes where all that its words name is seen, as in "Is the star on the left?". Where one of an
    image's questions names two things, as in "Is the star above the box?", all are about pictures of two things:
    "Is the box red?" is true where one of them is a red box, and not only where all are.
    """

    micro_batch, threads = 1, 1

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """As `VisualQuestionAnswerer.answers`: 1 or 0. Raises `WrongUse` for an image of another size."""
        return [self._answered(one) for one in inquiries]

    def device(self) -> None:
        """No network: the same answers everywhere."""

    def weights(self) -> Mapping[str, str]:
        """None."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> SmallWorldChecker:
        """Itself: it has no passes."""
        return self

    def _answered(self, one: Inquiry) -> Answers:
        pixels: Pixels = np.asarray(decode(one.image, one.key))
        if pixels.shape != (SIZE, SIZE, 3):
            raise WrongUse(
                f"{one.key}: an image of {pixels.shape[1]} x {pixels.shape[0]} pixels, and the small world's have "
                f"{SIZE} x {SIZE}; name another engine, or images that the small model drew"
            )
        seen = read_picture(pixels)
        named = [self._named(question) for question in one.questions]
        several = any(len(_values(asked, "shape")) > 1 for asked in named)
        things = read_arrangement_picture(pixels) if several else None
        answers = []
        for question, asked in zip(one.questions, named, strict=True):
            of_two = len(_values(asked, "shape")) > 1
            relation = next((phrase for phrase in RELATIONS if of_two and phrase in question.lower()), None)
            if not asked or (of_two and relation is None):
                return Unanswered("no-answer", f"the small world has no word for {question[:100]!r}")
            if things is None:
                answers.append(float(all(_holds(seen, name, value) for name, value in asked)))
            else:
                answers.append(float(_true_of(things, seen, question, asked, relation)))
        return answers

    def _named(self, question: str) -> list[tuple[str, str]]:
        """What the words of a question ask for, in their order."""
        return [self._vocabulary[word] for word in _asked(question) if word in self._vocabulary]

    @cached_property
    def _vocabulary(self) -> dict[str, tuple[str, str]]:
        return _words()


def _asked(question: str) -> Iterator[str]:
    yield from _WORD.findall(question.lower())


def _holds(seen: Seen, name: str, value: str) -> bool:
    return bool(getattr(seen, name) == value)


def _values(asked: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [value for attribute, value in asked if attribute == name]


def _true_of(
    seen: SeenThings, whole: Seen, question: str, asked: Sequence[tuple[str, str]], relation: str | None
) -> bool:
    """Whether a question is true of a picture of two things.

    "The other ball" is any ball: of two balls a question does not tell which one it means.
    """
    shapes, colours = _values(asked, "shape"), _values(asked, "colour")
    if relation is not None:
        pairs = ((one, other) for one in seen.things for other in seen.things if one is not other)
        return any(
            [one.shape, other.shape] == shapes and relation_between(one, other) == relation for one, other in pairs
        )
    if not all(_holds(whole, name, value) for name, value in asked if name not in ("shape", "colour")):
        return False
    fit = [
        thing
        for thing in seen.things
        if all(thing.shape == shape for shape in shapes) and all(thing.colour == colour for colour in colours)
    ]
    wanted = 2 if "another" in _asked(question) else 1
    return len(fit) >= (wanted if shapes or colours else 0)
