"""Asks what captions say of the images of a stage; a row an image or pair (BiVLC, section 3.2; VisMin, section 3)."""

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
from twinset.generators.image_verification.questions import (
    LONGEST,
    YES,
    Answers,
    ImageQuestion,
    QuestionSource,
    counted,
    distinguishing,
    score_of,
)
from twinset.generators.papers import BIVLC
from twinset.models.visual_questions.settings import Inquiry, QuestionAnswerer

SIDES = (0, 1)
_SHOWN = ("image0_sha256", "image1_sha256", "caption0", "caption1")
_TEXT = ("image_key", "image_sha256", "caption_id", "caption", "negative_caption", "questions")
IMAGE_COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _TEXT),
        pa.field("question_count", pa.int32(), nullable=False),
        pa.field("caption_score", pa.float64(), nullable=False),
        pa.field("original_score", pa.float64()),
        pa.field("number", pa.int32(), nullable=False),
    ]
)
PAIR_COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("subject", *_SHOWN, "questions")),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("question_count", "distinguishing_count")),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("score0", "score1", "distinguishing_score")),
    ]
)
#: Questions of both captions of a sample.
Asked = Sequence[Sequence[ImageQuestion]]
#: A row, the question that is answered wrongly if the sample is rejected, and what is said of it.
Judged = tuple[dict[str, Any], Mapping[str, Any] | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCandidate(Candidate):
    """A sample of an earlier stage with one or two images.

    subject, tar: its key, and where it lies. roles, sha256s: of its images. texts: its captions; of a single image the
    one that it was generated from, and the original one.
    """

    subject: str
    tar: str
    roles: tuple[str, ...]
    sha256s: tuple[str, ...]
    texts: tuple[str, ...]


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

    version = 4
    candidate = VerifiedCandidate
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

    @cached_property
    def _paired(self) -> bool:
        return "caption1" in self.earlier().columns()

    @property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]
        return PAIR_COLUMNS if self._paired else IMAGE_COLUMNS

    def plan(self) -> Iterator[VerifiedCandidate]:
        """Images or pairs in the order and groups of the earlier stage, whose index is read a row group at a time.

        Raises `WrongUse` when that stage has no images.
        """
        roles = ("image0", "image1") if self._paired else ("image",)
        texts = ("caption0", "caption1") if self._paired else ("caption", "negative_caption")
        hashes = [f"{role}_sha256" for role in roles]
        for row in self.earlier().pictured_rows(("key", "identity", "split", "group", "tar", *hashes, *texts)):
            # Who reads the verdicts on pairs, such as `screened-pairs`, knows these by their keys.
            identity = (row["key"],) if self._paired else json.loads(row["identity"])
            placed = {**self.identified(*identity), "split": row["split"], "group": row["group"]}
            yield VerifiedCandidate(
                **placed,
                subject=row["key"],
                tar=row["tar"],
                roles=roles,
                sha256s=tuple(row[name] for name in hashes),
                texts=tuple(row[name] for name in texts),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises:
            BrokenTar: an image is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the engine does not fit.
        """
        planned = cast(Sequence[VerifiedCandidate], candidates)
        readable = [one for one in planned if max(map(len, one.texts)) <= LONGEST]
        questions = self.questions_about(text for one in readable for text in one.texts)
        asked: dict[str, Asked] = {one.key: [questions[text] for text in one.texts] for one in readable}
        askable = [one for one in readable if self._asks_anything(*asked[one.key])]
        stored = self.earlier().samples((one.tar, one.subject) for one in askable)
        answers = self.answers({one.key: self._inquiries(one, stored[one.subject], asked[one.key]) for one in askable})
        for one in planned:
            given = answers.get(one.key)
            if given is None:
                yield Rejected(one.key, "no-question" if one.key in asked else "caption-too-long", one.texts[0][:200])
                continue
            if isinstance(given, Rejected):
                yield given
                continue
            if self._paired:
                row, wrong, detail = _pair_row(one, asked[one.key], given, self.threshold or 0)
            else:
                provenance = stored[one.subject].json.provenance
                row, wrong, detail = _image_row(one, asked[one.key], given[0], provenance, self.threshold or 0)
            if self.threshold is not None and wrong is not None:
                yield Rejected(one.key, f"wrong-{wrong['kind']}", detail)
            else:
                yield TableRows(one.key, [row])

    def _asks_anything(self, first: Sequence[ImageQuestion], second: Sequence[ImageQuestion]) -> bool:
        """Whether anything can be asked: of a caption, or of what tells two captions apart."""
        return bool(distinguishing(first, second) | distinguishing(second, first) if self._paired else first)

    def _inquiries(self, one: VerifiedCandidate, stored: Stored[Any], asked: Asked) -> list[Inquiry]:
        """What is asked of each image: the questions of both captions."""
        self.earlier().check_images(one.tar, stored, dict(zip(one.roles, one.sha256s, strict=True)))
        questions = tuple(dict.fromkeys(question.question for of_caption in asked for question in of_caption))
        media_type = f"image/{'jpeg' if stored.extension == 'jpg' else stored.extension}"
        return [Inquiry(one.subject, stored.images[role], media_type, questions) for role in one.roles]


def _image_row(
    one: VerifiedCandidate, asked: Asked, answers: Answers, provenance: Mapping[str, Any], threshold: float
) -> Judged:
    """The row of an image, with the answers to the questions of its caption."""
    own, original = asked
    answered = [
        {**question.as_json(), "yes": float(answers[question.question]), "counted": counts}
        for question, counts in zip(own, counted(own, answers), strict=True)
    ]
    number, score = provenance.get("number"), score_of(own, answers)
    row = {
        "image_key": one.subject,
        "image_sha256": one.sha256s[0],
        "caption_id": str(provenance.get("caption_id") or ""),
        "caption": one.texts[0],
        "negative_caption": one.texts[1],
        "questions": json.dumps(answered, ensure_ascii=False),
        "question_count": len(own),
        "caption_score": score,
        "original_score": score_of(original, answers) if original else None,
        "number": number if isinstance(number, int) else 0,
    }
    wrong = next((question for question in answered if question["yes"] < YES), answered[0])
    return row, wrong if score < threshold else None, f"score {score:.3f}; {wrong['question'][:200]}"


def _pair_row(one: VerifiedCandidate, asked: Asked, answers: Sequence[Answers], threshold: float) -> Judged:
    """The row of a pair, with all answers of both images.

    A question is answered rightly if it counts for the image of its caption and, where the other caption does not ask
    it, not for the other image. The first question that is answered wrongly is what is wrong with a pair, of those that
    tell the captions apart if there is one; without one that of which the model is least sure.
    """
    answered: list[dict[str, Any]] = []
    for side in SIDES:
        alone = distinguishing(asked[side], asked[1 - side])
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
    scores = [score_of(asked[side], answers[side]) for side in SIDES]
    apart = [question["right"] for question in answered if question["distinguishes"]]
    row = {
        "subject": one.subject,
        **dict(zip(_SHOWN, (*one.sha256s, *one.texts), strict=True)),
        "questions": json.dumps(answered, ensure_ascii=False),
        "question_count": len(answered),
        "distinguishing_count": len(apart),
        "score0": scores[0],
        "score1": scores[1],
        "distinguishing_score": sum(apart) / len(apart) if apart else 1.0,
    }
    mistakes = sorted((q for q in answered if not q["right"]), key=lambda question: not question["distinguishes"])
    wrong = mistakes[0] if mistakes else min(answered, key=lambda question: question["yes"][question["caption"]])
    yes = " and ".join(f"{value:.2f}" for value in wrong["yes"])
    detail = f"of caption {wrong['caption']}: {wrong['question'][:200]} yes {yes} for image 0 and 1"
    return row, None if all(apart) and min(scores) >= threshold else wrong, detail
