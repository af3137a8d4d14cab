"""Asks what captions say of the images of a stage; a row an image (Cho et al. 2023; BiVLC, section 3.2)."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import Field

from twinset.generators.image_verification.questions.asking import ImageQuestion, prepared, questions_of
from twinset.generators.image_verification.questions.vocabulary import vocabulary
from twinset.generators.image_verification.scoring import counted
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES, parser_of
from twinset.manifests.candidate import Candidate
from twinset.manifests.errors import WrongUse
from twinset.manifests.references import bibtex, reasons_beside
from twinset.manifests.source import Need, Place, Reference, StageName
from twinset.models.engines import EngineGenerator, EngineSource
from twinset.models.spacy_pipelines import EMBEDDED, Pipeline, check_installed, find_pipeline
from twinset.models.visual_questions.settings import Inquiry, QuestionAnswerer, Unanswered, VisualQuestionAnswerer
from twinset.shards.kinds.kind import Stored
from twinset.shards.kinds.samples import Rejected, TableRows
from twinset.shards.storage.tar_reader import BrokenTar

DSG = Reference("Davidsonian Scene Graph", "https://arxiv.org/abs/2310.18235", bibtex("cho2024davidsonian"))


class ImageVerification(EngineSource):
    """Yes/no questions of a caption, asked of the image that was generated from it.

    images: the stage of text pairs, or the folder of a finished one. engine: what answers. threshold: images with a
    lower score, 0 to 1, are rejected, by the kind of the first question that is answered no; none are when absent.
    pipeline: spaCy's, by name or folder, which parses the captions. licence: of the captions.
    """

    kind: Literal["image-verification"]
    images: StageName
    engine: QuestionAnswerer
    threshold: float | None = Field(default=None, gt=0, le=1)
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)
    licence: str = ""

    generator = "twinset.generators.image_verification.source:VerificationGenerator"
    makes = "table"
    reference = DSG
    paper = BIVLC
    group = "caption"
    verb = "asked of"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-verification")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            check_installed(key, self.pipeline, *LIBRARIES, "inflect")


LONGEST = 2000  # characters of a caption: the longest of DSG's has 900
YES = 0.5  # the least probability of an answer that counts as yes
_READ = ("key", "identity", "split", "group", "tar", "image_sha256", "caption", "negative_caption")
_TEXT = ("image_key", "image_sha256", "caption_id", "caption", "negative_caption", "questions")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationCandidate(Candidate):
    """An image of an earlier stage. tar, image_key: where it lies. caption: what it was generated from."""

    tar: str
    image_key: str
    image_sha256: str
    caption: str
    negative_caption: str


class VerificationGenerator(EngineGenerator[ImageVerification]):
    """One row an image; those of a caption are a group, as in the earlier stage."""

    version = 2
    engine: VisualQuestionAnswerer
    isolation = "process"  # spaCy holds the interpreter's lock, torch's number of threads is its process's
    candidate = VerificationCandidate
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "inflect")
    columns = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in _TEXT),
            pa.field("question_count", pa.int32(), nullable=False),
            pa.field("caption_score", pa.float64(), nullable=False),
            pa.field("original_score", pa.float64()),
            pa.field("number", pa.int32(), nullable=False),
        ]
    )

    def device(self) -> str:
        """The engine's; the parser is a network on the CPU."""
        return super().device() or "cpu"

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), "pipeline": self._pipeline.digest, "vocabulary": vocabulary().digest}

    def plan(self) -> Iterator[VerificationCandidate]:
        """Images in the order of the earlier stage, whose index is read a row group at a time.

        Raises `WrongUse` when that stage has no images.
        """
        for batch in self.earlier.batches(_READ):
            for row in batch.to_pylist():
                if not row["tar"] or not row["image_sha256"]:
                    raise WrongUse(
                        f"{self.earlier.where}: {row['key']} has no image; name a stage whose source was given images"
                    )
                if max(len(row["caption"]), len(row["negative_caption"])) > LONGEST:
                    self.excluded.add("caption-too-long", row["key"])
                    continue
                key = self.identified(*json.loads(row["identity"]))["key"]
                yield VerificationCandidate(key=key, image_key=row["key"], **{name: row[name] for name in _READ[1:]})

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises:
            BrokenTar: an image is absent, broken or not the one that was planned.
            OutOfMemory: a pass of the engine does not fit.
        """
        planned = cast(Sequence[VerificationCandidate], candidates)
        questions = self._questions(planned)
        askable = [one for one in planned if questions[one.caption]]
        stored = self.earlier.samples((one.tar, one.image_key) for one in askable)
        inquiries = [self._inquiry(one, stored[one.image_key], questions) for one in askable]
        answered = dict(zip((one.key for one in askable), self.engine.answers(inquiries), strict=True))
        said = dict(zip((one.key for one in askable), inquiries, strict=True))
        for one in planned:
            if one.key not in answered:
                yield Rejected(one.key, "no-question", one.caption[:200])
                continue
            answers = answered[one.key]
            if isinstance(answers, Unanswered):
                yield Rejected(one.key, answers.reason, answers.detail)
                continue
            found = dict(zip(said[one.key].questions, answers, strict=True))
            row = _row(one, stored[one.image_key], questions, found)
            if self.source.threshold is not None and row["caption_score"] < self.source.threshold:
                first = next(each for each in json.loads(row["questions"]) if each["yes"] < YES)
                detail = f"score {row['caption_score']:.3f}; {first['question'][:200]}"
                yield Rejected(one.key, f"wrong-{first['kind']}", detail)
            else:
                yield TableRows(one.key, [row])

    def _questions(self, planned: Sequence[VerificationCandidate]) -> dict[str, list[ImageQuestion]]:
        texts = list(dict.fromkeys(text for one in planned for text in (one.caption, one.negative_caption)))
        nlp = parser_of(self._pipeline).nlp
        with nlp.memory_zone():
            return dict(zip(texts, map(questions_of, nlp.pipe(map(prepared, texts), batch_size=BATCH)), strict=True))

    def _inquiry(
        self, one: VerificationCandidate, stored: Stored[Any], questions: Mapping[str, list[ImageQuestion]]
    ) -> Inquiry:
        image = stored.images["image"]
        if hashlib.sha256(image).hexdigest() != one.image_sha256:
            raise BrokenTar(
                f"{self.earlier.where}/{one.tar}: the image of {one.image_key} is not the one that was planned from; "
                f"run the build of {self.source.images} again"
            )
        both = (*questions[one.caption], *questions[one.negative_caption])
        media_type = f"image/{'jpeg' if stored.extension == 'jpg' else stored.extension}"
        return Inquiry(one.image_key, image, media_type, tuple(dict.fromkeys(each.question for each in both)))

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.source.pipeline)


def _row(
    one: VerificationCandidate,
    stored: Stored[Any],
    questions: Mapping[str, list[ImageQuestion]],
    found: Mapping[str, float],
) -> dict[str, Any]:
    told, score = _scored(questions[one.caption], found)
    _, original = _scored(questions[one.negative_caption], found)
    caption_id, number = (stored.json.provenance.get(name) for name in ("caption_id", "number"))
    return {
        "image_key": one.image_key,
        "image_sha256": one.image_sha256,
        "caption_id": str(caption_id or ""),
        "caption": one.caption,
        "negative_caption": one.negative_caption,
        "questions": json.dumps(told, ensure_ascii=False),
        "question_count": len(told),
        "caption_score": score,
        "original_score": original,
        "number": number if isinstance(number, int) else 0,
    }


def _scored(
    questions: Sequence[ImageQuestion], found: Mapping[str, float]
) -> tuple[list[dict[str, Any]], float | None]:
    """Questions with their answers, and the share that counts; None without questions."""
    if not questions:
        return [], None
    answers = [float(found[one.question]) for one in questions]
    yes = [answer >= YES for answer in answers]
    counting = counted([one.id for one in questions], [one.parents for one in questions], yes)
    told = [
        {
            "id": one.id,
            "parents": list(one.parents),
            "kind": one.kind,
            "tuple": list(one.words),
            "question": one.question,
            "yes": answer,
            "counted": counts,
        }
        for one, answer, counts in zip(questions, answers, counting, strict=True)
    ]
    return told, sum(counting) / len(counting)
