"""Filters of captions: words of motion, and pairs that are said alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need, Place
from twinset.models.spacy_pipelines import EMBEDDED, LIBRARIES, Pipeline, check_installed, find_pipeline, load_pipeline


class MotionWords(Filter):
    """Drops captions that hold one of ``words`` as a whole word: a still frame cannot show motion (EqBen, B.2).

    Whole words, in any case: "pick up" and "pick-up" hold ``up``; "cup", "upper" and "upside" do not.

    words: the paper's five, which it gives as examples, and their other spellings.
    """

    kind: Literal["motion-words"]
    words: tuple[str, ...] = ("up", "upward", "upwards", "down", "downward", "downwards", "toward", "towards")

    version: ClassVar[int] = 1
    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {
        "motion-word": "every caption of an image has a word of motion, which a still frame cannot show"
    }

    @cached_property
    def _motion(self) -> re.Pattern[str]:
        words = (r"\s+".join(map(re.escape, word.split())) for word in self.words)
        # "(?!)" matches nothing: without words, every caption stays.
        either = "|".join(word for word in words if word) or "(?!)"
        return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def judge(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """Without the captions of motion, or a drop when a side has none left."""
        sides = candidate.captions0, candidate.captions1
        still0, still1 = (tuple(text for text in side if not self._motion.search(text)) for side in sides)
        return replace(candidate, captions0=still0, captions1=still1) if still0 and still1 else Drop("motion-word")


def words(caption: str) -> tuple[str, ...]:
    """What a caption says, whatever its case, spacing and punctuation."""
    folded = unicodedata.normalize("NFKC", caption).casefold()
    # Categories P, Z and C are punctuation, separators and control characters; marks and symbols tell words apart.
    spaced = (" " if unicodedata.category(character)[0] in "PZC" else character for character in folded)
    return tuple("".join(spaced).split())


def led_by_difference(
    candidate: CaptionedCandidate, read: Callable[[str], Any], alike: Callable[[Any, Any], bool]
) -> CaptionedCandidate | None:
    """The candidate with the first captions that differ moved to the front of both lists; None where none differ.

    Rather captions that the other picture does not have: with (a, b) and (a, c) the pair is b and c, since a holds for
    both pictures.

    read: a caption as ``alike`` compares it.
    """
    read0, read1 = [[read(caption) for caption in side] for side in (candidate.captions0, candidate.captions1)]
    same = [[alike(first, second) for second in read1] for first in read0]
    differing = [(i, j) for i, row in enumerate(same) for j, equal in enumerate(row) if not equal]
    if not differing:
        return None
    i, j = min(differing, key=lambda pair: any(same[pair[0]]) + any(row[pair[1]] for row in same))
    captions0, captions1 = _led_by(candidate.captions0, i), _led_by(candidate.captions1, j)
    return replace(candidate, captions0=captions0, captions1=captions1)


def _led_by(captions: tuple[str, ...], first: int) -> tuple[str, ...]:
    return (captions[first], *captions[:first], *captions[first + 1 :])


class EqualCaptions(Filter):
    """Drops pairs whose captions all say the same; leads with the first two that differ.

    Case, spaces and punctuation do not make a difference.
    """

    kind: Literal["equal-captions"]

    version: ClassVar[int] = 1
    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "no caption of one image differs from those of the other"}

    def judge(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """The candidate as `led_by_difference`."""
        return led_by_difference(candidate, words, tuple.__eq__) or Drop("equal-captions")


REMEMBERED = 100_000  # captions: those of a video come in many pairs

#: A word as what it can be a form of.
Forms = frozenset[str]


class EqualLemmas(Filter):
    """Drops pairs whose captions all say the same in some form of their verbs; leads with the first two that do not.

    Nouns keep their number: one pancake and two pancakes are two pictures. Opt-in: no paper asks for it. EqBen (B.2)
    had people look at EQ-GEBC instead.

    pipeline: spaCy's, by name or folder; ``en_captions_sm`` comes with twinset.
    """

    kind: Literal["equal-lemmas"]
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)

    version: ClassVar[int] = 2
    isolation = "process"  # spaCy holds the interpreter's lock
    libraries = LIBRARIES
    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {
        "equal-lemmas": "no caption of one image differs from those of the other in more than forms of verbs"
    }

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_installed(key, self.pipeline)

    def runs_on(self) -> str:
        """The tagger is a neural network on the CPU."""
        return "cpu"

    def weights(self) -> dict[str, str]:
        return {"pipeline": self._pipeline.digest}

    def judge(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """The candidate as `led_by_difference`, of captions that `say_alike`."""
        led = led_by_difference(candidate, lambda caption: forms(caption, self._pipeline), say_alike)
        return led or Drop("equal-lemmas")

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.pipeline)


def say_alike(first: Sequence[Forms], second: Sequence[Forms]) -> bool:
    """Whether two captions have words of the same forms in the same order."""
    return len(first) == len(second) and all(map(frozenset.intersection, first, second))


@lru_cache(maxsize=REMEMBERED)
def forms(caption: str, pipeline: Pipeline) -> tuple[Forms, ...]:
    """The words of a caption as `words` tells them apart; a verb also as its lemma.

    The pipeline ends lemmas of rare verbs wrongly ("tapp", "twiste"), so that a verb is them without this letter too.
    """
    # Without lemmas every two verbs would be forms of one, and the filter would drop nearly all.
    read, nlp = list[Forms](), load_pipeline(pipeline, ("LEMMA", "POS"))
    with nlp.memory_zone():
        for token in nlp(" ".join(caption.split())):
            own = words(token.text)
            if token.pos_ in ("VERB", "AUX") and len(own) == 1 and (lemma := token.lemma_.casefold()) != own[0]:
                ends_wrongly = len(lemma) > 2 and (lemma[-1] == "e" or lemma[-1] == lemma[-2])
                read.append(frozenset({*own, lemma, lemma[:-1] if ends_wrongly else lemma}))
            else:
                read += [frozenset({word}) for word in own]
    return tuple(read)
