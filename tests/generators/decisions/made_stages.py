"""Finished stages of negative captions, their images and scores, without pictures: decisions are planned from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.generators.finished_stage import write_index
from twinset.contracts.canonical import identity_of, sample_key
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

KINDS = (("replace", "obj"), ("add", "obj"))


@dataclass(frozen=True, slots=True)
class Caption:
    """A negative caption. scores, originals: of each of its images, by its own and by the original caption."""

    scores: Sequence[float]
    originals: Sequence[float]
    kind: tuple[str, str] = KINDS[0]
    photo: str = "photo.png"


def write_stages(folder: Path, captions: Sequence[Caption], rebuilt: Mapping[tuple[int, int], str] = {}) -> None:
    """Write the stages ``negatives``, ``images`` and ``verified`` below a folder.

    rebuilt: sha256 of images that were made again, by numbers of caption and image.
    """
    negatives, images, verified = list[Any](), list[Any](), list[Any]()
    for n, one in enumerate(captions):
        texts = {"caption_id": f"{n}", "caption": f"caption {n}", "negative_caption": f"negative {n}"}
        kind = {"type": one.kind[0], "subtype": one.kind[1], "image_id": f"{n}", "image": one.photo}
        about = {"key": sample_key("negatives", n), "identity": identity_of(n)}
        negatives.append({**about, **texts, **kind})
        for number, scores in enumerate(zip(one.scores, one.originals, strict=True)):
            image = {
                "key": sample_key("images", n, "negative_caption", number),
                "group": sample_key("images", n),
                "identity": identity_of(n, "negative_caption", number),
                "tar": "test/00000.tar",
                "caption": texts["negative_caption"],
                "image_sha256": rebuilt.get((n, number), f"{n:032x}{number:032x}"),
                "caption_id": f"{n}-{number}",
            }
            images.append(image)
            told = {"image_key": image["key"], "caption_score": scores[0], "original_score": scores[1]}
            verified.append({"key": f"v{n}-{number}", "caption_id": f"{n}-{number}", **told})
    ids = [pa.field("key", pa.string()), pa.field("identity", pa.string())]
    write_index(pa.Table.from_pylist(negatives, pa.schema([*ids, *COLUMNS])), folder, "negatives", len(negatives))
    write_index(pa.Table.from_pylist(images), folder, "images", len(images))
    write_index(pa.Table.from_pylist(verified), folder, "verified", len(verified))


def context(folder: Path, name: str, seed: int = 0) -> Context:
    """The context of a stage that is planned from them."""
    earlier: Callable[[str], FinishedStage] = lambda stage: FinishedStage(Store(str(folder)), stage)  # noqa: E731
    return Context(name, seed=seed, earlier=earlier, out=Store(str(folder)))
