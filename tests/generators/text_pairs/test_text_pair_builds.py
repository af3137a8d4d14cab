"""Whole builds: negatives become text pairs with images, which others' tools and twinset itself read again.

Text pairs planned from tables of negative captions: groups, splits, images and scores.
"""

import json
from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.generators.made_inputs import write
from tests.generators.selection.scored_stage import drawn, row, stage_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.recipe import parse_recipe
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.generators.text_pairs import TextPair, TextPairCandidate, TextPairs
from twinset.shards.contracts import Context
from twinset.shards.export.formats import export
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here

KINDS = ("replace_obj", "swap_att")
RECORDS = 6  # of each kind; two of each image, one image absent


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``text``: pairs with images in two splits; ``chosen``: a selection of scores; ``unkind``: a pair of no kind."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "photos").mkdir()
    for kind in KINDS:
        records = {str(number): _record(kind, number) for number in range(RECORDS)}
        write(folder, {f"released/{kind}.json": json.dumps(records).encode()})
    (folder / "any.csv").write_text("image_id,caption,negative_caption\n7,A dog.,A cat.\n")
    for image in range(1, RECORDS // 2):
        Image.new("RGB", (40, 30), (80 * image, 90, 200)).save(folder / f"photos/{image:012d}.jpg")
    stage_of(drawn(600), folder / "before")
    selected = {"kind": "selected-negatives", "scores": str(folder / "before/scores"), "quantile": 0.2}
    pairs = _pairs("negatives", images=str(folder / "photos"), train=0.5)
    raw: dict[str, Any] = {
        "name": "text",
        "max_missing": 1,
        "stages": {
            "negatives": {"source": {"kind": "replayed-negatives", "captions": str(folder / "released")}},
            "any": {"source": {"kind": "replayed-negatives", "captions": str(folder / "any.csv")}},
            "selected": {"source": selected},
        },
        "subsets": {
            "text": {"source": pairs, "split": "validation", "shard_size": 4},
            "chosen": {"source": _pairs("selected"), "shard_size": 50},
            "unkind": {"source": _pairs("any")},
        },
    }
    build_here(parse_recipe(raw), str(folder / "out"), 1)
    return folder / "out"


def _record(kind: str, number: int) -> dict[str, str]:
    words = {"caption": f"A dog by car {number}.", "negative_caption": f"A {kind[:4]} cat by car {number}."}
    return {"filename": f"{number // 2:012d}.jpg", **words}


def _pairs(negatives: str, **settings: Any) -> dict[str, Any]:
    return {"kind": "text-pairs", "negatives": negatives, "licence": "CC0-1.0", **settings}


def test_what_load_dataset_reads(out: Path, tmp_path: Path) -> None:
    samples = list(read_samples(Store(str(out)), "text"))
    assert len(samples) == 2 * (RECORDS - 2)  # image 0 is absent
    assert samples[0].json.source.files["image"].path == "000000000001.jpg"
    datasets = pytest.importorskip("datasets")
    export(Store(str(out)), ["text"], "trohn", tmp_path / "to")
    folders = (str(out / "text"), str(tmp_path / "to"))
    built, exported = (datasets.load_dataset(folder, cache_dir=str(tmp_path / "cache")) for folder in folders)
    assert built.keys() == exported.keys() == {sample.json.split for sample in samples} and len(built) == 2
    assert sum(map(len, built.values())) == sum(map(len, exported.values())) == len(samples)
    assert next(iter(exported.values())).column_names[:3] == ["image_id", "caption", "negative_caption"]
    first = next(iter(built.values()))[0]
    assert first["jpg" if "jpg" in first else "image.jpg"].size == (40, 30)


def test_a_selection_becomes_an_index_that_is_exported_too(out: Path, tmp_path: Path) -> None:
    selected = FinishedStage(Store(str(out)), "_stages/selected")
    index = FinishedStage(Store(str(out)), "chosen")
    assert index.record.kept == selected.record.kept > 20
    assert export(Store(str(out)), ["chosen"], "sugarcrepe", tmp_path / "to") == index.record.kept
    entries = json.loads((tmp_path / "to/add_obj.json").read_bytes())
    assert list(entries) == [str(number) for number in range(len(entries))]
    assert all(len(entry["filename"]) == len("000000000139.jpg") for entry in entries.values())
    columns = ["caption", "negative_caption", "vera_negative", "cola_caption", "similarity", "type", "image_id"]
    rows, expected = (stage.read(columns).to_pylist() for stage in (index, selected))
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    card = (out / "chosen/README.md").read_text("utf-8")
    assert "**Stage `selected`.**\n\nSelected by the rules `published`:" in card
    assert "(_meta/selected-gaps.png)" in card and (out / "chosen/_meta/selected-gaps.png").is_file()
    assert "| higher VERA | 50.0% |" in card and "| higher CoLA | 50.0% |" in card


@pytest.mark.parametrize("format", ["sugarcrepe", "trohn"])
def test_exports_are_read_as_negative_captions_again(out: Path, tmp_path: Path, format: str) -> None:
    assert export(Store(str(out)), ["text"], format, tmp_path / "to") == 2 * (RECORDS - 2)
    folders = [tmp_path / "to/data"] if format == "trohn" else sorted((tmp_path / "to").iterdir())
    sources = [ReplayedNegatives(kind="replayed-negatives", captions=(path,)).open(Context("s")) for path in folders]
    again = [candidate for source in sources for candidate in source.plan()]
    assert not any(source.excluded for source in sources)
    records = [_record(kind, number) for kind in KINDS for number in range(2, RECORDS)]
    assert {(pair.image, pair.caption, pair.negative_caption) for pair in again} == {
        tuple(record.values()) for record in records
    }
    assert {pair.counted_as for pair in again} == ({""} if format == "trohn" else {*KINDS})


def test_pairs_of_no_kind_do_not_fit_sugarcrepes_files(out: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no known kind"):
        export(Store(str(out)), ["unkind"], "sugarcrepe", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert export(Store(str(out)), ["unkind"], "trohn", tmp_path / "to") == 1


#: Images of six captions, which do not come image by image.
IMAGES = ["139", "000000000724.jpg", "139", "COCO_val2014_000000000785", "", "000000000724.jpg"]


def rows(images: list[str] = IMAGES) -> list[dict[str, Any]]:
    return [row(number, "add_obj", image_id=image, vera_negative=None) for number, image in enumerate(images)]


def pairs(**settings: Any) -> TextPairs:
    return TextPairs.model_validate({"kind": "text-pairs", "negatives": "scores", "licence": "CC0-1.0", **settings})


def planned(earlier: FinishedStage, split: str = "test", **settings: Any) -> list[TextPairCandidate]:
    return list(pairs(**settings).open(Context("text", split, 0, lambda _: earlier)).plan())


def test_pairs_of_an_image_follow_each_other_in_the_order_of_the_table(tmp_path: Path) -> None:
    candidates = planned(stage_of(rows(), tmp_path, row_group=2))
    assert [pair.caption_id for pair in candidates] == ["c/0", "c/2", "c/1", "c/5", "c/3", "c/4"]
    assert [pair.group for pair in candidates][:5] == [IMAGES[place] for place in (0, 2, 1, 5, 3)]
    assert candidates[5].group == candidates[5].key
    many = rows([str(number * number % 37) if number % 5 else "" for number in range(400)])
    groups = [
        group for group, _ in groupby(planned(stage_of(many, tmp_path / "many", row_group=64)), attrgetter("group"))
    ]
    assert len(groups) == len(set(groups)) == 80 + len({values["image_id"] for values in many} - {""})


def test_splits_are_by_image_and_the_same_in_every_stage(tmp_path: Path) -> None:
    earlier = stage_of(rows([str(number % 1000) for number in range(3000)]), tmp_path)
    candidates = planned(earlier, "validation", train=0.8)
    of_image: dict[str, set[str]] = {}
    for pair in candidates:
        of_image.setdefault(pair.image_id, set()).add(pair.split)
    assert {len(splits) for splits in of_image.values()} == {1}
    assert Counter(pair.split for pair in candidates)["train"] / 3000 == pytest.approx(0.8, abs=0.04)
    again = pairs(train=0.8).open(Context("other", "validation", 0, lambda _: earlier)).plan()
    assert [pair.split for pair in again] == [pair.split for pair in candidates]
    smaller = {pair.image_id for pair in planned(earlier, train=0.5) if pair.split == "train"}
    assert smaller < {pair.image_id for pair in candidates if pair.split == "train"}, "a larger share takes images away"
    assert {pair.split for pair in planned(earlier)} == {"test"}
    with pytest.raises(WrongUse, match="text: its split is 'train'"):
        planned(earlier, "train", train=0.8)


def test_images_are_found_by_id_by_name_and_as_coco_called_them(tmp_path: Path) -> None:
    first, second, third = "000000000139.jpg", "COCO_val2014_000000000724.jpg", "000000000785.jpg"
    for number, name in enumerate((first, second, third)):
        Image.new("RGB", (40, 30), (90 * number, 20, 60)).save(tmp_path / name)
    earlier = stage_of(rows(), tmp_path / "stage")
    generator = pairs(images=tmp_path).open(Context("text", earlier=lambda _: earlier))
    candidates = list(generator.plan())
    assert generator.excluded.examples == [("no-image", 'scores ["c/4"]')]
    made = list(generator.make(candidates))
    names = [pair.image.source.path for pair in made if isinstance(pair, TextPair) and pair.image is not None]
    assert names == [first, first, second, second, third]
    (tmp_path / second).unlink()
    again = pairs(images=tmp_path).open(Context("text", earlier=lambda _: earlier))
    lost = [(pair.reason, pair.media) for pair in again.make(candidates) if isinstance(pair, Rejected)]
    assert lost == [("missing-media", "000000000724.jpg")] * 2
    addresses = [row(0, image_id="http://a.example/1.jpg", image="http://a.example/1.jpg")]
    with pytest.raises(WrongUse, match=r"subsets\.text\.source\.images: no row of scores names an image"):
        planned(stage_of(addresses, tmp_path / "addresses"), images=tmp_path)
