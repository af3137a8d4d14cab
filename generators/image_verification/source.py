"""Asks what captions say of generated images; a row an image (BiVLC, section 3.2)."""

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
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.image_verification.questions import LONGEST, YES, Answers, ImageQuestion, QuestionSource
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.models.language_models.answers import ShownImage

_TEXT = ("image_key", "image_sha256", "caption_id", "caption", "negative_caption", "questions")
_PLANNED = ("key", "identity", "split", "group", "tar", "image_sha256", "caption", "negative_caption")
Asked = Sequence[Sequence[ImageQuestion]]  # about both captions


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCandidate(Candidate):
    """An image of the earlier stage.

    image_key, tar: its key, and where it lies. captions: the one that it was generated from, and the original one.
    """

    image_key: str
    tar: str
    image_sha256: str
    captions: tuple[str, ...]


class ImageVerification(QuestionSource):
    """Yes/no questions of captions, asked of the images that were generated from them.

    images: the stage of text pairs, or the folder of a finished one. questions: who writes them; by itself one question
    about each whole caption. engine: what answers. threshold: images with a lower score, 0 to 1, are rejected, by the
    kind of the first question that is answered no; none are when absent. licence: of the captions.
    """

    kind: Literal["image-verification"]
    images: StageName
    threshold: float | None = Field(default=None, gt=0, le=1)
    licence: str = ""

    version = 5
    candidate = VerifiedCandidate
    makes = "table"
    row_schema = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in _TEXT),
            pa.field("question_count", pa.int32(), nullable=False),
            pa.field("caption_score", pa.float64(), nullable=False),
            pa.field("original_score", pa.float64()),
            pa.field("number", pa.int32(), nullable=False),
        ]
    )
    paper = BIVLC
    group = "caption"
    verb = "asked of"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-verification")

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "text-pair":
            return f"questions are asked of text pairs, and {earlier.kind} makes {earlier.makes}s; name another stage"
        return ""

    def plan(self) -> Iterator[VerifiedCandidate]:
        """Images in the order and groups of the earlier stage, whose index is read a row group at a time.

        Raises `WrongUse` when that stage has no images.
        """
        for row in self.earlier().pictured_rows(_PLANNED):
            placed = {**self.identified(*json.loads(row["identity"])), "split": row["split"], "group": row["group"]}
            yield VerifiedCandidate(
                **placed,
                image_key=row["key"],
                tar=row["tar"],
                image_sha256=row["image_sha256"],
                captions=(row["caption"], row["negative_caption"]),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises:
            BrokenTar: an image is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the engine does not fit.
        """
        planned = cast(Sequence[VerifiedCandidate], candidates)
        readable = [pair for pair in planned if max(map(len, pair.captions)) <= LONGEST]
        questions = self.questions_about(text for pair in readable for text in pair.captions)
        asked = [pair for pair in readable if questions[pair.captions[0]]]
        stored = self.earlier().samples((pair.tar, pair.image_key) for pair in asked)
        answers = self.answers({pair.key: [self._inquiry(pair, stored[pair.image_key], questions)] for pair in asked})
        for pair in planned:
            given = answers.get(pair.key)
            if given is None:
                reason = "no-question" if pair in readable else "caption-too-long"
                yield Rejected(pair.key, reason, pair.captions[0][:200])
            elif isinstance(given, Rejected):
                yield given
            else:
                provenance = stored[pair.image_key].json.provenance
                yield self._judged(pair, [questions[text] for text in pair.captions], given[0], provenance)

    def _inquiry(
        self, candidate: VerifiedCandidate, stored: Stored[Any], questions: Mapping[str, Sequence[ImageQuestion]]
    ) -> tuple[ShownImage, tuple[str, ...]]:
        """The questions of both captions about an image."""
        self.earlier().check_images(candidate.tar, stored, {"image": candidate.image_sha256})
        asked = tuple(dict.fromkeys(question.question for text in candidate.captions for question in questions[text]))
        media_type = f"image/{'jpeg' if stored.extension == 'jpg' else stored.extension}"
        return ShownImage(stored.images["image"], media_type, candidate.image_key), asked

    def _judged(
        self, candidate: VerifiedCandidate, questions: Asked, answers: Answers, provenance: Mapping[str, Any]
    ) -> TableRows | Rejected:
        """The row of an image with the answers to the questions of its caption; rejected where its score is too low."""
        own, original = questions
        answered = [{**question.as_json(), "yes": float(answers[question.question])} for question in own]
        number, score = provenance.get("number"), self.questions.score(own, answers)
        if score < (self.threshold or 0):
            wrong = next((question for question in answered if question["yes"] < YES), answered[0])
            return Rejected(candidate.key, f"wrong-{wrong['kind']}", f"score {score:.3f}; {wrong['question'][:200]}")
        row: dict[str, Any] = {
            "image_key": candidate.image_key,
            "image_sha256": candidate.image_sha256,
            "caption_id": str(provenance.get("caption_id") or ""),
            "caption": candidate.captions[0],
            "negative_caption": candidate.captions[1],
            "questions": json.dumps(answered, ensure_ascii=False),
            "question_count": len(own),
            "caption_score": score,
            "original_score": self.questions.score(original, answers) if original else None,
            "number": number if isinstance(number, int) else 0,
        }
        return TableRows(candidate.key, [row])
