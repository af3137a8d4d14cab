"""Asks what both captions of a pair say of both images; a row a pair (VisMin, section 3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.image_verification.questions import LONGEST, Answers, Inquiry, QuestionSource
from twinset.generators.reasons import reasons_beside
from twinset.models.language_models.answers import ShownImage
from twinset_extras.image_questions.questions import FactQuestion, counted, distinguishing
from twinset_extras.image_questions.settings import Facts

SIDES = (0, 1)
_HASHES, _CAPTIONS = ("image0_sha256", "image1_sha256"), ("caption0", "caption1")
#: Questions of both captions of a pair.
Asked = Sequence[Sequence[FactQuestion]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPair(Candidate):
    """A pair of the earlier stage. subject, tar: its key, and where it lies. sha256s: of its images."""

    subject: str
    tar: str
    sha256s: tuple[str, ...]
    captions: tuple[str, ...]


class PairVerification(QuestionSource):
    """Yes/no questions of both captions of a pair, asked of both images.

    pairs: the stage of pairs, or the folder of a finished one. questions: how they are read off captions. engine: what
    answers.
    threshold: pairs are rejected if one image has a lower score, 0 to 1, by its own caption, or if a question that one
    caption alone asks is not answered yes for its image and no for the other; none are when absent.
    licence: of the captions.
    """

    kind: Literal["pair-verification"]
    pairs: StageName
    questions: Facts = Facts()
    threshold: float | None = Field(default=None, gt=0, le=1)
    licence: str = ""

    version = 1
    candidate = VerifiedPair
    makes = "table"
    row_schema = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("subject", *_HASHES, *_CAPTIONS, "questions")),
            *(pa.field(name, pa.int32(), nullable=False) for name in ("question_count", "distinguishing_count")),
            *(pa.field(name, pa.float64(), nullable=False) for name in ("score0", "score1", "distinguishing_score")),
        ]
    )
    paper = Reference("VisMin", "https://arxiv.org/abs/2407.16772", bibtex("awal2024vismin"))
    verb = "asked of"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "pair-verification")

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "pair":
            return f"questions are asked of pairs, and {earlier.kind} makes {earlier.makes}s; name another stage"
        return ""

    def plan(self) -> Iterator[VerifiedPair]:
        """Pairs in the order and groups of the earlier stage. Raises `WrongUse` when that stage has no images."""
        for row in self.earlier().pictured_rows(("key", "split", "group", "tar", *_HASHES, *_CAPTIONS)):
            # `screened-pairs`, which reads the verdicts, knows pairs by their keys.
            placed = {**self.identified(row["key"]), "split": row["split"], "group": row["group"]}
            sha256s, captions = ((row[first], row[second]) for first, second in (_HASHES, _CAPTIONS))
            yield VerifiedPair(**placed, subject=row["key"], tar=row["tar"], sha256s=sha256s, captions=captions)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises:
            BrokenTar: a pair is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the engine does not fit.
        """
        planned = cast(Sequence[VerifiedPair], candidates)
        readable = [pair for pair in planned if max(map(len, pair.captions)) <= LONGEST]
        questions = self.questions_about(text for pair in readable for text in pair.captions)
        asked: dict[str, Asked] = {pair.key: [questions[text] for text in pair.captions] for pair in readable}
        askable = [pair for pair in readable if any(_alone(asked[pair.key]))]
        stored = self.earlier().samples((pair.tar, pair.subject) for pair in askable)
        answers = self.answers(
            {pair.key: self._inquiries(pair, stored[pair.subject], asked[pair.key]) for pair in askable}
        )
        for pair in planned:
            given = answers.get(pair.key)
            if given is None:
                reason = "no-question" if pair.key in asked else "caption-too-long"
                yield Rejected(pair.key, reason, pair.captions[0][:200])
            elif isinstance(given, Rejected):
                yield given
            else:
                yield self._judged(pair, asked[pair.key], given)

    def _inquiries(self, pair: VerifiedPair, stored: Stored[Any], asked: Asked) -> list[Inquiry]:
        """The questions of both captions, of each image."""
        self.earlier().check_images(pair.tar, stored, dict(zip(("image0", "image1"), pair.sha256s, strict=True)))
        questions = tuple(dict.fromkeys(question.question for of_caption in asked for question in of_caption))
        media_type = f"image/{'jpeg' if stored.extension == 'jpg' else stored.extension}"
        return [(ShownImage(stored.images[f"image{side}"], media_type, pair.subject), questions) for side in SIDES]

    def _judged(self, pair: VerifiedPair, asked: Asked, answers: Sequence[Answers]) -> TableRows | Rejected:
        """The row of a pair with all answers of both images; rejected by the question that is answered wrongly.

        Of several it is the first, of those that tell the captions apart if there is one; without one that of which the
        model is least sure.
        """
        answered = _answered(asked, answers)
        # A caption that asks for nothing is shown by any image.
        scores = [self.questions.score(own, given) if own else 1.0 for own, given in zip(asked, answers, strict=True)]
        apart = [question["right"] for question in answered if question["distinguishes"]]
        if self.threshold is not None and not (all(apart) and min(scores) >= self.threshold):
            mistakes = sorted((q for q in answered if not q["right"]), key=lambda q: not q["distinguishes"])
            wrong = mistakes[0] if mistakes else min(answered, key=lambda q: q["yes"][q["caption"]])
            yes = " and ".join(f"{value:.2f}" for value in wrong["yes"])
            detail = f"of caption {wrong['caption']}: {wrong['question'][:200]} yes {yes} for image 0 and 1"
            return Rejected(pair.key, f"wrong-{wrong['kind']}", detail)
        row = {
            "subject": pair.subject,
            **dict(zip((*_HASHES, *_CAPTIONS), (*pair.sha256s, *pair.captions), strict=True)),
            "questions": json.dumps(answered, ensure_ascii=False),
            "question_count": len(answered),
            "distinguishing_count": len(apart),
            "score0": scores[0],
            "score1": scores[1],
            "distinguishing_score": sum(apart) / len(apart),
        }
        return TableRows(pair.key, [row])


def _alone(asked: Asked) -> list[set[tuple[str, ...]]]:
    """Of each caption, the meanings of the questions that the other one does not ask."""
    return [distinguishing(asked[side], asked[1 - side]) for side in SIDES]


def _answered(asked: Asked, answers: Sequence[Answers]) -> list[dict[str, Any]]:
    """All questions with what is answered of both images.

    One is answered rightly if it counts for the image of its caption and, where the other caption does not ask it, not
    for the other image.
    """
    answered: list[dict[str, Any]] = []
    for side, alone in enumerate(_alone(asked)):
        here, there = (counted(asked[side], answers[image]) for image in (side, 1 - side))
        answered += [
            {
                "caption": side,
                **question.as_json(),
                "distinguishes": question.meaning in alone,
                "yes": [float(of_image[question.question]) for of_image in answers],
                "counted": counts,
                "right": counts and not (question.meaning in alone and counts_there),
            }
            for question, counts, counts_there in zip(asked[side], here, there, strict=True)
        ]
    return answered
