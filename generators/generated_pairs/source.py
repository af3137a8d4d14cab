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
from pydantic import model_validator

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import sample_key
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.locations import Location
from twinset.contracts.source import Place, StageName
from twinset.generators.captions.training_split import TrainingSplit, TrainShare
from twinset.generators.generated_pairs.joining import best_images, decided_images, first_images, frame_of, images_of
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, UnusableImage, rgb
from twinset.generators.negative_captions.kinds import COLUMNS, kind_name
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.decode import decode
from twinset.shards.media.media_folder import ImageFolder, Media

if TYPE_CHECKING:
    import polars as pl

LACKING = {"first": "no-image", "score": "not-verified", "people": "not-chosen"}  # reasons of captions without image 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPairCandidate(CaptionedCandidate):
    """A negative caption with the image that was chosen for it.

    caption_id, image_id, type, subtype: of the negative caption. photo: name of image 0 in the folder of photos; empty
    where it is generated too. tar0, key0: where such an image 0 lies in the stage of images. tar1, key1: image 1.
    score, score_original: how well image 1 shows its own and the original caption; None without verification.
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
    score: float | None
    score_original: float | None

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.photo,) if self.photo else ()

    @property
    def counted_as(self) -> str:
        return kind_name(self.type, self.subtype)


class GeneratedPairs(Source):
    """An image with its caption, and another that was generated from the negative caption.

    negatives: the stage of negative captions, whose rows name the photos. images: the stage of images that were
    generated from it. verified: the stage that scored these images; the best one of a caption is taken, without scores
    the first. choice: ``people``, where these take it instead. decisions: what they decided: a stage
    ``image-ambiguity``, or ``image-choice`` where ambiguous images shall stay.
    photos: folder of the photos, of folders of them, or of tars. Without it the other image is generated too: the stage
    of images must then draw both sides (``sides: [caption, negative_caption]``).
    train: share of the photos (0-1) whose pairs are in the split ``train`` (TROHN-Img: 0.8), by a hash of the recipe's
    seed and the image id; the others are in the split of the subset. Absent: all are. licence: of photos and captions.
    """

    kind: Literal["generated-pairs"]
    negatives: StageName
    images: StageName
    verified: StageName | None = None
    choice: Literal["people"] | None = None
    decisions: StageName | None = None
    photos: Annotated[Location, Place("folder", "media")] | None = None
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

    version = 4
    candidate = GeneratedPairCandidate
    libraries = ("numpy", "pillow")
    micro_batch: ClassVar[int] = 32  # pairs that are made together: their images are looked for in each tar once

    @property
    def chosen_by(self) -> Literal["score", "first", "people"]:
        """Who takes the image of a caption."""
        return self.choice or ("score" if self.verified else "first")

    @property
    def reads(self) -> tuple[str, ...]:
        decisions = self.decisions if self.choice == "people" else None
        return tuple(filter(None, (self.negatives, self.images, self.verified, decisions)))

    @model_validator(mode="after")
    def _people_decided(self) -> GeneratedPairs:
        if self.choice == "people" and self.decisions is None:
            raise ValueError("people's choice is read from a stage of decisions; name it with decisions")
        return self

    def media_files(self) -> Media | None:
        return None if self.photos is None else ImageFolder(self.photos)

    def plan(self) -> Iterator[GeneratedPairCandidate]:
        """Pairs photo by photo, in the order in which negative captions first name them."""
        self._training.check(self.stage.name)
        import polars as pl

        negatives = frame_of(self.stage.earlier(self.negatives).read(["key", "identity", *TERMS, *COLUMNS.names]))
        named = pl.when(pl.col("image") != "").then("image").otherwise("image_id")
        rows = negatives.with_row_index("row").with_columns(photo=pl.lit("") if self.photos is None else named)
        rows = _with_images(rows, self._chosen(negatives), "1")
        lacks0 = "no-photo", pl.col("photo") == ""
        if self.photos is None:
            originals = first_images(images_of(self._images, negatives, "caption"))
            rows, lacks0 = _with_images(rows, originals, "0"), ("no-image", pl.col("key0").is_null())
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
        verified = None if self.verified is None else self.stage.earlier(self.verified)
        images = images_of(self._images, negatives, "negative_caption", verified)
        if self.chosen_by == "score":
            return best_images(images)
        if self.choice == "people":
            images = decided_images(images, negatives, self.stage.earlier(cast(str, self.decisions)))
        return first_images(images).with_columns(ambiguous=False)

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
            score=row["score1"],
            score_original=row["original1"],
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs, or why there is none. Raises `BrokenTar`: a generated image is absent or broken."""
        planned = cast(Sequence[GeneratedPairCandidate], candidates)
        photos = {} if self._photos is None else self._photos.read(candidate.photo for candidate in planned)
        generated = self._generated(planned)
        for candidate in planned:
            first = photos[candidate.photo] if candidate.photo else generated[candidate.key0][0]
            second, stored = generated[candidate.key1]
            if isinstance(first, UnusableImage):
                yield first.rejected(candidate.key)
            elif np.array_equal(first.pixels, second.pixels):
                yield Rejected(candidate.key, "same-image", f"{first.source.path}, {second.source.path}")
            else:
                yield self._pair(candidate, first, second, stored)

    def _pair(self, candidate: GeneratedPairCandidate, first: Frame, second: Frame, stored: Stored[Any]) -> Pair:
        scores = {"verification": candidate.score, "verification_original": candidate.score_original}
        about = {name: getattr(candidate, name) for name in ("caption_id", "image_id", "type", "subtype", "photo")}
        about["number"] = stored.json.provenance["number"]
        drawn = {name: value for name, value in stored.json.provenance.items() if name not in about}
        return Pair(
            **candidate.placed,
            change=f"{candidate.type} {candidate.subtype}".strip(),
            image0=first,
            image1=second,
            scores={name: value for name, value in scores.items() if value is not None},
            provenance={**about, "choice": self.chosen_by, "generated": drawn},
        )

    def _generated(self, planned: Sequence[GeneratedPairCandidate]) -> dict[str, tuple[Frame, Stored[Any]]]:
        """Frame and stored sample of each generated image, by its key; each tar is read once."""
        tars = {pair.key1: pair.tar1 for pair in planned} | {pair.key0: pair.tar0 for pair in planned if not pair.photo}
        generated = {}
        for key, stored in self._images.samples((tar, key) for key, tar in tars.items()).items():
            content = stored.images["image"]
            # A URL: the stage vouches for its images, which lie in no folder of media.
            path = f"stage://{self._images.stage.name}/{tars[key]}/{key}.{stored.extension}"
            source = MediaFile(path, len(content), hashlib.sha256(content).hexdigest())
            generated[key] = Frame(key, rgb(decode(content, key)), -1.0, source), stored
        return generated

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
