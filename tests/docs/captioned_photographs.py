"""Photographs with captions, as Karpathy's JSON and img2dataset lay them out."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import webdataset
from PIL import Image

IN_A_TAR = 50  # samples; img2dataset's default is 10,000


@dataclass(frozen=True)
class Photograph:
    name: str
    split: str
    captions: Sequence[str]
    content: bytes


def painted() -> list[Photograph]:
    """24 pictures of noise of a colour, five captions each."""
    found, random = [], np.random.default_rng(0)
    for number in range(24):
        stream = io.BytesIO()
        pixels = random.integers(0, 255, (60, 80, 3)) // 2 + random.integers(0, 128, 3)
        Image.fromarray(pixels.astype(np.uint8)).save(stream, "JPEG")
        split = "val" if number % 6 == 4 else "test" if number % 6 == 5 else "train"
        captions = [f"Colour {number} in words of number {at} ." for at in range(5)]
        found.append(Photograph(f"{number}_{number:04x}.jpg", split, captions, stream.getvalue()))
    return found


def write_images(photographs: Sequence[Photograph], folder: Path) -> Path:
    folder.mkdir()
    for one in photographs:
        (folder / one.name).write_bytes(one.content)
    return folder


def write_karpathy(photographs: Sequence[Photograph], path: Path) -> Path:
    """``dataset_flickr8k.json`` of caption_datasets.zip."""
    images, sentence = [], 0
    for number, one in enumerate(photographs):
        sentences = [
            {"tokens": said.lower().split(), "raw": said, "imgid": number, "sentid": sentence + at}
            for at, said in enumerate(one.captions)
        ]
        sentence += len(sentences)
        numbers = [each["sentid"] for each in sentences]
        image = {"sentids": numbers, "imgid": number, "sentences": sentences, "split": one.split}
        images.append({**image, "filename": one.name})
    path.write_text(json.dumps({"images": images, "dataset": "flickr8k"}), "utf-8")
    return path


def write_img2dataset(photographs: Sequence[Photograph], folder: Path) -> Path:
    """Tars and Parquet as img2dataset writes them of a table with a row a caption, whose column ``split`` was kept."""
    folder.mkdir()
    rows = [(one, said) for one in photographs for said in one.captions]
    for shard, start in enumerate(range(0, len(rows), IN_A_TAR)):
        name = folder / f"{shard:05d}"
        listed = []
        with webdataset.TarWriter(f"{name}.tar") as tar:
            for at, (one, said) in enumerate(rows[start : start + IN_A_TAR]):
                facts = {"key": f"{name.name}{at:04d}", "url": f"http://x.org/{one.name}", "caption": said}
                listed.append({**facts, "split": one.split, "status": "success", "error_message": None})
                tar.write({"__key__": facts["key"], "jpg": one.content, "txt": said, "json": listed[-1]})
        gone = {"key": f"{name.name}9999", "url": "http://x.org/gone.jpg", "caption": "Gone.", "split": "train"}
        listed.append({**gone, "status": "failed_to_download", "error_message": "HTTP Error 404"})
        pq.write_table(pa.Table.from_pylist(listed), f"{name}.parquet")
        stats = {"count": len(listed), "successes": len(listed) - 1, "failed_to_download": 1}
        Path(f"{name}_stats.json").write_text(json.dumps(stats))
    return folder
