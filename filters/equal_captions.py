"""Pairs that are said alike, word by word or but for the forms of their verbs: two pictures, one caption."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop
from twinset.contracts.parts import CaptionFilter, Filter, Isolation
from twinset.contracts.source import Need, Place
from twinset.models.spacy_pipelines import EMBEDDED, LIBRARIES, Pipeline, check_installed, find_pipeline, load_pipeline


class EqualCaptions(Filter):
    """Drops pairs whose captions all say the same; leads with the first two that differ."""

    kind: Literal["equal-captions"]

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "no caption of one image differs from those of the other"}

    def open(self) -> EqualCaptionsFilter:
        return EqualCaptionsFilter()


class EqualCaptionsFilter(CaptionFilter):
    """Leads both lists with the first captions that differ, preferring ones that the other picture does not have.

    With (a, b) and (a, c) the pair is b and c: a holds for both pictures. Case, spaces and punctuation do not make a
    difference. Drops the candidate when no two captions differ.
    """

    version: ClassVar[int] = 1

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        words0, words1 = list(map(words, candidate.captions0)), list(map(words, candidate.captions1))
        differing = [(i, j) for i in range(len(words0)) for j in range(len(words1)) if words0[i] != words1[j]]
        if not differing:
            return Drop("equal-captions")
        i, j = min(differing, key=lambda pair: (words0[pair[0]] in words1) + (words1[pair[1]] in words0))
        return replace(candidate, captions0=led_by(candidate.captions0, i), captions1=led_by(candidate.captions1, j))


def words(caption: str) -> tuple[str, ...]:
    """What a caption says, whatever its case, spacing and punctuation."""
    folded = unicodedata.normalize("NFKC", caption).casefold()
    # Categories P, Z and C are punctuation, separators and control characters; marks and symbols tell words apart.
    spaced = (" " if unicodedata.category(character)[0] in "PZC" else character for character in folded)
    return tuple("".join(spaced).split())


def led_by(captions: tuple[str, ...], first: int) -> tuple[str, ...]:
    """The captions with the one at a place moved to the front."""
    return (captions[first], *captions[:first], *captions[first + 1 :])


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

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {
        "equal-lemmas": "no caption of one image differs from those of the other in more than forms of verbs"
    }

    def open(self) -> EqualLemmasFilter:
        return EqualLemmasFilter(self)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_installed(key, self.pipeline)


class EqualLemmasFilter(CaptionFilter):
    """As `filters.equal_captions.EqualCaptionsFilter`, for captions that `say_alike`."""

    version: ClassVar[int] = 2
    isolation: ClassVar[Isolation] = "process"  # spaCy holds the interpreter's lock
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    def __init__(self, settings: EqualLemmas) -> None:
        self.settings = settings

    def device(self) -> str:
        """The tagger is a neural network on the CPU."""
        return "cpu"

    def weights(self) -> dict[str, str]:
        return {"pipeline": self._pipeline.digest}

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """The candidate, led by two captions that differ, or ``equal-lemmas``."""
        sides = candidate.captions0, candidate.captions1
        forms0, forms1 = ([forms(caption, self._pipeline) for caption in side] for side in sides)
        alike = [[say_alike(one, other) for other in forms1] for one in forms0]
        differing = [(i, j) for i, row in enumerate(alike) for j, same in enumerate(row) if not same]
        if not differing:
            return Drop("equal-lemmas")
        # Rather captions that the other picture does not have, too.
        i, j = min(differing, key=lambda pair: any(alike[pair[0]]) + any(row[pair[1]] for row in alike))
        return replace(candidate, captions0=led_by(candidate.captions0, i), captions1=led_by(candidate.captions1, j))

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.settings.pipeline)


def say_alike(one: Sequence[Forms], other: Sequence[Forms]) -> bool:
    """Whether two captions have words of the same forms in the same order."""
    return len(one) == len(other) and all(map(frozenset.intersection, one, other))


@lru_cache(maxsize=REMEMBERED)
def forms(caption: str, pipeline: Pipeline) -> tuple[Forms, ...]:
    """The words of a caption as `words` tells them apart; a verb also as its lemma.

    The pipeline ends lemmas of rare verbs wrongly ("tapp", "twiste"), so that a verb is them without this letter too.
    """
    # Without lemmas every two verbs would be forms of one, and the filter would drop nearly all.
    found, nlp = list[Forms](), load_pipeline(pipeline, ("LEMMA", "POS"))
    with nlp.memory_zone():
        for token in nlp(" ".join(caption.split())):
            own = words(token.text)
            if token.pos_ in ("VERB", "AUX") and len(own) == 1 and (lemma := token.lemma_.casefold()) != own[0]:
                ends_wrongly = len(lemma) > 2 and (lemma[-1] == "e" or lemma[-1] == lemma[-2])
                found.append(frozenset({*own, lemma, lemma[:-1] if ends_wrongly else lemma}))
            else:
                found += [frozenset({word}) for word in own]
    return tuple(found)
