"""Which image goes with which negative caption: tables of earlier stages, joined."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS
from twinset.shards.finished_stage import FinishedStage

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Key of an image, or name of a photo; tar and sha256, both empty for a photo.
ImagePlace = tuple[str, str, str]
NONE = -1  # a negative caption has no image


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one side, in the order of their stage, in which those of a caption are numbered.

    frame: ``row``, that of each one's negative caption; ``key``, ``tar``, ``image_sha256`` and `TERMS`.
    """

    frame: pl.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def negatives(self) -> Ints:
        """The row of each one's negative caption."""
        return self.frame["row"].to_numpy()

    @property
    def numbers(self) -> Ints:
        """Where each one stands, so that images of a caption are in order."""
        return np.arange(len(self), dtype=np.int64)

    def places(self) -> list[ImagePlace]:
        """Of each image."""
        return self.frame.select("key", "tar", "image_sha256").rows()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The image of each negative caption, by its row. image: its place in `Images`, `NONE` where it has none.

    ambiguous: whether it has none because the best one fits the original caption too. score, original: of each image of
    `Images`; NaN without verification, or where nothing could be asked.
    """

    image: Ints
    ambiguous: Bools
    score: Floats
    original: Floats


def images_of(earlier: FinishedStage, negatives: pa.Table, side: str) -> Images:
    """Images that were generated from the captions of a side; those of other captions are left out.

    Args:
        earlier: the stage of images, whose groups are the negative captions.
        negatives: columns ``identity`` and that of the side, all rows.

    Raises:
        WrongUse: one has no image.
    """
    import polars as pl

    groups = [sample_key(earlier.stage.name, *json.loads(identity)) for identity in negatives["identity"].to_pylist()]
    captions = pl.DataFrame({"group": groups, "caption": pl.Series(negatives[side].to_pylist(), dtype=pl.String)})
    columns = ["key", "tar", "image_sha256", *TERMS]
    read = _frame(earlier.read([*columns, "group", "caption"]))
    numbered = captions.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    frame = read.join(numbered, on=["group", "caption"], maintain_order="left").select("row", *columns)
    if len(lacking := frame.filter(pl.col("image_sha256") == "")):
        raise WrongUse(f"{earlier.where}: {lacking['key'][0]} has no image; name a stage that draws")
    return Images(frame)


def first_images(images: Images, negatives: int) -> Ints:
    """The first image of each negative caption, by its row; `NONE` without one.

    Args:
        negatives: how many there are.
    """
    first = np.full(negatives, NONE, np.int64)
    rows, places = np.unique(images.negatives, return_index=True)
    first[rows] = places
    return first


def best_images(
    images: Images, negatives: int, verified: FinishedStage | None, limit: float | None, compared: bool
) -> Chosen:
    """As `choose`; the first image of each where nothing was verified."""
    score, original, scored = scores_of(images, verified)
    if verified is None:
        return Chosen(first_images(images, negatives), np.zeros(negatives, np.bool_), score, original)
    image, ambiguous = choose(images.negatives, score, original, scored, negatives, limit, compared)
    return Chosen(image, ambiguous, score, original)


def choose(
    captions: Ints,
    scores: Floats,
    originals: Floats,
    scored: Ints,
    negatives: int,
    limit: float | None = 1.0,
    compared: bool = True,
) -> tuple[Ints, Bools]:
    """The image of each negative caption with the highest score, the first of equal ones.

    Where people have not decided, the verification's scores stand in for them (BiVLC, section 3.2, steps 3 and 4): a
    caption has none where this image fits the original caption too.

    Args:
        captions: row of each image's negative caption.
        scores: of each image by the caption that it was generated from, 0 to 1; NaN loses to any number.
        originals: by the original caption; NaN where nothing could be asked, which is not ambiguous.
        scored: the images that were verified; others are not chosen.
        negatives: how many negative captions there are.
        limit: an image fits both whose original score is at least this; None for no limit.
        compared: whether one does that scores at least as well by the original as by its own caption.

    Returns:
        By row of the negative caption: place of its image, `NONE` without one; and whether its best image fits both.
    """
    import polars as pl

    table = pl.DataFrame({"row": captions, "place": np.arange(len(captions)), "score": scores, "original": originals})
    best = (
        table[scored]
        .with_columns(pl.col("score", "original").fill_nan(None))
        .sort("row", "score", "place", descending=[False, True, False], nulls_last=True)
        .unique("row", keep="first")
    )
    fits = pl.lit(False)
    if limit is not None:
        fits |= pl.col("original") >= limit
    if compared:
        fits |= pl.col("original") >= pl.col("score")
    best = best.with_columns(both=fits.fill_null(False))
    image, ambiguous = np.full(negatives, NONE, np.int64), np.zeros(negatives, np.bool_)
    image[best["row"]] = best["place"].zip_with(~best["both"], pl.repeat(NONE, len(best), eager=True)).to_numpy()
    ambiguous[best["row"]] = best["both"].to_numpy()
    return image, ambiguous


def decided_images(images: Images, negatives: pa.Table, decisions: FinishedStage) -> Ints:
    """The image of each negative caption by people's decisions; `NONE` where they dropped it or were not asked.

    Args:
        negatives: column ``identity``, all rows.
        decisions: a stage of decisions about these captions and images.

    Returns:
        The place of the image in `Images`.

    Raises:
        WrongUse: a decision is about an image that is not there, or was made again since.
    """
    import polars as pl

    captions = _frame(negatives.select(["identity"])).with_row_index("caption")
    places = images.frame.select(pl.col("key").alias("image_key"), "image_sha256").with_row_index("place")
    made = _frame(decisions.read(["identity", "image_key", "image_sha256"]))
    joined = made.join(captions, on="identity", how="left").join(places, on=["image_key", "image_sha256"], how="left")
    if len(unknown := joined.filter(pl.any_horizontal(pl.col("caption", "place").is_null()))):
        raise WrongUse(
            f"{decisions.where}: decides about the image {unknown['image_key'][0]!r}, which is not among these images, "
            "or was made again; name stages that were made from each other, and run the build of the decisions again"
        )
    chosen = np.full(len(negatives), NONE, np.int64)
    chosen[joined["caption"]] = joined["place"].to_numpy()
    return chosen


def scores_of(images: Images, verified: FinishedStage | None) -> tuple[Floats, Floats, Ints]:
    """How well each image shows the caption that it was generated from, and the other one.

    Returns:
        Two scores an image, 0 to 1, NaN where there is none, and the numbers of the images that were scored.
    """
    import polars as pl

    if verified is None:
        return np.full(len(images), np.nan), np.full(len(images), np.nan), np.zeros(0, np.int64)
    scores = _frame(verified.read(["image_key", "caption_score", "original_score"])).with_row_index("scored")
    joined = images.frame.join(scores, left_on="key", right_on="image_key", how="left", maintain_order="left")
    score, original = (
        joined[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("caption_score", "original_score")
    )
    return score, original, np.flatnonzero(joined["scored"].is_not_null())


def _frame(table: pa.Table) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
