"""What the questions about generated images share: negative captions, their images, and the scores of these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from twinset.contracts.canonical import sample_key
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import StageName
from twinset.generators.decisions.question import UNSCORED, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.generated_pairs.joining import ImagePlace, Images, images_of, scores_of
from twinset.generators.negative_captions.kinds import COLUMNS, EVERY_KIND, kind_name
from twinset.shards.finished_stage import FinishedStage


class ImageDecisions(Decisions):
    """Questions about the images of negative captions.

    negatives: the stage of negative captions. images: the stage of images that were generated from it. verified: the
    stage that scored these; tasks with higher scores are asked first. kinds: of negative captions that are asked about;
    all when absent.
    """

    negatives: StageName
    images: StageName
    verified: StageName | None = None
    kinds: tuple[str, ...] | None = Field(default=None, min_length=1)

    group = "negative caption"
    reasons: ClassVar[Mapping[str, str]] = {**Decisions.reasons, **reasons_beside(__file__, "both")}

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if unknown := [kind for kind in kinds or () if kind not in EVERY_KIND]:
            raise ValueError(f"there is no kind {unknown[0]!r}; name some of {', '.join(EVERY_KIND)}")
        return kinds

    @property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.images)

    def task(
        self, row: Mapping[str, str], images: Sequence[ImagePlace], text: str, question: str, **fields: Any
    ) -> TaskCandidate:
        """The task that asks about a negative caption.

        Args:
            row: of the negative caption.
            images: that are shown.
            text: that is shown.
            fields: further ones of `TaskCandidate`.
        """
        key = sample_key(self.stage.name, *json.loads(row["identity"]))
        return TaskCandidate(
            key=key,
            group=key,
            split=self.stage.split,
            identity=row["identity"],
            question=question,
            texts=(text,),
            images=tuple(name for name, _, _ in images),
            image_tars=tuple(tar for _, tar, _ in images),
            image_sha256s=tuple(sha256 for _, _, sha256 in images),
            subject=row["key"],
            kind_name=kind_name(row["type"], row["subtype"]),
            **fields,
        )

    def wanted(self, left_out: LeftOut) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of negative captions of the kinds that are asked about, with their numbers."""
        for number, row in enumerate(self.negative_rows.to_pylist()):
            if self.kinds is None or kind_name(row["type"], row["subtype"]) in self.kinds:
                yield number, row
            else:
                left_out.add("other-kind", place_of(row))

    @cached_property
    def negative_rows(self) -> pa.Table:
        """All negative captions."""
        return self.stage.earlier(self.negatives).read(["key", "identity", *COLUMNS.names])

    @cached_property
    def drawn(self) -> Images:
        """Their images."""
        return images_of(self.pictured, self.negative_rows, "negative_caption")

    @cached_property
    def scores(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """How well each image shows its caption, NaN where that is not known."""
        verified = None if self.verified is None else self.stage.earlier(self.verified)
        return scores_of(self.drawn, verified)[0]

    def best_score(self, images: list[int]) -> float:
        """The highest score among some of the images; `UNSCORED` where none has one."""
        return max((float(one) for one in self.scores[images] if not np.isnan(one)), default=UNSCORED)


def place_of(row: Mapping[str, str]) -> str:
    """A negative caption, for messages."""
    return f"{row['key']} ({row['caption_id'][:100]})"
