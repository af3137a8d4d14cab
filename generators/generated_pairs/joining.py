"""Which image goes with which negative caption: tables of earlier stages, joined.

A frame of images has a row an image: ``row``, the number of its negative caption; ``key``, ``tar``, ``image_sha256``
and `TERMS`; ``score`` and ``original``, how well it shows the caption that it was generated from, and the other one
(0-1), null where nothing was asked; ``verified``, whether anything was.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS
from twinset.shards.finished_stage import FinishedStage

if TYPE_CHECKING:
    import polars as pl

SCORES = {"image_key": "key", "caption_score": "score", "original_score": "original"}


def frame_of(table: pa.Table) -> pl.DataFrame:
    """A table for polars."""
    import polars as pl

    return cast(pl.DataFrame, pl.from_arrow(table))


def images_of(
    earlier: FinishedStage, negatives: pl.DataFrame, side: str, verified: FinishedStage | None = None
) -> pl.DataFrame:
    """Images that were generated from the captions of a side, in the order of their stage; no others.

    earlier: the stage of images, whose groups are the negative captions. negatives: columns ``identity`` and that of
    the side, all rows. side: ``caption`` or ``negative_caption``. verified: the stage that scored the images.
    Raises `WrongUse`: one has no image.
    """
    import polars as pl

    groups = [sample_key(earlier.stage.name, *json.loads(identity)) for identity in negatives["identity"]]
    captions = negatives.select(pl.Series("group", groups, pl.String), caption=side).with_row_index("row")
    columns = ["key", "tar", "image_sha256", *TERMS]
    read = frame_of(earlier.read([*columns, "group", "caption"]))
    images = read.join(captions, on=["group", "caption"], maintain_order="left").select("row", *columns)
    if len(lacking := images.filter(pl.col("image_sha256") == "")):
        raise WrongUse(f"{earlier.where}: {lacking['key'][0]} has no image; name a stage that draws")
    if verified is None:
        unknown = pl.lit(None, pl.Float64)
        return images.with_columns(score=unknown, original=unknown, verified=False)
    scores = frame_of(verified.read([*SCORES])).rename(SCORES).with_columns(verified=True)
    images = images.join(scores, on="key", how="left", maintain_order="left")
    return images.with_columns(pl.col("verified").fill_null(False))


def first_images(images: pl.DataFrame) -> pl.DataFrame:
    """The first image of each negative caption that has any."""
    return images.unique("row", keep="first", maintain_order=True)


def best_images(images: pl.DataFrame) -> pl.DataFrame:
    """The verified image of each negative caption with the highest score, the first of equal ones.

    Where people have not decided, the verification's scores stand in for them (BiVLC, section 3.2, steps 3 and 4):
    ``ambiguous`` says whether this image shows the original caption at least as well as its own.
    """
    import polars as pl

    best = first_images(images.filter("verified").sort("score", descending=True, nulls_last=True, maintain_order=True))
    return best.with_columns(ambiguous=(pl.col("original") >= pl.col("score").fill_null(1.0)).fill_null(False))


def decided_images(images: pl.DataFrame, negatives: pl.DataFrame, decisions: FinishedStage) -> pl.DataFrame:
    """The image of each negative caption by people's decisions; none where they dropped it or were not asked.

    negatives: column ``identity``, all rows. decisions: a stage of decisions about these captions and images.
    Raises `WrongUse`: a decision is about an image that is not there, or was made again since.
    """
    made = frame_of(decisions.read(["identity", "image_key", "image_sha256"])).rename({"image_key": "key"})
    decided = made.join(negatives.select("identity").with_row_index("row"), on="identity", how="left")
    unknown = decided.join(images, on=["row", "key", "image_sha256"], how="anti")
    if len(unknown):
        raise WrongUse(
            f"{decisions.where}: decides about the image {unknown['key'][0]!r}, which is not among these images, "
            "or was made again; name stages that were made from each other, and run the build of the decisions again"
        )
    return images.join(decided, on=["row", "key"], how="semi")
