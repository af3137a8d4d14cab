"""Asks what captions say of the images of a stage; a row an image or pair (BiVLC, section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.image_verification import pairs
from twinset.generators.image_verification.pairs import PairCandidate, problem_of
from twinset.generators.image_verification.questions import (
    LONGEST,
    YES,
    ImageQuestion,
    QuestionSource,
    distinguishing,
)
from twinset.generators.image_verification.scoring import answered, score_of
from twinset.generators.papers import BIVLC
from twinset.models.visual_questions.settings import Inquiry, QuestionAnswerer

_READ = ("key", "identity", "split", "group", "tar", "image_sha256", "caption", "negative_caption")
_TEXT = ("image_key", "image_sha256", "caption_id", "caption", "negative_caption", "questions")
COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _TEXT),
        pa.field("question_count", pa.int32(), nullable=False),
        pa.field("caption_score", pa.float64(), nullable=False),
        pa.field("original_score", pa.float64()),
        pa.field("number", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationCandidate(Candidate):
    """An image of an earlier stage. tar, image_key: where it lies. caption: what it was generated from."""

    tar: str
    image_key: str
    image_sha256: str
    caption: str
    negative_caption: str

    @property
    def stored_key(self) -> str:
        return self.image_key

    @property
    def texts(self) -> tuple[str, str]:
        return self.caption, self.negative_caption

    @property
    def images(self) -> Mapping[str, str]:
        """sha256 by role."""
        return {"image": self.image_sha256}


_Planned = VerificationCandidate | PairCandidate


class ImageVerification(QuestionSource):
    """Yes/no questions of captions, asked of the images that should show them.

    A generated image is asked about its caption, both images of a pair about both captions.

    images: the stage of text pairs or pairs, or the folder of a finished one. questions: who writes them; by itself
    one question about each whole caption. engine: what answers. threshold: images with a lower score, 0 to 1, are
    rejected, by the kind of the first question that is answered no; none are when absent. Pairs are rejected if one
    image has a lower score by its own caption, or if a question that one caption alone asks is not answered yes for
    its image and no for the other.
    licence: of the captions.
    """

    kind: Literal["image-verification"]
    images: StageName
    engine: QuestionAnswerer
    threshold: float | None = Field(default=None, gt=0, le=1)
    licence: str = ""

    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "asked of"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-verification")

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes not in ("text-pair", "pair"):
            return (
                f"questions are asked of text pairs and pairs, and {earlier.kind} makes {earlier.makes}s; name another"
            )
        return ""

    version = 3

    @cached_property
    def candidate(self) -> type[_Planned]:  # type: ignore[override] # of a class as a rule
        return PairCandidate if "caption1" in self.earlier().columns() else VerificationCandidate

    @property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]
        return pairs.COLUMNS if self.candidate is PairCandidate else COLUMNS

    def plan(self) -> Iterator[_Planned]:
        """Images or pairs in the order of the earlier stage, whose index is read a row group at a time.

        Raises `WrongUse` when that stage has no images.
        """
        paired = self.candidate is PairCandidate
        for row in self.earlier().pictured_rows(pairs.READ if paired else _READ):
            key = row.pop("key")
            if paired:
                # Whoever reads the verdicts, such as `screened-pairs`, knows pairs by their keys.
                yield PairCandidate(**{**self.identified(key), **row}, subject=key)
            elif max(len(row["caption"]), len(row["negative_caption"])) > LONGEST:
                self.excluded.add("caption-too-long", key)
            else:
                own = self.identified(*json.loads(row["identity"]))["key"]
                yield VerificationCandidate(key=own, image_key=key, **row)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises:
            BrokenTar: an image is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the engine does not fit.
        """
        planned = cast(Sequence[_Planned], candidates)
        readable = [one for one in planned if max(map(len, one.texts)) <= LONGEST]
        questions = self.questions_about(text for one in readable for text in one.texts)
        askable = [one for one in readable if _tells(one, questions)]
        stored = self.earlier().samples((one.tar, one.stored_key) for one in askable)
        inquiries = {one.key: self._inquiries(one, stored[one.stored_key], questions) for one in askable}
        answers = self.answers(inquiries)
        for one in planned:
            if one.key not in inquiries:
                reason = "no-question" if one in readable else "caption-too-long"
                yield Rejected(one.key, reason, one.texts[0][:200])
            elif isinstance(found := answers[one.key], Rejected):
                yield found
            else:
                yield self._judged(one, stored[one.stored_key], questions, found)

    def _judged(
        self,
        one: _Planned,
        stored: Stored[Any],
        questions: Mapping[str, list[ImageQuestion]],
        found: Sequence[Mapping[str, float]],
    ) -> TableRows | Rejected:
        threshold = self.threshold
        if isinstance(one, PairCandidate):
            row = pairs.row_of(one, tuple(questions[text] for text in one.texts), found)
            problem = problem_of(row, threshold) if threshold is not None else None
            return TableRows(one.key, [row]) if problem is None else Rejected(one.key, *problem)
        row = _row(one, stored, questions, found[0])
        if threshold is None or row["caption_score"] >= threshold:
            return TableRows(one.key, [row])
        told = json.loads(row["questions"])
        first = next((each for each in told if each["yes"] < YES), told[0])
        detail = f"score {row['caption_score']:.3f}; {first['question'][:200]}"
        return Rejected(one.key, f"wrong-{first['kind']}", detail)

    def _inquiries(
        self, one: _Planned, stored: Stored[Any], questions: Mapping[str, list[ImageQuestion]]
    ) -> list[Inquiry]:
        """What is asked of each image: the questions of both captions."""
        self.earlier().check_images(one.tar, stored, one.images)
        media_type = f"image/{'jpeg' if stored.extension == 'jpg' else stored.extension}"
        asked = tuple(dict.fromkeys(each.question for text in one.texts for each in questions[text]))
        return [Inquiry(one.stored_key, stored.images[role], media_type, asked) for role in one.images]


def _tells(one: _Planned, questions: Mapping[str, list[ImageQuestion]]) -> bool:
    """Whether anything can be asked: of a caption, or of what tells two captions apart."""
    first, second = (questions[text] for text in one.texts)
    paired = isinstance(one, PairCandidate)
    return bool(distinguishing(first, second) | distinguishing(second, first) if paired else first)


def _row(
    one: VerificationCandidate,
    stored: Stored[Any],
    questions: Mapping[str, list[ImageQuestion]],
    found: Mapping[str, float],
) -> dict[str, Any]:
    asked, original = questions[one.caption], questions[one.negative_caption]
    told = [
        {**each.as_json(), "yes": float(found[each.question]), "counted": counts}
        for each, counts in zip(asked, answered(asked, found), strict=True)
    ]
    caption_id, number = (stored.json.provenance.get(name) for name in ("caption_id", "number"))
    return {
        "image_key": one.image_key,
        "image_sha256": one.image_sha256,
        "caption_id": str(caption_id or ""),
        "caption": one.caption,
        "negative_caption": one.negative_caption,
        "questions": json.dumps(told, ensure_ascii=False),
        "question_count": len(told),
        "caption_score": score_of(asked, found),
        "original_score": score_of(original, found) if original else None,
        "number": number if isinstance(number, int) else 0,
    }
