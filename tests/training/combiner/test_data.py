"""CIRR's training split is trained on where it lies, in the form in which its validation split is released.

Triplets to validate with become queries of one gallery.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import cirr
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import COLOURS, GROUNDS, Settings
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import Query
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.combiner.data import RankedTriplets, open_data
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.runs.settings import checked

RELEASED = Path(__file__).parents[3] / "../shared/data/cirr"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Both splits, and 6 training triplets of two sets whose images lie in two folders, as NLVR2 has them."""
    found = tmp_path / "cirr"
    cirr(found)
    cirr(found, split="train", images="train")
    path = found / "captions/cap.rc2.train.json"
    records = json.loads(path.read_text())
    second = [{**record, "pairid": 100 + n, "caption": f"other {n}"} for n, record in enumerate(records)]
    for record in second:
        record["img_set"] = {**record["img_set"], "id": 37}
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
    assert data.validation is not None and len(list(data.validation.examples())) == 3
    (fact,) = data.facts()["data"]
    assert (fact["split"], fact["images"], fact["examples"], fact["left_out"]) == ("train", 4, 6, 0)
    names = ["captions/cap.rc2.train.json", "image_splits/split.rc2.train.json"]
    assert [shard["tar"] for shard in fact["shards"]] == names


def test_missing_images_are_counted_and_an_empty_one_is_named(
    root: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "img_raw/train/34/train-0-0-img0.png").unlink()
    data = open_data(settings(f"cirr={root}"))
    assert len(data.training) == 4 and data.facts()["data"][0]["left_out"] == 2
    assert "2 triplets left out: missing image" in caplog.text
    assert "cap.rc2.train.json record 0: train-0-0-img0" in caplog.text
    (root / "img_raw/train/train-2-0-img0.png").write_bytes(b"")
    with pytest.raises(WrongUse, match=r"train-2-0-img0\.png: .* empty"):
        open_data(settings(f"cirr={root}"))


def test_a_file_that_changes_ends_the_next_epoch(root: Path, settings: Settings) -> None:
    training = open_data(settings(f"cirr={root}")).training
    training.check_unchanged()
    image = root / "img_raw/train/train-2-0-img0.png"
    image.write_bytes(picture(77, "PNG"))
    with pytest.raises(BrokenTar, match=r"cirr-12061\.target: other bytes"):
        training.read_image(training[1], "target")
    with pytest.raises(BuildFailed, match="rebuilt since this training began"):
        training.check_unchanged()
    image.unlink()
    with pytest.raises(BuildFailed, match=r"train-2-0-img0\.png"):
        training.check_unchanged()


def test_what_is_not_the_split_is_refused(root: Path, settings: Settings) -> None:
    path = root / "captions/cap.rc2.train.json"
    first, *rest = json.loads(path.read_text())
    put(path, [{**first, "target_hard": ""}, *rest])
    with pytest.raises(WrongUse, match=r"cap\.rc2\.train\.json record 0: no target_hard"):
        open_data(settings(f"cirr={root}"))
    path.unlink()
    with pytest.raises(WrongUse, match=r"Expected: captions/cap\.rc2\.train\.json"):
        open_data(settings(f"cirr={root}"))


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
    assert len(open_data(settings(f"cirr={tmp_path}")).training) == 3


def test_queries_rank_every_image_once_and_not_their_reference(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    data = open_data(settings(f"{made_recoloured.root}:others", validation=(f"{made_recoloured.root}:recoloured",)))
    assert isinstance(data.validation, RankedTriplets)
    queries = list(data.validation.examples())
    gallery = queries[0].gallery
    assert all(query.gallery is gallery for query in queries)
    assert len(queries) == 192 and len(gallery) == len(GROUNDS) * len(COLOURS)
    for query in queries:
        (target,), (reference,) = query.targets, query.excluded
        entries = [gallery[place] for place in (target, reference)]
        contents = [entry.read() for entry in entries]  # type: ignore[union-attr]
        assert query.image is not None and contents[1] == query.image.read() != contents[0]


def test_queries_of_one_reference_and_condition_share_their_targets(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    import pyarrow as pa

    training = open_data(settings(f"{made_recoloured.root}:recoloured")).training
    training.table = training.table  # a table may be changed
    table = training.table.set_column(
        training.table.column_names.index("condition"), "condition", pa.array(["any square"] * 192, pa.large_string())
    )
    queries = list(RankedTriplets(type(training)(training.datasets, table)).examples())
    by_reference = {query.excluded: query.targets for query in queries}
    assert len(by_reference) == 48 and all(isinstance(query, Query) for query in queries)
    assert all(query.targets == by_reference[query.excluded] for query in queries)
    assert sum(map(len, by_reference.values())) == 192


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"data": ("cirr=a",), "split": "train"}, "split: cirr=a has one split"),
        ({"validation": ("cirr=a", "b")}, "validation: cirr=a is a benchmark of its own"),
        ({"validation": ("cirr=a",), "validation_split": "x"}, "validation_split: cirr=a has one split"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(WrongUse, match=error):
        checked(CombinerSettings, {"data": ("x",), **changes})
