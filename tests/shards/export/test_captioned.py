"""Exports of images with captions, pairs and text pairs, read as the tools that they are for read them.

Exports, read by the released loaders of those they are for.

Which webdataset open_clip's loader for training reads an export with, as docs/export.md says.
"""

import ast
import hashlib
import io
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.made_datasets import MadeDataset, index_of
from tests.made_samples import NEGATIVE_SUBSET, Planned, draw
from twinset.cards.describe import describe, show
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.kinds.image_text import ImageText
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TextPair
from twinset.contracts.recipe import parse_recipe
from twinset.shards.export.formats import EXPORTERS, Format, export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here
from twinset.training.examples.example_set import open_examples

HOSTILE = (
    'a tab\tand "quotes"', "two\nlines\r\nand\rmore", "NA", "007", "an <image> in words", "红色 🎈 é",
    "it's a \\ and '''", "=1+1", "None", "'", 'nul \0 "', "nan",
)  # fmt: skip
PHOTOS = {"source": {"kind": "image-captions", "captions": ["/data/captions.tsv"], "licence": "CC0-1.0"}}


@pytest.fixture
def everything(made_pairs: MadeDataset) -> MadeDataset:
    """Beside pairs: ``photos``, four images with three captions each, and ``text``, three negatives of each of them."""
    photos, text = [], []
    for number in range(4):
        captions, key = HOSTILE[3 * number :][:3], sample_key("photos", number)
        about: dict[str, Any] = {"group": f"{number}", "split": "test", "image": draw(number), "image_id": f"{number}"}
        photo = ImageText(key=key, captions=captions, provenance={}, **about)
        photos.append(Planned(photo, identity_of(number), f"{number}"))
        for place, negative in enumerate(HOSTILE[::-1][3 * number :][:3]):
            key = sample_key("text", number, place)
            said = {"caption": captions[0], "negative_caption": negative}
            one = TextPair(key=key, provenance={"negative_key": key}, **said, **about)
            text.append(Planned(one, identity_of(number, place), f"{number}"))
    made_pairs.add("photos", PHOTOS, [photos[:2], photos[2:]])
    made_pairs.add("text", NEGATIVE_SUBSET, [text[:6], text[6:]])
    return made_pairs


Said = tuple[str, str]  # sha256 of the decoded image, caption


def told(made: MadeDataset, subset: str) -> dict[Said, set[str]]:
    """Images with a caption of theirs, in order, and captions that are wrong of them."""
    found = defaultdict[Said, set[str]](set)
    for one in read_samples(made.store, subset):
        pixels = [pixels_of(Image.open(io.BytesIO(image))) for image in one.images.values()]
        if subset == "photos":
            found |= {(pixels[0], caption): set() for caption in one.json.captions}
        elif subset == "text":
            found[pixels[0], one.texts["caption"]].add(one.texts["negative_caption"])
        else:
            captions = tuple(one.texts.values())
            for this in (0, 1):
                found[pixels[this], captions[this]].add(captions[1 - this])
    return found


def pixels_of(image: Any) -> str:
    return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()


def options(place: str) -> Namespace:
    return Namespace(
        train_data=place, val_data=place, train_num_samples=None, val_num_samples=0, dataset_resampled=False,
        train_data_upsampling_factors=None, seed=0, batch_size=1, workers=0, world_size=1, distributed=False,
        csv_img_key="filepath", csv_caption_key="title", csv_separator="\t",
    )  # fmt: skip


def rows_of(loader: Any) -> list[Said]:
    return [(images[0], captions[0]) for images, captions in loader.dataloader]


def words(text: str) -> list[str]:
    """Stands for open_clip's tokenizer, which strips spaces around a text."""
    return [text[0].strip(" ") if isinstance(text, list) else text.strip(" ")]


@pytest.mark.parametrize(("subset", "samples", "rows"), [("photos", 4, 12), ("text", 12, 4), ("eq-ag", 8, 16)])
def test_open_clips_loaders_read_a_row_a_caption(
    everything: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subset: str, samples: int, rows: int
) -> None:
    data = pytest.importorskip("open_clip_train.data")
    assert export(everything.store, [subset], "openclip", tmp_path / "tars") == samples
    sizes = json.loads((tmp_path / "tars" / "sizes.json").read_bytes())
    assert sum(sizes.values()) == rows
    shards = "::".join(str(tmp_path / "tars" / name) for name in sizes)
    loader = data.get_wds_dataset(options(shards), pixels_of, is_train=False, tokenizer=words)
    found = rows_of(loader)
    assert len(found) == rows and dict.fromkeys(found) == dict.fromkeys(told(everything, subset))
    assert export(everything.store, [subset], "openclip-csv", tmp_path / "csv") == samples
    monkeypatch.chdir(tmp_path / "csv")
    loader = data.get_csv_dataset(options("test.csv"), pixels_of, is_train=False, tokenizer=words)
    assert rows_of(loader) == found


def test_twinset_trains_on_the_tars_as_on_the_dataset(everything: MadeDataset, tmp_path: Path) -> None:
    everything.describe()
    export(everything.store, ["photos", "eq-ag"], "openclip", tmp_path / "tars")
    for twins in ("both", "first"):  # of a pair; captions of one image are none
        for subset, count in (("photos", 12), ("eq-ag", 16 if twins == "both" else 8)):
            keys = [
                [examples[number].key for number in range(len(examples))]
                for place in (f"{everything.root}:{subset}", f"{tmp_path}/tars/:{subset}")
                for examples in [open_examples([place], "pairs", None, twins=twins)]
            ]
            assert len(keys[0]) == count and keys[0] == keys[1]


@pytest.mark.parametrize("subset", ["text", "eq-ag"])
def test_negclips_reader_finds_a_negative_caption_and_image_of_every_line(
    everything: MadeDataset, tmp_path: Path, subset: str
) -> None:
    export(everything.store, [subset], "negclip", tmp_path / "to")
    # As vinid/neg_clip reads it (training/data.py, CsvDataset): lists are Python literals, of captions and of lines.
    lists = {"neg_caption": ast.literal_eval, "neg_image": ast.literal_eval}
    table = pd.read_csv(tmp_path / "to" / "test.csv", sep="\t", converters=lists)
    assert list(table.columns) == ["filepath", "title", "neg_caption", "neg_image", "licence", "credit", "source_url"]
    shown = [pixels_of(Image.open(tmp_path / "to" / path)) for path in table["filepath"]]
    said = [title.strip(" ") for title in table["title"]]
    found = dict(zip(zip(shown, said, strict=True), map(set, table["neg_caption"]), strict=True))
    assert len(found) == len(table) and found == told(everything, subset)
    for line, others in enumerate(table["neg_image"]):
        assert others and all(shown[other] != shown[line] for other in others)
        if subset == "eq-ag":
            assert {said[other] for other in others} == set(table["neg_caption"][line])
            assert all(line in table["neg_image"][other] for other in others)


def test_negclip_wants_a_second_image(everything: MadeDataset, tmp_path: Path) -> None:
    one = next(read_samples(everything.store, "text")).key
    pair = TextPair(
        key=one, group="0", split="test", image=draw(0), caption="a", negative_caption="b", provenance={}, image_id="0"
    )
    everything.add("one", NEGATIVE_SUBSET, [[Planned(pair, identity_of(0), "0")]])
    with pytest.raises(WrongUse, match="the split test has text pairs of one group only"):
        export(everything.store, ["one"], "negclip", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert export(everything.store, ["one", "eq-ag"], "negclip", tmp_path / "to") == 9


def test_llavas_chats_describe_images_and_choose_captions_in_both_orders(
    everything: MadeDataset, tmp_path: Path
) -> None:
    subsets = ["photos", "text", "eq-ag"]
    assert export(everything.store, subsets, "llava", tmp_path / "to") == 24
    chats = json.loads((tmp_path / "to" / "test.json").read_bytes())
    assert len({chat["id"] for chat in chats}) == len(chats) == 12 + 2 * 12 + 2 * 16
    plain = {caption: caption.replace("<image>", "< image >") for caption in HOSTILE}
    described, chosen, first = [], defaultdict[Said, list[str]](list), []
    for chat in chats:
        (_, asked), (_, answer) = turns = [(turn["from"], turn["value"]) for turn in chat["conversations"]]
        assert [who for who, _ in turns] == ["human", "gpt"]
        assert asked.startswith("<image>\n") and f"{asked}{answer}".count("<image>") == 1
        pixels = pixels_of(Image.open(tmp_path / "to" / chat["image"]))
        if asked == "<image>\nDescribe the image in one sentence.":
            described.append((pixels, answer))
        else:
            first.append(answer)
            options = asked.partition("\nA. ")[2].rpartition("\nAnswer")[0].split("\nB. ")
            chosen[pixels, options["AB".index(answer)]].append(options["BA".index(answer)])
    assert described == [(image, plain[caption]) for image, caption in told(everything, "photos")]
    assert {*first[::2]} == {"A", "B"} and first.count("A") == first.count("B")
    for subset in ("text", "eq-ag"):
        for (image, caption), wrong in told(everything, subset).items():
            assert {*chosen[image, plain.get(caption, caption)]} == {plain.get(one, one) for one in wrong}


@pytest.mark.parametrize(("subset", "rows"), [("text", 12), ("eq-ag", 16)])
def test_datasets_reads_preferences_as_trl_wants_them(
    everything: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subset: str, rows: int
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("twinset.shards.export.chats.TOGETHER", 3)
    export(everything.store, [subset], "preferences", tmp_path / "to")
    read = datasets.load_dataset(str(tmp_path / "to"), cache_dir=str(tmp_path / "cache"))
    assert list(read) == ["test"] and read["test"].column_names == ["images", "prompt", "chosen", "rejected"]
    found = defaultdict[Said, set[str]](set)
    for row in read["test"]:
        (image,), (asked,) = row["images"], row["prompt"]
        assert asked["role"] == "user" and [part["type"] for part in asked["content"]] == ["image", "text"]
        chosen, rejected = (answer_of(row[name]) for name in ("chosen", "rejected"))
        found[pixels_of(image), chosen].add(rejected)
    assert len(read["test"]) == rows and found == told(everything, subset)


def answer_of(messages: Any) -> str:
    """The text of an answer, in the form for models that see (TRL's dataset_formats, "Vision datasets")."""
    (message,) = messages
    (part,) = message["content"]
    assert message["role"] == "assistant" and part["type"] == "text"
    return str(part["text"])


def test_each_split_has_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for number, split in enumerate(("train", "train", "test")):
        Image.fromarray(draw(number).pixels).save(tmp_path / "images" / f"{number}.jpg")
        with (tmp_path / f"{split}.txt").open("a") as stream:
            stream.write(f"{number}.jpg\n")
    lines = [f"{number}.jpg#{at}\tA disc {at}." for number in range(3) for at in range(2)]
    (tmp_path / "tokens.txt").write_text("\n".join(lines) + "\n")
    lists = {split: str(tmp_path / f"{split}.txt") for split in ("train", "test")}
    source = {"kind": "image-captions", "captions": str(tmp_path / "tokens.txt"), "licence": "CC0-1.0", **lists}
    source["images"] = str(tmp_path / "images")
    store = Store(str(tmp_path / "out"))
    build_here(parse_recipe({"name": "photos", "subsets": {"photos": {"source": source}}}), store.root, 1)
    for format in ("openclip", "openclip-csv", "llava"):
        assert export(store, ["photos"], format, tmp_path / format) == 3
    for split, rows in (("train", 4), ("test", 2)):
        sizes = json.loads((tmp_path / "openclip" / split / "sizes.json").read_bytes())
        assert list(sizes.values()) == [rows]
        assert len(open_examples([str(tmp_path / "openclip" / split)], "pairs", None)) == rows
        assert len((tmp_path / "openclip-csv" / f"{split}.csv").read_text().splitlines()) == rows + 1
        assert len(json.loads((tmp_path / "llava" / f"{split}.json").read_bytes())) == rows
    assert len(list((tmp_path / "openclip-csv" / "images").rglob("*.jpg"))) == 3


@pytest.mark.parametrize("format", ["openclip", "openclip-csv", "negclip", "llava", "preferences"])
def test_an_index_without_images_is_refused(made_text_pairs: MadeDataset, tmp_path: Path, format: str) -> None:
    with pytest.raises(WrongUse, match=f"text-index is an index without images, and --format {format} takes images"):
        export(made_text_pairs.store, ["text-index"], format, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_an_exporter_of_a_package_names_one_kind_or_several(bring: Callable[..., None]) -> None:
    bring("lab", "twinset.exporters", one=f"{__name__}:ONE", several=f"{__name__}:SEVERAL")
    assert [EXPORTERS.find(name).kinds for name in ("one", "several")] == [(PAIR,), (PAIR, TextPair.kind)]


ONE = Format(PAIR, lambda *_: 0)
SEVERAL = Format((PAIR, TextPair.kind), lambda *_: 0)


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
    with pytest.raises(WrongUse, match=r"no export format .coco. here; name one of bivlc, eqben"):
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
