"""The README's commands for captions and photographs run as typed, but for the places of a user's own files.

So do those of docs/training.md, in the order of the page.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.docs.captioned_photographs import (
    Photograph,
    captions_of,
    painted,
    write_images,
    write_img2dataset,
    write_karpathy,
)
from tests.generators.negative_captions.test_negative_captions import CAPTIONS
from tests.shards.export.test_exports import options
from tests.tiny_encoders import save_transformers
from twinset.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^    ((?:twinset|torchrun) (?:.*\\\n)*.*)$", re.MULTILINE)
PLACE = re.compile(r"/data/[^\s']+")  # of a user's own files
SPLITS = {"train": "train", "validation": "val", "test": "test"}
JSON, IMAGES, TARS = "/data/dataset_flickr30k.json", "/data/flickr30k-images", "/data/cc3m/{00000..00331}.tar"


def section(page: str, heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no section {heading}"
    return found[1]


def run(command: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


README = section("README.md", "Photographs with captions")


def places(photographs: Sequence[Photograph], form: str, folder: Path) -> Mapping[str, Path | str]:
    """Where the files of a user lie, by what the pages call them."""
    tars = write_img2dataset(photographs, folder / "cc3m")
    last = max(path.stem for path in tars.glob("*.tar"))
    found: dict[str, Path | str] = {TARS: f"{tars}/{{00000..{last}}}.tar"}
    images = write_images(photographs, folder / "images")
    if form == "img2dataset":
        return {**found, JSON: tars, IMAGES: tars}
    return {**found, JSON: write_karpathy(photographs, folder / "dataset_flickr8k.json"), IMAGES: images}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["karpathy", "img2dataset"])
def test_every_command_runs_as_typed(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """... but of tars a model is trained for fewer steps."""
    photographs = painted()
    (home := tmp_path / "data").mkdir()
    lie = places(photographs, form, home)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    for command in COMMAND.findall(README):
        typed = PLACE.sub(lambda place: str(lie[place[0]]), command)
        if form != "karpathy":
            typed = typed.replace("--steps 100", "--steps 2").replace("--warmup 10", "--warmup 1")
        run(typed, tmp_path)
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before  # the index of tars is beside OUT

    monkeypatch.chdir(tmp_path)
    each = form == "img2dataset"  # a row of a table is an image with one caption there
    check_dataset(photographs, each)
    check_export(photographs)
    asked = sum(1 for _ in captions_of(photographs, "test"))
    images = asked if each else sum(one.split == "test" for one in photographs)
    for scores in (
        "retrieval/scores/twinset/open_clip-out-clip",
        "retrieval-cc3m/scores/twinset/open_clip-out-clip-cc3m",
    ):
        table = pq.read_table(f"out/{scores}.parquet")
        found = Counter(zip(table["subset"].to_pylist(), table["entries"].to_pylist(), strict=True))
        assert found == {("photos/image-to-text", asked): images, ("photos/text-to-image", images): asked}


def check_dataset(photographs: Sequence[Photograph], each: bool) -> None:
    """`datasets` reads all photographs with their captions, in their splits."""
    (expression,) = re.findall(r'load_dataset\("(.*?)"\)', README)
    loaded = datasets.load_dataset(expression, cache_dir="cache")
    assert set(loaded) == {*SPLITS}
    for split, name in SPLITS.items():
        said = [row["json"]["captions"] for row in loaded[split]]
        there = [list(one.captions) for one in photographs if one.split == name]
        assert sorted(said) == sorted([[one] for captions in there for one in captions] if each else there)
        assert loaded[split][0]["jpg"].size[0] > 0


def check_export(photographs: Sequence[Photograph]) -> None:
    """open_clip's own loader reads every caption, with an image."""
    data = pytest.importorskip("open_clip_train.data")
    for split, name in SPLITS.items():
        tars = "::".join(sorted(str(path) for path in Path("out/for-open-clip", split).glob("*.tar")))
        loader = data.get_wds_dataset(options(tars), size, is_train=False, tokenizer=lambda text: [text])
        read = [(sizes[0], texts[0]) for sizes, texts in loader.dataloader]
        assert sorted(text[0] if isinstance(text, list) else text for _, text in read) == sorted(
            captions_of(photographs, name)
        )
        assert all(min(one) > 0 for one, _ in read)


def size(image: Any) -> tuple[int, int]:
    width, height = image.size
    return width, height


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
    for typed in COMMAND.findall(section("README.md", "Hard negatives")):
        assert main(shlex.split(typed.replace("/data/", f"{tmp_path}/").replace("\\\n", " "))[1:]) == 0
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
        run(command, tmp_path)
    assert "| + EqSim |" in (tmp_path / "out/grid/grid.md").read_text("utf-8")
