"""The settings of pairs of a photo and a generated image, and what their card says (BiVLC, section 3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field, model_validator

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import digest, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.locations import Location
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.captions.training_split import TrainingSplit, TrainShare
from twinset.generators.generated_pairs.joining import best_images, decided_images, first_images, frame_of, images_of
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, UnusableImage, rgb
from twinset.generators.negative_captions.kinds import COLUMNS, kind_name
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.decode import decode
from twinset.shards.media.media_folder import ImageFolder, Media

if TYPE_CHECKING:
    import polars as pl

UNSCORED = -1.0

LACKING = {"first": "no-image", "score": "not-verified", "people": "not-chosen"}  # reasons of captions without image 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPairCandidate(CaptionedCandidate):
    """A negative caption with the image that was chosen for it.

    caption_id, image_id, type, subtype: of the negative caption. photo: name of image 0 in the folder of photos; empty
    where it is generated too. tar0, key0: where such an image 0 lies in the stage of images. tar1, key1: image 1.
    choice: who chose image 1. score, score_original: how well image 1 shows its own and the original caption;
    `UNSCORED` without verification.
    """

    caption_id: str
    image_id: str
    type: str
    subtype: str
    photo: str
    tar0: str
    key0: str
    tar1: str
    key1: str
    choice: str
    score: float
    score_original: float

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.photo,) if self.photo else ()

    @property
    def counted_as(self) -> str:
        return kind_name(self.type, self.subtype)


class GeneratedPairs(Source):
    """An image with its caption, and another that was generated from the negative caption.

    negatives: the stage of negative captions, whose rows name the photos. images: the stage of images that were
    generated from it. verified: the stage that scored these images. choice: who takes the image of a caption: the
    ``score`` (if ``verified`` is named, so by default), nobody (the ``first`` is taken, otherwise the default), or
    ``people``. decisions: what people decided, which ``choice: people`` needs: a stage ``image-ambiguity``, or
    ``image-choice`` where ambiguous images shall stay.
    photos: folder of the photos, of folders of them, or of tars. Without it the other image is generated too: the stage
    of images must then draw both sides (``sides: [caption, negative_caption]``).
    ambiguous: of the images that a score chose one is left out that shows the original caption too, with at least this
    score (0-1); null keeps all. compared: leave out as well what fits the original caption at least as well as its own.
    train: share of the photos (0-1) whose pairs are in the split ``train`` (TROHN-Img: 0.8), by a hash of the recipe's
    seed and the image id; the others are in the split of the subset. Absent: all are. licence: of the photos and
    captions.
    """

    kind: Literal["generated-pairs"]
    negatives: StageName
    images: StageName
    verified: StageName | None = None
    choice: Literal["score", "first", "people"] | None = None
    decisions: StageName | None = None
    photos: Annotated[Location, Place("folder", "media")] | None = None
    ambiguous: float | None = Field(default=1.0, gt=0, le=1)
    compared: bool = True
    train: TrainShare | None = None
    licence: str = ""

    makes = "pair"
    paper = BIVLC
    group = "image"
    verb = "made from"
    reasons: ClassVar[Mapping[str, str]] = IMAGE_REASONS | SAME_IMAGE | reasons_beside(__file__, "generated-pairs")
    scored: ClassVar[Mapping[str, str]] = {
        "verification": "share of the questions on caption 1 that its image answers rightly (0-1)",
        "verification_original": "the same of the original caption, asked of that image (0-1)",
    }
    card_template = Path(__file__).with_name("card.md.j2")

    @property
    def chosen_by(self) -> Literal["score", "first", "people"]:
        """Who takes the image of a caption."""
        return self.choice or ("first" if self.verified is None else "score")

    @property
    def reads(self) -> tuple[str, ...]:
        scores = None if self.chosen_by == "first" else self.verified
        decisions = self.decisions if self.chosen_by == "people" else None
        return tuple(one for one in (self.negatives, self.images, scores, decisions) if one is not None)

    @model_validator(mode="after")
    def _has_what_chooses(self) -> GeneratedPairs:
        if self.choice == "people" and self.decisions is None:
            raise ValueError("people's choice is read from a stage of decisions; name it with decisions")
        if self.choice == "score" and self.verified is None:
            raise ValueError("a score chooses from the scores of a stage; name it with verified")
        if self.verified is None and (self.ambiguous, self.compared) != (1.0, True):
            raise ValueError("ambiguous and compared need the scores of a stage; name it with verified")
        return self

    def media_files(self) -> Media | None:
        return None if self.photos is None else ImageFolder(self.photos)

    version = 3
    candidate = GeneratedPairCandidate
    libraries = ("numpy", "pillow")
    micro_batch: ClassVar[int] = 32  # pairs that are made together: their images are looked for in each tar once

    def inputs(self) -> str:
        return digest([self.stage.earlier(one).digest for one in self.reads])

    def plan(self) -> Iterator[GeneratedPairCandidate]:
        """Pairs photo by photo, in the order in which negative captions first name them.

        Raises `WrongUse` when an earlier stage is of another kind, or draws one side where both are needed.
        """
        self._training.check(self.stage.name)
        import polars as pl

        negatives = frame_of(self.stage.earlier(self.negatives).read(["key", "identity", *TERMS, *COLUMNS.names]))
        named = pl.when(pl.col("image") != "").then("image").otherwise("image_id")
        rows = negatives.with_row_index("row").with_columns(photo=pl.lit("") if self.photos is None else named)
        rows = _with_images(rows, self._chosen(negatives), "1")
        lacks0 = "no-photo", pl.col("photo") == ""
        if self.photos is None:
            rows, lacks0 = _with_images(rows, self._originals(negatives), "0"), ("no-image", pl.col("key0").is_null())
        reasons = ("ambiguous", pl.col("ambiguous1")), (LACKING[self.chosen_by], pl.col("key1").is_null()), lacks0
        rows = rows.with_columns(reason=pl.coalesce(pl.when(lacks).then(pl.lit(reason)) for reason, lacks in reasons))
        for row in rows.filter(pl.col("reason").is_not_null()).iter_rows(named=True):
            self.excluded.add(row["reason"], f"{row['key']} ({row['caption_id'][:100]})")
        kept = rows.filter(pl.col("reason").is_null())
        if self.photos is not None:
            kept = kept.sort(pl.col("row").min().over("photo"), "row")
        yield from map(self._planned, kept.iter_rows(named=True))

    def _chosen(self, negatives: pl.DataFrame) -> pl.DataFrame:
        """The image of each negative caption that has one."""
        verified = None if self.verified is None or self.chosen_by == "first" else self.stage.earlier(self.verified)
        images = images_of(self._images, negatives, "negative_caption", verified)
        if self.chosen_by == "score":
            return best_images(images, self.ambiguous, self.compared)
        if self.decisions is not None and self.chosen_by == "people":
            images = decided_images(images, negatives, self.stage.earlier(self.decisions))
        return first_images(images).with_columns(ambiguous=False)

    def _originals(self, negatives: pl.DataFrame) -> pl.DataFrame:
        """The first image of each original caption."""
        images = images_of(self._images, negatives, "caption")
        if not len(images):
            raise WrongUse(
                f"{self._images.where}: holds no image of an original caption; name a folder with photos, or set "
                "sides of its source to [caption, negative_caption]"
            )
        return first_images(images)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs, or why there is none. Raises `BrokenTar`: a generated image is absent or broken."""
        planned = cast(Sequence[GeneratedPairCandidate], candidates)
        photos = self._photos.read(one.photo for one in planned) if self._photos is not None else {}
        generated = self._generated(planned)
        for one in planned:
            first = photos[one.photo] if one.photo else generated[one.key0][0]
            second, stored = generated[one.key1]
            if isinstance(first, UnusableImage):
                yield first.rejected(one.key)
            elif np.array_equal(first.pixels, second.pixels):
                yield Rejected(one.key, "same-image", f"{first.source.path} and {second.source.path} are the same")
            else:
                yield self._pair(one, first, second, stored)

    def _pair(self, one: GeneratedPairCandidate, first: Frame, second: Frame, stored: Stored[Any]) -> Pair:
        scores = {"verification": one.score, "verification_original": one.score_original}
        told = {name: getattr(one, name) for name in ("caption_id", "image_id", "type", "subtype", "photo")}
        told["number"] = stored.json.provenance["number"]
        drawn = {name: value for name, value in stored.json.provenance.items() if name not in told}
        return Pair(
            **one.placed,
            change=f"{one.type} {one.subtype}".strip(),
            image0=first,
            image1=second,
            scores={name: value for name, value in scores.items() if value != UNSCORED},
            provenance={**told, "choice": one.choice, "generated": drawn},
        )

    def _generated(self, planned: Sequence[GeneratedPairCandidate]) -> dict[str, tuple[Frame, Stored[Any]]]:
        """Frame and stored sample of each generated image, by its key; each tar is read once."""
        tars = {one.key1: one.tar1 for one in planned} | {one.key0: one.tar0 for one in planned if not one.photo}
        found = {}
        for key, stored in self._images.samples((tar, key) for key, tar in tars.items()).items():
            content = stored.images["image"]
            # A URL: the stage vouches for its images, which lie in no folder of media.
            path = f"stage://{self._images.stage.name}/{tars[key]}/{key}.{stored.extension}"
            source = MediaFile(path, len(content), hashlib.sha256(content).hexdigest())
            found[key] = Frame(key, rgb(decode(content, key)), -1.0, source), stored
        return found

    def _planned(self, row: Mapping[str, Any]) -> GeneratedPairCandidate:
        """A candidate from a negative caption with its images."""
        sides = [side for side in ("", "0", "1") if f"key{side}" in row]
        identified = self.identified(
            *json.loads(row["identity"]),
            group=sample_key(self.stage.name, "image", row["photo"]) if row["photo"] else "",
            shows=[Terms(*(row[f"{name}{side}"] for name in TERMS)) for side in sides],
        )
        identified["split"] = self._training.of(row["image_id"] or row["caption"])
        return GeneratedPairCandidate(
            **identified,
            captions0=(row["caption"],),
            captions1=(row["negative_caption"],),
            **{name: row[name] for name in ("caption_id", "image_id", "type", "subtype", "photo")},
            **{name: row.get(name, "") for name in ("tar0", "key0", "tar1", "key1")},
            choice=self.chosen_by,
            score=UNSCORED if row["score1"] is None else row["score1"],
            score_original=UNSCORED if row["original1"] is None else row["original1"],
        )

    @cached_property
    def _training(self) -> TrainingSplit:
        return TrainingSplit(self.train, self.stage.split, self.stage.seed)

    @cached_property
    def _photos(self) -> ImageFiles | None:
        return None if self.photos is None else ImageFiles(self.photos, upright=True)

    @cached_property
    def _images(self) -> FinishedStage:
        return self.stage.earlier(self.images)


def _with_images(negatives: pl.DataFrame, images: pl.DataFrame, side: str) -> pl.DataFrame:
    """Negative captions with the image of each, null where it has none, in columns that end with the side's number."""
    import polars as pl

    named = images.select("row", pl.exclude("row").name.suffix(side))
    return negatives.join(named, on="row", how="left", maintain_order="left")
