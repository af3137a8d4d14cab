"""The text pairs of a table of negative captions: planned image by image, each with its image."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, finite
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample, SampleKind
from twinset.contracts.kinds.samples import Frame
from twinset.contracts.kinds.text_pair import TEXT_PAIR, TEXT_SCORES
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import StageName
from twinset.generators.caption_scores.scorers.scorer import scorer_of
from twinset.generators.captions.training_split import TrainingSplit, TrainShare
from twinset.generators.image_files import IMAGE_REASONS, OptionalImages, looked_for_by
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.papers import BIVLC


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPairCandidate(NegativeCaption):
    """A row of a table of negative captions. negative_key: its key there. scores: by column, as JSON."""

    negative_key: str
    scores: str

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.image,)


@dataclass(slots=True, kw_only=True)
class TextPair(Sample):
    """A text pair. image: None in an index. type, subtype, image_id: as in `TextPairRecord`."""

    kind: ClassVar[SampleKind] = TEXT_PAIR

    image: Frame | None
    caption: str
    negative_caption: str
    type: str = ""
    subtype: str = ""
    image_id: str = ""

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`; without images, of the same image id."""
        return [self.kind.name, [self.caption, self.negative_caption], dict(images) or self.image_id]


class TextPairs(OptionalImages):
    """An image, its caption and a negative caption, for each row of a table of negative captions.

    negatives: the stage of negative captions, or the folder of a finished one; twinset's own scores are taken along.
    train: share of the images (0-1) whose pairs are in the split ``train``, by a hash of the recipe's seed and the
    image id; the others are in the split of the subset. Absent: all are. licence: of captions and images.
    """

    kind: Literal["text-pairs"]
    negatives: StageName
    train: TrainShare | None = None
    licence: str = ""

    makes = "text-pair"
    paper = BIVLC
    group = "image"
    verb = "made from"
    card_template = Path(__file__).with_name("text_pairs.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, "no-image": "rows that name no image"}

    @property
    def scored(self) -> Mapping[str, str]:  # type: ignore[override]  # of installed scorers, which are not all light
        scorers = [scorer_of(score)[1] for score in ("vera", "cola", "similarity")]
        return {column: scorer.title for scorer in scorers for column in scorer.columns()}

    version = 4
    libraries = ("numpy", "pillow", "polars")
    candidate = TextPairCandidate

    @cached_property
    def _training(self) -> TrainingSplit:
        return TrainingSplit(self.train, self.stage.split, self.stage.seed)

    def plan(self) -> Iterator[Candidate]:
        """Images in the order in which they first come in the table; pairs of an image in the table's order.

        Raises `WrongUse` when images are asked for that no row names.
        """
        self._training.check(self.stage.name)
        named = self.images is None
        for row in self._rows():
            image = looked_for_by(row["image"], row["image_id"])
            if self.images is not None and not image:
                self.excluded.add("no-image", f"{self.negatives} {row['identity']}")
                continue
            named = named or "://" not in image
            identified = self.identified(*json.loads(row["identity"]), group=row["image_id"], shows=(Terms.of(row),))
            identified["split"] = self._training.of(row["image_id"] or row["caption"])
            scores = {name: row[name] for name in TEXT_SCORES if row.get(name) is not None}
            yield TextPairCandidate(
                **identified,
                **{**{name: row[name] for name in COLUMNS.names}, "image": image},
                negative_key=row["key"],
                scores=canonical_json(finite(scores)).decode(),
            )
        if not named:
            raise WrongUse(
                f"subsets.{self.stage.name}.source.images: no row of {self.negatives} names an image by id or file; "
                "leave images out for an index"
            )

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the table image by image; rows without an image id stay where they are."""
        import polars as pl

        scores = [name for name in TEXT_SCORES if name in self.earlier().columns()]
        batches = self.earlier().batches(("key", "identity", *TERMS, *COLUMNS.names, *scores))
        parts = [pl.DataFrame(batch) for batch in batches]
        if parts:
            rows = pl.concat(parts).with_row_index("row")
            alone = pl.when(pl.col("image_id") == "").then("row").otherwise(pl.col("row").min().over("image_id"))
            yield from rows.with_columns(first=alone).sort("first", "row").iter_rows(named=True)

    def sample(self, candidate: TextPairCandidate, image: Frame | None) -> TextPair:
        return TextPair(
            **candidate.placed,
            image=image,
            caption=candidate.caption,
            negative_caption=candidate.negative_caption,
            type=candidate.type,
            subtype=candidate.subtype,
            image_id=candidate.image_id,
            provenance={name: getattr(candidate, name) for name in ("caption_id", "image_id", "negative_key")},
            scores={name: score for name, score in json.loads(candidate.scores).items() if score is not None},
        )


def named_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of a setting as they are; raises `ValueError` for one that is there twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} stands twice; leave one out")
    return names
