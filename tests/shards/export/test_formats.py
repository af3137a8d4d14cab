"""Exports, read by the released loaders of those they are for.

Which webdataset open_clip's loader for training reads an export with, as docs/export.md says.
"""

import hashlib
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.made_datasets import MadeDataset, index_of
from twinset.cards.describe import describe, show
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.shards.export.eqben import EQBEN_FORMAT
from twinset.shards.export.formats import Format, export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

LOADERS = {"eq-ag": "EqBenAG", "eq-gebc": "EqBenGEBC", "eq-youcook2": "EqBenYoucook2"}


class Toolkit:
    """How the released examples (CLIP) read images: arrays are BGR."""

    def process_img_pixel(self, path: str) -> Image.Image:
        return Image.open(path).convert("RGB")

    def process_img_npy(self, path: str) -> Image.Image:
        return Image.fromarray(np.load(path)[:, :, [2, 1, 0]])


@pytest.mark.parametrize("subset", LOADERS)
def test_eqbens_loader_reads_every_pair(made_pairs: MadeDataset, tmp_path: Path, subset: str) -> None:
    eqben_utils = pytest.importorskip("eqben.eqben_utils")
    folder = tmp_path / "eqben"
    assert export(made_pairs.store, [subset], "eqben", folder) == 8
    loader = getattr(eqben_utils, LOADERS[subset])
    found = loader(str(folder / "image"), str(folder / "annotation" / f"{subset}.json"), None, Toolkit())
    assert len(found) == 8
    for row, pair in zip(found, read_samples(made_pairs.store, subset), strict=True):
        assert row[2:] == tuple(pair.texts.values())
        for shown, kept in zip(row[:2], pair.images.values(), strict=True):
            assert np.array_equal(np.asarray(shown), _pixels(kept))


def test_the_json_is_nested_as_eqben_does_it(made_pairs: MadeDataset, tmp_path: Path) -> None:
    export(made_pairs.store, list(LOADERS), "eqben", tmp_path / "eqben")
    annotations = tmp_path / "eqben" / "annotation"
    graphs = json.loads((annotations / "eq-ag.json").read_bytes())
    assert list(graphs) == ["-Disc_0", "Disc.2", "-Same_3"]
    assert graphs["-Disc_0"]["cup/glass"][0]["caption0"] == ["the disc is red", "red disc"]
    terms = next(iter(read_samples(made_pairs.store, "eq-ag"))).json.terms.columns
    assert terms["licence"] and graphs["-Disc_0"]["cup/glass"][0].items() >= terms.items()
    boundaries = json.loads((annotations / "eq-gebc.json").read_bytes())
    assert boundaries["-Disc_0"][0]["caption0"] == "the disc is red"
    # 3 videos with 3 frames each: written once, however many pairs share them.
    assert len(list((tmp_path / "eqben" / "image" / "eqbenag").rglob("*.jpg"))) == 9
    arrays = list((tmp_path / "eqben" / "image" / "eqbenyoucook2").rglob("*.npy"))
    assert len(arrays) == 9 and np.load(arrays[0]).shape == (72, 96, 3) and np.load(arrays[0]).dtype == np.uint8


def test_eqbens_loader_of_everything_reads_four_rows_a_pair(made_pairs: MadeDataset, tmp_path: Path) -> None:
    eqben_utils = pytest.importorskip("eqben.eqben_utils")
    assert export(made_pairs.store, list(LOADERS), "eqben", tmp_path / "eqben") == 24
    annotation = tmp_path / "eqben" / "annotation" / "ann_json_finegrained_random.json"
    found = eqben_utils.EqBenALL(str(tmp_path / "eqben" / "image"), str(annotation), None, Toolkit())
    rows = [found[number] for number in range(len(found))]
    assert len(rows) == 4 * 24
    pairs = [pair for subset in LOADERS for pair in read_samples(made_pairs.store, subset)]
    captions = [caption for pair in pairs for caption in [*pair.texts.values()] * 2]
    assert [caption for _, caption in rows] == captions


def test_open_clips_loader_reads_two_rows_a_pair(made_pairs: MadeDataset, tmp_path: Path) -> None:
    # Its reader for evaluation, which reads each row once; the one for training breaks on any tar with webdataset 1.0
    # (open_clip asks for <= 0.2.86), and repeats rows to fill batches.
    data = pytest.importorskip("open_clip_train.data")
    folder = tmp_path / "clip"
    assert export(made_pairs.store, ["eq-ag", "eq-gebc"], "openclip", folder) == 16
    sizes = json.loads((folder / "sizes.json").read_text())
    assert sum(sizes.values()) == 32 and len(sizes) == 6
    shards = "::".join(str(folder / name) for name in sizes)
    options = Namespace(
        train_data=shards, val_data=shards, train_num_samples=None, val_num_samples=0, dataset_resampled=False,
        train_data_upsampling_factors=None, seed=0, batch_size=4, workers=0, world_size=1,
    )  # fmt: skip
    loader = data.get_wds_dataset(options, lambda image: np.array(image), is_train=False, tokenizer=lambda text: [text])
    rows = [
        (hashlib.sha256(image.numpy() if hasattr(image, "numpy") else image).hexdigest(), caption)
        for images, captions in loader.dataloader
        for image, caption in zip(images, captions, strict=True)
    ]
    expected = [
        (hashlib.sha256(_pixels(image)).hexdigest(), caption)
        for subset in ("eq-ag", "eq-gebc")
        for pair in read_samples(made_pairs.store, subset)
        for image, caption in zip(pair.images.values(), pair.texts.values(), strict=True)
    ]
    assert len(rows) == 32 and rows == expected
    assert data.get_dataset_size(shards)[0] == 32


def test_an_export_is_whole_or_absent(made_pairs: MadeDataset, tmp_path: Path) -> None:
    damaged = made_pairs.root / layout.tar("eq-ag", "test", 3)
    damaged.write_bytes(damaged.read_bytes()[:3000])
    parent = tmp_path / "exports"
    for format in ("eqben", "openclip"):
        with pytest.raises(TwinsetError, match=r"00003\.tar"):
            export(made_pairs.store, ["eq-ag"], format, parent / format)
    assert list(parent.iterdir()) == []


def test_wrong_use_of_export_says_what_to_do(made_pairs: MadeDataset, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"no export format .coco. here; .* name one of bivlc, eqben"):
        export(made_pairs.store, ["eq-ag"], "coco", tmp_path / "x")
    with pytest.raises(WrongUse, match=r"twinset status .* says what is still to be built"):
        export(made_pairs.store, ["eq-sd"], "openclip", tmp_path / "x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep me")
    with pytest.raises(WrongUse, match="not an empty folder"):
        export(made_pairs.store, ["eq-ag"], "eqben", tmp_path / "full")
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep me"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for at, said in {
        "s3://b/x": "s3:/b/x: is a URL",
        str(tmp_path / "dangling"): "dangling: is a link",
        str(tmp_path / "full/mine.txt/x"): "mine.txt: is a link or not a folder",
    }.items():
        with pytest.raises(WrongUse, match=said):
            export(made_pairs.store, ["eq-ag"], "eqben", Path(at))
    (tmp_path / "empty").mkdir()
    assert export(made_pairs.store, ["eq-ag"], "openclip", tmp_path / "empty") == 8


def test_a_full_disk_is_said_with_the_folder(
    made_pairs: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("twinset.shards.export.eqben.EQBEN_FORMAT", Format(EQBEN_FORMAT.takes, full))
    with pytest.raises(OSError, match="No space") as caught:
        export(made_pairs.store, ["eq-ag"], "eqben", tmp_path / "x")
    assert caught.value.__notes__ == [
        f"{tmp_path}/x: is not written; free some room, or name another --out, and run the command again"
    ]


def test_a_broken_exporter_of_a_package_hides_no_other_fault(
    made_pairs: MadeDataset, tmp_path: Path, bring: Callable[..., None]
) -> None:
    bring("unwell", "twinset.exporters", theirs="nothing_of_this_name:FORMAT")
    with pytest.raises(WrongUse, match=r"--format trohn takes text-pairs; for pairs there is --format bivlc, eqben"):
        export(made_pairs.store, ["eq-ag"], "trohn", tmp_path / "x")


def _pixels(content: bytes) -> Any:
    import io

    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.slow
def test_all_of_it_works_from_an_object_store(made_pairs: MadeDataset, tmp_path: Path) -> None:
    remote = Store(f"memory://{tmp_path.name}")
    for path in sorted(made_pairs.root.rglob("*")):
        if path.is_file():
            remote.write(path.relative_to(made_pairs.root).as_posix(), path.read_bytes())
    for store in (remote, made_pairs.store):
        for name in made_pairs.stages:
            describe(store, name, index_of(store, name))
        show(store, made_pairs.stages)
    names = ["look.html", "eq-ag/README.md"]
    names += [f"eq-gebc/_meta/{name}" for name in ("index.parquet", "croissant.json", "look.png", "histograms.png")]
    assert [remote.read(name) for name in names] == [made_pairs.store.read(name) for name in names]
    for format in ("eqben", "openclip"):
        assert export(remote, ["eq-ag"], format, tmp_path / format) == 8


TRAIN = """
import glob, sys
from argparse import Namespace
import numpy as np
from open_clip_train import data
options = Namespace(
    train_data="::".join(sorted(glob.glob(sys.argv[1] + "/*.tar"))), train_num_samples=None, dataset_resampled=False,
    train_data_upsampling_factors=None, seed=0, batch_size=4, workers=0, world_size=1,
)
loader = data.get_wds_dataset(options, np.array, is_train=True, tokenizer=lambda text: [text])
print(sum(len(texts) for images, texts in loader.dataloader), "rows")
"""


@pytest.mark.slow
def test_the_training_loader_reads_with_0_2_86_and_not_with_1_0(made_pairs: MadeDataset, tmp_path: Path) -> None:
    pytest.importorskip("open_clip_train")
    older = tmp_path / "older"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(older), "webdataset==0.2.86"]
    if subprocess.run(pip, check=False, capture_output=True).returncode:
        pytest.skip("webdataset 0.2.86 cannot be installed here")
    assert export(made_pairs.store, ["eq-ag"], "openclip", tmp_path / "clip") == 8

    def train(path: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", TRAIN, str(tmp_path / "clip")]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    read = train(str(older))
    assert read.stdout == "16 rows\n", read.stderr
    failed = train("")
    assert failed.returncode != 0 and "KeyError: 'fname'" in failed.stderr, "it reads now: correct docs/export.md"
