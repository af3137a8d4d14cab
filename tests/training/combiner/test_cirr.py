"""CIRR's training split is trained on where it lies, in the form in which its validation split is released."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import cirr
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import Settings
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.combiner.data import HeldOut, open_data
from twinset.training.combiner.train import train_combiner

RELEASED = Path(__file__).parents[3] / "../shared/data/cirr"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Both splits, and 6 training triplets of two sets whose images lie in two folders, as NLVR2 has them."""
    found = tmp_path / "cirr"
    cirr(found)
    cirr(found, split="train", images="train")
    path = found / "captions/cap.rc2.train.json"
    records = json.loads(path.read_text())
    second = [{**one, "pairid": 100 + n, "caption": f"other {n}"} for n, one in enumerate(records)]
    for one in second:
        one["img_set"] = {**one["img_set"], "id": 37}
    put(path, records + second)
    folder = found / "img_raw/train"
    for number in (0, 1):
        (folder / "34").mkdir(exist_ok=True)
        (folder / f"train-{number}-0-img0.png").rename(folder / f"34/train-{number}-0-img0.png")
    return found


def test_triplets_are_the_records_and_their_images(root: Path, settings: Settings) -> None:
    data = open_data(settings(f"cirr={root}", validation=(f"cirr={root}",)))
    records = json.loads((root / "captions/cap.rc2.train.json").read_text())
    for number, record in enumerate(records):
        example = data.training[number]
        assert (example.key, example.group) == (f"cirr-{record['pairid']}", f"cirr-set-{record['img_set']['id']}")
        assert example.texts == {"condition": record["caption"]}
        for role, name in (("reference", record["reference"]), ("target", record["target_hard"])):
            held = next((root / "img_raw").rglob(f"{name}.png")).read_bytes()
            assert data.training.read_image(example, role) == held
    assert len(data.training) == len(records) == 6
    assert len(list(data.validation.examples())) == 3
    (fact,) = data.facts["data"]
    assert (fact["split"], fact["images"], fact["examples"]) == ("train", 4, 6)
    assert [one["tar"] for one in fact["shards"]] == [
        "captions/cap.rc2.train.json",
        "image_splits/split.rc2.train.json",
    ]


def test_the_paper_trains_on_it_and_validates_on_the_other_split(
    root: Path, made_triplets: MadeDataset, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = root / "captions/cap.rc2.val.json"
    put(path, [{**one, "caption": "a " * 80} for one in json.loads(path.read_text())])
    chosen = settings(f"cirr={root}", validation=(f"cirr={root}",))
    trained = train_combiner(chosen, tmp_path / "run", report=False)
    assert caplog.text.count("texts are longer than the Combiner in training reads") == 1  # of two epochs
    assert len(trained.history) == 6 and set(trained.history[-1]["validation"]) == {"recall@1", "recall@5", "recall@10"}
    # With mined ones, and repeated; groups of CIRR are held out like others.
    both = open_data(settings("", data=(f"cirr={root}*2", f"{made_triplets.root}:triplets"), held_out=0.5))
    assert isinstance(both.validation, HeldOut)
    assert len(both.training) + both.held_out == 12 + 8
    alone = open_data(settings(f"cirr={root}", held_out=0.5))
    groups = [{*some.column("groups")} for some in (alone.training, alone.validation.triplets)]  # type: ignore[attr-defined]
    assert sorted(name for some in groups for name in some) == ["cirr-set-36", "cirr-set-37"]


def test_missing_and_empty_images_are_counted_and_named(
    root: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "img_raw/train/34/train-0-0-img0.png").unlink()
    (root / "img_raw/train/train-3-0-img0.png").write_bytes(b"")
    data = open_data(settings(f"cirr={root}", validation=(f"cirr={root}",)))
    assert len(data.training) == 2 and data.facts["data"][0]["left_out"]["missing image"] == 2
    assert "2 with missing image, 2 with an image that is empty" in caplog.text
    assert "cap.rc2.train.json record 0: train-0-0-img0" in caplog.text
    (root / "img_raw/train/train-2-0-img0.png").write_bytes(b"")
    with pytest.raises(WrongUse, match="no triplet is left"):
        open_data(settings(f"cirr={root}"))


def test_a_file_that_changes_ends_the_next_epoch(root: Path, settings: Settings) -> None:
    data = open_data(settings(f"cirr={root}", validation=(f"cirr={root}",)))
    data.training.check_unchanged()
    image = root / "img_raw/train/train-2-0-img0.png"
    image.write_bytes(picture(77, "PNG"))
    with pytest.raises(BrokenTar, match=r"cap\.rc2\.train\.json: cirr-12061\.target: "):
        data.training.read_image(data.training[1], "target")
    with pytest.raises(BuildFailed, match="rebuilt since this training began"):
        data.training.check_unchanged()
    image.unlink()
    with pytest.raises(BuildFailed, match=r"train-2-0-img0\.png: absent"):
        data.training.check_unchanged()


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ({"target_hard": ""}, "cap.rc2.train.json record 0: no text in the field 'target_hard'"),
        ({"caption": None}, "cap.rc2.train.json record 0: no text in the field 'caption'"),
        ({"reference": "../../train-0-0-img0"}, "is no image of split.rc2.train.json"),
        ({"pairid": 101}, "have the key 'global/101'"),
        ({"img_set": {"id": "x"}}, "cap.rc2.train.json record 0"),
    ],
)
def test_a_damaged_record_is_named(root: Path, settings: Settings, broken: dict[str, Any], error: str) -> None:
    path = root / "captions/cap.rc2.train.json"
    first, *rest = json.loads(path.read_text())
    put(path, [{**first, **broken}, *rest])
    with pytest.raises(WrongUse, match=error):
        open_data(settings(f"cirr={root}"))


def test_what_is_not_the_split_is_refused(root: Path, settings: Settings) -> None:
    with pytest.raises(ValueError, match=r"split: cirr=.* has one split"):
        settings(f"cirr={root}", split="train")
    (root / "captions/cap.rc2.train.json").unlink()
    with pytest.raises(WrongUse, match=r"Expected: captions/cap\.rc2\.train\.json"):
        open_data(settings(f"cirr={root}"))
    with pytest.raises(WrongUse, match="there is no such folder"):
        open_data(settings("cirr=nowhere"))


@pytest.mark.slow
def test_the_released_list_of_training_images_names_their_folders(tmp_path: Path, settings: Settings) -> None:
    if not RELEASED.is_dir():
        pytest.skip("CIRR's annotations are not in ../shared/data/cirr on this machine")
    split = json.loads(gzip.decompress((RELEASED / "image_splits/split.rc2.train.json.gz").read_bytes()))
    form = json.loads((RELEASED / "cap.rc2.val.json").read_text())[:3]
    assert len(split) == 16_939
    names = list(split)[:6]
    for number, record in enumerate(form):
        record |= {"reference": names[number], "target_hard": names[number + 1]}
        record["img_set"]["members"] = names
    put(tmp_path / "captions/cap.rc2.train.json", form)
    put(tmp_path / "image_splits/split.rc2.train.json", split)
    for number, name in enumerate(names):
        put(tmp_path / "images" / split[name], picture(number, "PNG"))
    data = open_data(settings(f"cirr={tmp_path}"))
    assert len(data.training) + data.held_out == 3
