"""Exports, read by the released loaders of those they are for, or as these read them."""

import ast
import hashlib
import io
import json
from argparse import Namespace
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.made_datasets import MadeDataset
from tests.made_samples import (
    NEGATIVE_SUBSET,
    TASKS,
    Planned,
    draw,
    gallery_subset,
    pair_shards,
    template_shards,
    text_pair_shards,
)
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.generators.captions.image_captions import ImageText
from twinset.generators.text_pairs import TextPair
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout

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
            words = {"caption": captions[0], "negative_caption": negative}
            pair = TextPair(key=key, provenance={"negative_key": key}, **words, **about)
            text.append(Planned(pair, identity_of(number, place), f"{number}"))
    made_pairs.add("photos", PHOTOS, [photos[:2], photos[2:]])
    made_pairs.add("text", NEGATIVE_SUBSET, [text[:6], text[6:]])
    return made_pairs


Described = tuple[str, str]  # sha256 of the decoded image, caption


def described(made: MadeDataset, subset: str) -> dict[Described, set[str]]:
    """Images with a caption of theirs, in order, and captions that are wrong of them."""
    wrong = defaultdict[Described, set[str]](set)
    for sample in read_samples(made.store, subset):
        pixels = [pixels_of(Image.open(io.BytesIO(image))) for image in sample.images.values()]
        if subset == "photos":
            wrong |= {(pixels[0], caption): set() for caption in sample.json.captions}
        elif subset == "text":
            wrong[pixels[0], sample.texts["caption"]].add(sample.texts["negative_caption"])
        else:
            captions = tuple(sample.texts.values())
            for side in (0, 1):
                wrong[pixels[side], captions[side]].add(captions[1 - side])
    return wrong


def pixels_of(image: Any) -> str:
    return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()


def options(place: str) -> Namespace:
    """Of open_clip's command line, as far as its loaders read them."""
    return Namespace(
        train_data=place, val_data=place, train_num_samples=None, val_num_samples=0, dataset_resampled=False,
        train_data_upsampling_factors=None, seed=0, batch_size=1, workers=0, world_size=1, distributed=False,
        csv_img_key="filepath", csv_caption_key="title", csv_separator="\t",
    )  # fmt: skip


def rows_of(loader: Any) -> list[Described]:
    return [(images[0], captions[0]) for images, captions in loader.dataloader]


def words(text: str) -> list[str]:
    """Stands for open_clip's tokenizer, which strips spaces around a text."""
    return [text[0].strip(" ") if isinstance(text, list) else text.strip(" ")]


@pytest.mark.slow
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
    read = rows_of(loader)
    assert len(read) == rows and dict.fromkeys(read) == dict.fromkeys(described(everything, subset))
    assert export(everything.store, [subset], "openclip-csv", tmp_path / "csv") == samples
    monkeypatch.chdir(tmp_path / "csv")
    loader = data.get_csv_dataset(options("test.csv"), pixels_of, is_train=False, tokenizer=words)
    assert rows_of(loader) == read and data.get_dataset_size(shards)[0] == rows


@pytest.mark.parametrize("subset", ["text", "eq-ag"])
def test_negclips_reader_finds_negatives_of_every_line(everything: MadeDataset, tmp_path: Path, subset: str) -> None:
    export(everything.store, [subset], "negclip", tmp_path / "to")
    # As vinid/neg_clip reads it (training/data.py, CsvDataset): lists are Python literals, of captions and of lines.
    lists = {"neg_caption": ast.literal_eval, "neg_image": ast.literal_eval}
    table = pd.read_csv(tmp_path / "to" / "test.csv", sep="\t", converters=lists)
    assert list(table.columns) == ["filepath", "title", "neg_caption", "neg_image", "licence", "credit", "source_url"]
    shown = [pixels_of(Image.open(tmp_path / "to" / path)) for path in table["filepath"]]
    titles = [title.strip(" ") for title in table["title"]]
    wrong = dict(zip(zip(shown, titles, strict=True), map(set, table["neg_caption"]), strict=True))
    assert len(wrong) == len(table) and wrong == described(everything, subset)
    for line, negatives in enumerate(table["neg_image"]):
        assert negatives and all(shown[negative] != shown[line] for negative in negatives)
        if subset == "eq-ag":
            assert {titles[negative] for negative in negatives} == set(table["neg_caption"][line])
            assert all(line in table["neg_image"][negative] for negative in negatives)


def test_llavas_chats_describe_images_and_choose_captions(everything: MadeDataset, tmp_path: Path) -> None:
    subsets = ["photos", "text", "eq-ag"]
    assert export(everything.store, subsets, "llava", tmp_path / "to") == 24
    chats = json.loads((tmp_path / "to" / "test.json").read_bytes())
    assert len({chat["id"] for chat in chats}) == len(chats) == 12 + 2 * 12 + 2 * 16
    plain = {caption: caption.replace("<image>", "< image >") for caption in HOSTILE}
    answers, chosen, first = [], defaultdict[Described, list[str]](list), []
    for chat in chats:
        (_, asked), (_, answer) = turns = [(turn["from"], turn["value"]) for turn in chat["conversations"]]
        assert [who for who, _ in turns] == ["human", "gpt"]
        assert asked.startswith("<image>\n") and f"{asked}{answer}".count("<image>") == 1
        pixels = pixels_of(Image.open(tmp_path / "to" / chat["image"]))
        if asked == "<image>\nDescribe the image in one sentence.":
            answers.append((pixels, answer))
        else:
            first.append(answer)
            options = asked.partition("\nA. ")[2].rpartition("\nAnswer")[0].split("\nB. ")
            chosen[pixels, options["AB".index(answer)]].append(options["BA".index(answer)])
    assert answers == [(image, plain[caption]) for image, caption in described(everything, "photos")]
    assert {*first[::2]} == {"A", "B"} and first.count("A") == first.count("B")
    for subset in ("text", "eq-ag"):
        for (image, caption), wrong in described(everything, subset).items():
            assert {*chosen[image, plain.get(caption, caption)]} == {plain.get(text, text) for text in wrong}


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
    rows = loader(str(folder / "image"), str(folder / "annotation" / f"{subset}.json"), None, Toolkit())
    assert len(rows) == 8
    for row, pair in zip(rows, read_samples(made_pairs.store, subset), strict=True):
        assert row[2:] == tuple(pair.texts.values())
        for shown, kept in zip(row[:2], pair.images.values(), strict=True):
            assert pixels_of(shown) == pixels_of(Image.open(io.BytesIO(kept)))


def test_each_split_has_its_own_file(everything: MadeDataset, tmp_path: Path) -> None:
    photo = ImageText(
        key="train-0", group="0", split="train", image=draw(0), captions=("a", "b"), provenance={}, image_id="0"
    )
    everything.add("train", {**PHOTOS, "split": "train"}, [[Planned(photo, "[0]", "0")]])
    for format in ("openclip-csv", "llava"):
        assert export(everything.store, ["train", "photos"], format, tmp_path / format) == 1 + 4
    for split, rows in (("train", 2), ("test", 12)):
        assert len(pd.read_csv(tmp_path / "openclip-csv" / f"{split}.csv", sep="\t")) == rows
        assert len(json.loads((tmp_path / "llava" / f"{split}.json").read_bytes())) == rows


def test_only_samples_under_chosen_licences_are_exported(made_pairs: MadeDataset, tmp_path: Path) -> None:
    terms = [Terms("CC0-1.0"), Terms("CC-BY-2.0", "Ada")]
    plans = [
        [replace(pair, terms=terms[place % 2]) for place, pair in enumerate(shard)] for shard in pair_shards("five")
    ]
    made_pairs.add("five", {"source": {"kind": "test-folder", "media": "/data"}}, plans)
    kept = [pair.json.licence for pair in read_samples(made_pairs.store, "five")]
    number = export(made_pairs.store, ["five"], "llava", tmp_path / "some", ["cc0"])
    (path,) = (path for path in (tmp_path / "some").iterdir() if path.is_file())
    assert 0 < number == kept.count("CC0-1.0") < len(kept) and "CC-BY-2.0" not in path.read_text()
    with pytest.raises(WrongUse, match=r"no sample of five is under MIT alone; .*CC-BY-2\.0"):
        export(made_pairs.store, ["five"], "llava", tmp_path / "none", ["MIT"])


def test_an_export_is_whole_or_absent(made_pairs: MadeDataset, tmp_path: Path) -> None:
    damaged = made_pairs.root / layout.tar("eq-ag", "test", 3)
    damaged.write_bytes(damaged.read_bytes()[:3000])
    with pytest.raises(TwinsetError, match=r"00003\.tar"):
        export(made_pairs.store, ["eq-ag"], "openclip", tmp_path / "exports/openclip")
    assert list((tmp_path / "exports").iterdir()) == []


def test_wrong_use_says_what_to_do(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset, made_templates: MadeDataset, tmp_path: Path
) -> None:
    for name in made_pairs.store.names(layout.meta("eq-gebc", "receipts")):
        made_pairs.store.remove(layout.meta("eq-gebc", f"receipts/{name}"))
    made_pairs.add("one", NEGATIVE_SUBSET, [text_pair_shards("one")[0][:3]])  # of one image
    made_pairs.add("more-objects", gallery_subset("focus-object"), template_shards("more-objects", "focus-object"))
    for subsets, format, problem in (
        ("one", "negclip", "of one group only"),
        ("eq-ag", "coco", "no export format .coco. here"),
        ("eq-ag", "trohn", "takes text-pairs"),
        ("eq-gebc", "eqben", "no finished shard of eq-gebc"),
        ("text-index", "negclip", "an index without images"),
        ("focus-object more-objects", "genecis", "focus-object and more-objects are both of the task .* --only"),
    ):
        with pytest.raises(WrongUse, match=problem):
            export(made_pairs.store, subsets.split(), format, tmp_path / "to")
        assert not (tmp_path / "to").exists()


FILES = {task: f"{task.replace('-', '_')}.json" for task in TASKS}


@pytest.mark.parametrize("task", TASKS)
def test_every_template_is_in_the_file_of_its_task(made_templates: MadeDataset, tmp_path: Path, task: str) -> None:
    assert export(made_templates.store, list(FILES), "genecis", tmp_path / "to") == 4 * 8
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted(FILES.values())
    templates = json.loads((tmp_path / "to" / FILES[task]).read_text("ascii"))
    for template, sample in zip(templates, read_samples(made_templates.store, task), strict=True):
        assert template == {**sample.json.entry, **sample.json.terms._asdict()}
        assert template["condition"] == sample.texts["condition"]
        assert len(template["gallery"]) + 2 == len(sample.images)
