"""A finished stage of text pairs, written by the real writers without an engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.generators.finished_stage import write_index
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.kinds.samples import Frame, MediaFile, encode_image
from twinset.contracts.licences.terms import Terms
from twinset.contracts.recipe import Encoding
from twinset.generators.text_pairs import TextPair
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.rows import TarWriter, fields_of
from twinset.shards.storage import layout

HOME = "negative-images"
RED, BLUE = (200, 30, 30), (20, 60, 220)


@dataclass(frozen=True)
class Drawn:
    """An image of one colour that was generated from a caption."""

    caption: str
    original: str
    number: int = 0
    colour: tuple[int, int, int] = RED
    caption_id: str = "7"

    def sample(self, key: str, group: str) -> TextPair:
        return TextPair(
            key=key,
            group=group,
            split="test",
            provenance={"caption_id": self.caption_id, "number": self.number},
            image=frame_of(key, self.colour),
            caption=self.caption,
            negative_caption=self.original,
        )


def finish(folder: Path, drawn: Sequence[Any], with_images: bool = True) -> FinishedStage:
    """A stage with one shard of these images; drawn: each as `Drawn`."""
    tar_path, rows = layout.tar(HOME, "test", 0), []
    (folder / tar_path).parent.mkdir(parents=True, exist_ok=True)
    (folder / tar_path).unlink(missing_ok=True)
    with TarWriter(folder / tar_path) as tar:
        for image in drawn:
            sample = image.sample(sample_key(HOME, image.caption_id, image.number), sample_key(HOME, image.caption_id))
            images = {role: encode_image(frame, Encoding()) for role, frame in sample.pictures().items()}
            tar.add_sample(sample.key, fields_of(sample, images, HOME, Terms("CC0-1.0"), "jpg"))
            places = {"tar": tar_path.removeprefix(f"{HOME}/") if with_images else "", "split": "test"}
            hashes = {f"{role}_sha256": image.sha256 if with_images else None for role, image in images.items()}
            identity = identity_of(image.caption_id, image.number)
            named = {"key": sample.key, "identity": identity, "group": sample.group}
            rows.append({**named, **places, **sample.described(), **hashes})
    return write_index(pa.Table.from_pylist(rows), folder, HOME, len(rows))


def frame_of(name: str, colour: tuple[int, int, int]) -> Frame:
    return Frame(name, np.full((32, 48, 3), colour, np.uint8), -1.0, MediaFile("made", 0, ""))
