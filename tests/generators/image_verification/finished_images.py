"""A finished stage of text pairs or pairs, written by the real writers without an engine."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from twinset.contracts.canonical import digest, identity_of, sample_key, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, encode_image
from twinset.contracts.kinds.text_pair import TextPair
from twinset.contracts.licences.terms import Terms
from twinset.contracts.receipt import IndexRecord
from twinset.contracts.recipe import Encoding
from twinset.contracts.stage import Stage, stage_facts
from twinset.shards.fields import fields_of
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import TarWriter

HOME = "negative-images"


@dataclass(frozen=True)
class Drawn:
    """An image of one colour that was generated from a caption."""

    caption: str
    original: str
    number: int = 0
    colour: tuple[int, int, int] = (200, 30, 30)
    caption_id: str = "7"


@dataclass(frozen=True)
class DrawnPair:
    """A pair of images of one colour each, and their captions."""

    captions: tuple[str, str]
    colours: tuple[tuple[int, int, int], tuple[int, int, int]] = ((200, 30, 30), (20, 60, 220))
    caption_id: str = "7"
    number: int = 0


def finish(folder: Path, drawn: Sequence[Drawn | DrawnPair], with_images: bool = True) -> FinishedStage:
    """A stage with one shard of these images."""
    store, rows = Store(str(folder)), []
    tar_path = layout.tar(HOME, "test", 0)
    (folder / tar_path).parent.mkdir(parents=True, exist_ok=True)
    (folder / tar_path).unlink(missing_ok=True)
    with TarWriter(folder / tar_path) as tar:
        for one in drawn:
            sample = _sample(one) if isinstance(one, Drawn) else _pair(one)
            images = {role: encode_image(frame, Encoding()) for role, frame in sample.pictures().items()}
            tar.add_sample(sample.key, fields_of(sample, images, HOME, Terms("CC0-1.0"), "jpg"))
            rows.append(
                {
                    "key": sample.key,
                    "identity": identity_of(one.caption_id, one.number),
                    "tar": tar_path.removeprefix(f"{HOME}/") if with_images else "",
                    "split": "test",
                    "group": sample.group,
                    **sample.described(),
                    **{f"{role}_sha256": image.sha256 if with_images else None for role, image in images.items()},
                }
            )
    index = folder / layout.meta(HOME, "index.parquet")
    index.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), index)
    facts = stage_facts("text-pair", {"rows": len(rows)}, "", {}, [], [])
    stage = Stage(
        name=HOME, facts=facts, content=digest(facts), plan="0" * 32, planned=len(rows), shards=1, excluded={}
    )
    record = IndexRecord(
        content=stage.content,
        plan=stage.plan,
        digest=sha256_of_file(index)[0],
        planned=len(rows),
        kept=len(rows),
        rows=len(rows),
        files={"index.parquet": sha256_of_file(index)},
    )
    store.write(layout.meta(HOME, "stage.json"), stage.to_bytes())
    store.write(layout.meta(HOME, "index.json"), record.to_bytes())
    return FinishedStage(store, HOME)


def encoded(colour: tuple[int, int, int], size: tuple[int, int] = (48, 32)) -> bytes:
    """A JPEG of one colour with a black corner."""
    pixels = np.full((size[1], size[0], 3), colour, np.uint8)
    pixels[: size[1] // 2, : size[0] // 2] = 0
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def _sample(one: Drawn) -> TextPair:
    pixels = np.full((32, 48, 3), one.colour, np.uint8)
    key = sample_key(HOME, one.caption_id, one.number)
    return TextPair(
        key=key,
        group=sample_key(HOME, one.caption_id),
        split="test",
        provenance={"caption_id": one.caption_id, "number": one.number},
        image=Frame(key, pixels, -1.0, MediaFile("made", 0, "")),
        caption=one.caption,
        negative_caption=one.original,
    )


def _pair(one: DrawnPair) -> Pair:
    key = sample_key(HOME, one.caption_id, one.number)
    frames = [
        Frame(f"{key}#{side}", np.full((32, 48, 3), colour, np.uint8), -1.0, MediaFile("made", 0, ""))
        for side, colour in enumerate(one.colours)
    ]
    return Pair(
        key=key,
        group=sample_key(HOME, one.caption_id),
        split="test",
        provenance={"caption_id": one.caption_id},
        change="made",
        image0=frames[0],
        image1=frames[1],
        captions0=one.captions[:1],
        captions1=one.captions[1:],
    )
