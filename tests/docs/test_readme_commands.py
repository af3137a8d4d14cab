"""The README's commands for photographs with captions run as typed, but for the places of a user's own files."""

import os
import re
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from tests.docs.captioned_photographs import (
    SHARED,
    Photograph,
    captions_of,
    flickr8k,
    painted,
    write_images,
    write_img2dataset,
    write_karpathy,
    write_tokens,
)

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^    (twinset (?:.*\\\n)*.*)$", re.MULTILINE)
PLACE = re.compile(r"/data/[^\s']+")  # of a user's own files
SPLITS = {"train": "train", "validation": "val", "test": "test"}
JSON, IMAGES, TARS = "/data/dataset_flickr30k.json", "/data/flickr30k-images", "/data/cc3m/{00000..00331}.tar"


def section(page: str, heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no section {heading}"
    return found[1]


README = section("README.md", "Photographs with captions")
#: A build of Flickr8k's own archive, in place of the README's first command.
(TOKENS,) = [one for one in COMMAND.findall(section("docs/scene_graphs.md", "Captions")) if "build photos" in one]


def places(photographs: Sequence[Photograph], form: str, folder: Path) -> Mapping[str, Path | str]:
    """Where the files of a user lie, by what the pages call them."""
    tars = write_img2dataset(photographs, folder / "cc3m")
    last = max(path.stem for path in tars.glob("*.tar"))
    found: dict[str, Path | str] = {TARS: f"{tars}/{{00000..{last}}}.tar"}
    images = write_images(photographs, folder / "images")
    if form == "tokens":
        written = write_tokens(photographs, folder)
        return {**found, "/data/Flicker8k_Dataset": images, **{f"/data/{name}": written[name] for name in written}}
    if form == "img2dataset":
        return {**found, JSON: tars, IMAGES: tars}
    return {**found, JSON: write_karpathy(photographs, folder / "dataset_flickr8k.json"), IMAGES: images}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "form"),
    [("painted", "karpathy"), ("flickr8k", "karpathy"), ("flickr8k", "img2dataset"), ("flickr8k", "tokens")],
)
def test_every_command_runs_as_typed(data: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if data == "flickr8k" and not SHARED.is_dir():
        pytest.skip("Flickr8k is not in ../shared/data on this machine")
    photographs = flickr8k() if data == "flickr8k" else painted()
    (home := tmp_path / "data").mkdir()
    lie = places(photographs, form, home)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    commands = COMMAND.findall(README)
    if form == "tokens":
        commands[0] = TOKENS
    for command in commands:
        typed = PLACE.sub(lambda found: str(lie[found[0]]), command)
        done = subprocess.run(["bash", "-c", typed], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{typed}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
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
        options = Namespace(
            val_data=tars, train_num_samples=None, val_num_samples=0, dataset_resampled=False, seed=0, batch_size=1,
            train_data_upsampling_factors=None, workers=0, world_size=1, distributed=False,
        )  # fmt: skip
        loader = data.get_wds_dataset(options, size, is_train=False, tokenizer=lambda text: [text])
        read = [(sizes[0], texts[0]) for sizes, texts in loader.dataloader]
        assert sorted(text[0] if isinstance(text, list) else text for _, text in read) == sorted(
            captions_of(photographs, name)
        )
        assert all(min(one) > 0 for one, _ in read)


def size(image: Any) -> tuple[int, int]:
    width, height = image.size
    return width, height
