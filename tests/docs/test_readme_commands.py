"""The README's commands for captions and photographs run as typed, but for the places of a user's own files.

So do those of docs/training.md, in the order of the page.
"""

import io
import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import Image

from tests.generators.negative_captions.test_negative_captions import CAPTIONS
from tests.made_recipe import run
from tests.tiny_encoders import save_transformers
from twinset.cli.main import main

IN_A_TAR = 50  # samples; img2dataset's default is 10,000


@dataclass(frozen=True)
class Photograph:
    name: str
    split: str
    captions: Sequence[str]
    content: bytes


def painted() -> list[Photograph]:
    photographs, random = [], np.random.default_rng(0)
    for number in range(24):
        stream = io.BytesIO()
        pixels = random.integers(0, 255, (60, 80, 3)) // 2 + random.integers(0, 128, 3)
        Image.fromarray(pixels.astype(np.uint8)).save(stream, "JPEG")
        split = ("train", "train", "train", "train", "val", "test")[number % 6]
        captions = [f"Colour {number} in words of number {at} ." for at in range(5)]
        photographs.append(Photograph(f"{number}_{number:04x}.jpg", split, captions, stream.getvalue()))
    return photographs


def write_karpathy(photographs: Sequence[Photograph], path: Path) -> None:
    """``dataset_flickr8k.json`` of caption_datasets.zip, by what twinset reads of it."""
    images = [
        {
            "imgid": number,
            "filename": photograph.name,
            "split": photograph.split,
            "sentences": [{"raw": text, "sentid": 5 * number + at} for at, text in enumerate(photograph.captions)],
        }
        for number, photograph in enumerate(photographs)
    ]
    path.write_text(json.dumps({"images": images, "dataset": "flickr8k"}), "utf-8")


def write_img2dataset(photographs: Sequence[Photograph], folder: Path) -> None:
    """Tars and Parquet as img2dataset writes them of a table with a row a caption, whose column ``split`` was kept."""
    folder.mkdir()
    rows = [(photograph, caption) for photograph in photographs for caption in photograph.captions]
    for shard, start in enumerate(range(0, len(rows), IN_A_TAR)):
        name = folder / f"{shard:05d}"
        listed = []
        with webdataset.TarWriter(f"{name}.tar") as tar:
            for at, (photograph, caption) in enumerate(rows[start : start + IN_A_TAR]):
                facts = {"key": f"{name.name}{at:04d}", "url": f"http://x.org/{photograph.name}", "caption": caption}
                listed.append({**facts, "split": photograph.split, "status": "success", "error_message": None})
                tar.write({"__key__": facts["key"], "jpg": photograph.content, "txt": caption, "json": listed[-1]})
        pq.write_table(pa.Table.from_pylist(listed), f"{name}.parquet")


ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^    ((?:twinset|torchrun) (?:.*\\\n)*.*)$", re.MULTILINE)
PLACE = re.compile(r"/data/[^\s']+")  # of a user's own files
JSON, IMAGES, TARS = "/data/dataset_flickr30k.json", "/data/flickr30k-images", "/data/cc3m/{00000..00331}.tar"


def section(page: str, heading: str) -> str:
    text = re.search(rf"^## {heading}\n(.*?)(?=^## )", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert text, f"{page} has no section {heading}"
    return text[1]


def typed(command: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run(["bash", "-c", command], folder, environment)


README = section("README.md", "Photographs with captions")


@pytest.mark.slow
def test_every_command_for_photographs_runs_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photographs, home = painted(), tmp_path / "data"
    (home / "images").mkdir(parents=True)
    for photograph in photographs:
        (home / "images" / photograph.name).write_bytes(photograph.content)
    write_img2dataset(photographs, home / "cc3m")
    write_karpathy(photographs, home / "dataset_flickr8k.json")
    last = max(path.stem for path in home.glob("cc3m/*.tar"))
    places = {TARS: f"{home}/cc3m/{{00000..{last}}}.tar", IMAGES: f"{home}/images"}
    places[JSON] = f"{home}/dataset_flickr8k.json"
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    for command in COMMAND.findall(README):
        typed(PLACE.sub(lambda place: places[place[0]], command), tmp_path)
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before  # the index of tars is beside OUT

    monkeypatch.chdir(tmp_path)
    (expression,) = re.findall(r'load_dataset\("(.*?)"\)', README)
    loaded = datasets.load_dataset(expression, cache_dir="cache")
    for split, name in {"train": "train", "validation": "val", "test": "test"}.items():
        captions = [list(photograph.captions) for photograph in photographs if photograph.split == name]
        assert sorted(row["json"]["captions"] for row in loaded[split]) == sorted(captions)
    for scores in (
        "retrieval/scores/twinset/open_clip-out-clip",
        "retrieval-cc3m/scores/twinset/open_clip-out-clip-cc3m",
    ):
        table = pq.read_table(f"out/{scores}.parquet")
        entries = Counter(zip(table["subset"].to_pylist(), table["entries"].to_pylist(), strict=True))
        asked = 5 * len(captions)
        assert entries == {
            ("photos/image-to-text", asked): len(captions),
            ("photos/text-to-image", len(captions)): asked,
        }


@pytest.mark.slow
def test_the_commands_for_hard_negatives_run_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sng_parser")
    images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(len(CAPTIONS))]
    annotations = [{"id": at, "image_id": at, "caption": caption} for at, caption in enumerate(CAPTIONS)]
    (tmp_path / "captions_train2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "train2017").mkdir()
    for number, image in enumerate(images):
        pixels = np.full((16, 16, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "train2017" / str(image["file_name"]))
    monkeypatch.chdir(tmp_path)
    for text in COMMAND.findall(section("README.md", "Hard negatives")):
        assert main(shlex.split(text.replace("/data/", f"{tmp_path}/").replace("\\\n", " "))[1:]) == 0
    counts = json.loads((tmp_path / "out/hard/hard-negatives/_meta/sizes.json").read_text())
    assert sum(counts.values()) > len(CAPTIONS) / 4


TRAINING = (ROOT / "docs/training.md").read_text("utf-8")
#: "`NAME.yaml`:" at the end of a paragraph, then the file.
FILE = re.compile(r"`([\w-]+\.yaml)`:\n\n((?:    .*\n)+)")


@pytest.mark.slow
def test_every_command_of_training_runs_as_typed(tmp_path: Path) -> None:
    for name, content in FILE.findall(TRAINING):
        (tmp_path / name).write_text(re.sub("^    ", "", content, flags=re.MULTILINE), "utf-8")
    save_transformers(tmp_path / "weights" / "blip-itm", "blip")  # the page says that it must be there
    for command in COMMAND.findall(TRAINING):
        typed(command, tmp_path)
    assert "| + EqSim |" in (tmp_path / "out/grid/grid.md").read_text("utf-8")
