"""CIRR's training split is trained on where it lies, in the form in which its validation split is released.

Conditions are shuffled among what is trained on alone; held-out triplets become queries of one gallery.

A Combiner learns conditions, resumes to the same bytes, and is opened by evaluation as it was validated.
"""

import functools
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import cirr
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import COLOURS, GROUNDS, Settings, damage
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import Query
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Composer, Running
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.combiner import train as of_train
from twinset.training.combiner.data import HeldOut, Triplets, open_data
from twinset.training.combiner.features import FeatureBatches
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.train import PASS, train_combiner
from twinset.training.examples.contracts import Example
from twinset.training.runs.loop import OnProgress, Trained
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
        ({"target_hard": ""}, "cap.rc2.train.json record 0: no target_hard"),
        ({"caption": None}, "cap.rc2.train.json record 0: caption: "),
        ({"reference": "../../train-0-0-img0"}, "is not an image of .*split.rc2.train.json"),
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


def examples(triplets: Triplets) -> Iterator[Example]:
    return (triplets[number] for number in range(len(triplets)))


def asked(settings: CombinerSettings) -> list[Query]:
    found = list(open_data(settings).validation.examples())
    assert all(isinstance(one, Query) for one in found)
    return found  # type: ignore[return-value]


def test_shuffled_conditions_are_the_same_texts_at_other_triplets(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    data = f"{made_recoloured.root}:recoloured"
    plain, mixed, again = (
        open_data(settings(data, conditions=conditions)) for conditions in ("matched", "shuffled", "shuffled")
    )
    before, after = ([one.texts["condition"] for one in examples(each.training)] for each in (plain, mixed))
    assert Counter(before) == Counter(after)
    # Six colours: a condition drawn at random is the right one in a sixth of all triplets.
    same = sum(one == other for one, other in zip(before, after, strict=True)) / len(before)
    assert same < 0.3
    pairs = zip(examples(plain.training), examples(mixed.training), strict=True)
    assert all((one.key, one.images) == (other.key, other.images) for one, other in pairs)
    assert plain.validation.digest() == mixed.validation.digest()
    assert plain.training.digest() != mixed.training.digest() == again.training.digest()


def test_held_out_triplets_are_not_trained_on_and_the_same_for_every_model(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    chosen = settings(f"{made_recoloured.root}:recoloured", held_out=0.25)
    opened = open_data(chosen)
    trained, held = ({one.key for one in some} for some in (examples(opened.training), asked(chosen)))
    assert not trained & held and len(trained) == 180 and len(held) == 60
    assert held != {one.key for one in asked(settings(f"{made_recoloured.root}:recoloured", held_out=0.25, seed=1))}


def test_queries_rank_every_image_once_and_not_their_reference(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    queries = asked(settings(f"{made_recoloured.root}:recoloured", held_out=0.9))
    gallery = queries[0].gallery
    assert all(one.gallery is gallery for one in queries)
    assert len(gallery) == len(GROUNDS) * len(COLOURS)
    for one in queries:
        (target,), (reference,) = one.targets, one.excluded
        shown, entries = one.image, [gallery[place] for place in (target, reference)]
        assert shown is not None and not any(isinstance(entry, str) for entry in entries)
        contents = [entry.read() for entry in entries]  # type: ignore[union-attr]
        assert contents[1] == shown.read() != contents[0]


def test_repeated_triplets_ask_again_and_add_no_target(made_triplets: MadeDataset, settings: Settings) -> None:
    chosen = settings(f"{made_triplets.root}:triplets*2", held_out=0.5)
    queries = asked(chosen)
    assert len({one.key for one in queries}) * 2 == len(queries)
    assert all(len(one.targets) == 1 for one in queries)


def test_other_triplets_validate_and_the_same_ones_are_refused(made_triplets: MadeDataset, settings: Settings) -> None:
    data = f"{made_triplets.root}:triplets"
    opened = open_data(settings(data, validation=(f"{made_triplets.root}:two-images",)))
    assert len(opened.training) == 8 and len(list(opened.validation.examples())) == 8
    assert [one["subset"] for one in opened.facts["validation"]] == ["two-images"]
    with pytest.raises(WrongUse, match="is trained on and validated with"):
        open_data(settings(data, validation=(data,)))


def test_cirr_chooses_the_best_as_in_the_paper(made_triplets: MadeDataset, settings: Settings, tmp_path: Path) -> None:
    cirr(tmp_path / "cirr")
    chosen = settings(f"{made_triplets.root}:triplets", validation=(f"cirr={tmp_path / 'cirr'}",), frozen="both")
    trained = train_combiner(chosen, tmp_path / "run", report=False, cache=tmp_path / "cache")
    validated = [row["validation"] for row in trained.history if "validation" in row]
    # Three queries of eight images, one of which is the reference.
    assert [one["recall@10"] for one in validated] == [100, 100]
    assert all(round(one["recall@1"] * 3 / 100, 6) in (0, 1, 2, 3) for one in validated)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"validation": ("cirr=a", "b")}, "validation: cirr=a is a benchmark of its own"),
        ({"validation": ("cirr=a",), "validation_split": "x"}, "validation_split: cirr=a has one split"),
        ({"betas": (0.9, 1.0)}, "betas: both are from 0 to below 1"),
        ({"conditions": "none"}, "conditions: Input should be"),
        ({"batch": 7, "accumulate": 2}, "accumulate: 2 parts do not divide a batch of 7"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(WrongUse, match=error):
        checked(CombinerSettings, {"data": ("x",), **changes})


def train(settings: CombinerSettings, out: Path, **more: Any) -> Trained:
    """A run without reports, with a cache beside it."""
    return train_combiner(settings, out, report=False, cache=out.parent / "cache", **more)


def recall(model: str, settings: CombinerSettings, cache: Path) -> float:
    """recall@1 in percent of a model on the validation of a run, asked as evaluation asks."""
    import numpy as np

    from twinset.evaluation.features.score_table import ranks

    running = Running(batch=PASS, threads=1)
    scorer = open_model(model, running)
    assert isinstance(scorer, Composer)
    similarities = similarities_of(scorer, cache, running)
    assert isinstance(similarities, ByFeatures)
    queries = list(open_data(settings).validation.examples())
    similarities.prepare(queries)
    found = [ranks(similarities.gallery(one), one.targets, one.excluded) for one in queries]
    return 100 * float(np.mean([one["higher"] + one["tied"] == 0 for one in found]))


@pytest.mark.parametrize("frozen", ["none", "image", "text", "both"])
def test_evaluation_opens_what_was_trained_and_finds_the_same_recall(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, frozen: str
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", frozen=frozen)
    trained = train_combiner(chosen, tmp_path / "run", cache=tmp_path / "cache")
    assert recall(trained.model, chosen, tmp_path / "cache") == trained.best_value
    assert trained.best_value == max(row["validation"]["recall@1"] for row in trained.history if "validation" in row)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"settings.json", "result.json", "data.json", "README.md", "report.html", "tensorboard"} <= names
    assert ("best_clip.safetensors" in names) is (frozen != "both") and not any("checkpoint" in name for name in names)
    assert "3 triplets of its data are held out" in (tmp_path / "run/README.md").read_text()
    assert "recall@1" in (tmp_path / "run/report.html").read_text() and trained.model.startswith("combiner:")
    left = tmp_path / "run/checkpoints/00000001.safetensors"
    left.parent.mkdir()
    left.write_bytes(b"of a run that was killed while it removed its checkpoints")
    again = train(chosen, tmp_path / "run")
    assert not left.parent.exists()
    assert again.resumed_at == len(trained.history) and again.digest == trained.digest


def test_the_command_says_which_model_evaluation_opens(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets")
    said = [
        "train",
        "combiner",
        "--data",
        chosen.data[0],
        "--model",
        chosen.model,
        "--weights",
        "random",
        "--frozen=both",
    ]
    said += ["--batch", "2", "--epochs", "1", "--projection", "12", "--hidden", "20", "--held-out", "0.3"]
    said += ["--threads", "1", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "run")]
    assert main(said) == 0
    said_of = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    model = said_of["model"]
    assert Path(said_of["report"]).is_file() and open_model(model, Running(threads=1)).name == model
    assert main([*said, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == model and found["resumed_at"] == found["steps"] == 2
    assert main([*said, "--dropout", "1"]) == 2 and "dropout: Input should be less than 1" in capsys.readouterr().err


class Stop(Exception):
    """Ends a run in the middle, as a kill does for all that is on disk."""


def stopping(after: int) -> OnProgress:
    def stop(step: int, steps: int, row: Any) -> None:
        if step == after:
            raise Stop

    return stop


def test_steps_in_place_of_epochs_end_a_run_within_one(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    data = f"{made_triplets.root}:triplets"
    whole = train(settings(data, frozen="both", epochs=3), tmp_path / "epochs")
    same = train(settings(data, frozen="both", epochs=0, steps=len(whole.history)), tmp_path / "steps")
    assert same.digest == whole.digest and len(whole.history) == 6
    short = train(settings(data, frozen="both", steps=5), tmp_path / "short")
    assert [row["epoch"] for row in short.history] == [1, 1, 2, 2, 3] and "validation" in short.history[-1]
    assert len({row["lr"] for row in short.history}) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"frozen": "both"}, {"workers": 1}, {"accumulate": 2, "precision": "bfloat16", "frozen": "image"}]
)
def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, changes: dict[str, Any]
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", checkpoint_every=1, epochs=3, **changes)
    whole = train(chosen, tmp_path / "whole")

    with pytest.raises(Stop):
        train(chosen, tmp_path / "parts", on_progress=stopping(4))
    resumed = train(chosen, tmp_path / "parts")
    assert resumed.resumed_at == 3 and len(whole.history) == 6
    assert resumed.digest == whole.digest and resumed.history == whole.history
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "parts")]
    assert results[0] == results[1]


def test_a_combiner_learns_conditions_and_of_shuffled_ones_it_does_not(
    made_recoloured: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    learning: dict[str, Any] = {
        "frozen": "both", "batch": 48, "epochs": 35, "lr": 2e-3, "projection": 64, "hidden": 128, "dropout": 0.1,
        "held_out": 0.2, "validate_every": 1000,
    }  # fmt: skip
    data = f"{made_recoloured.root}:recoloured"
    matched = settings(data, **learning)
    trained = train(matched, tmp_path / "matched")
    shuffled = train(settings(data, **learning, conditions="shuffled"), tmp_path / "shuffled")
    encoder = trained.model.split(":", 2)[2]
    image_only = recall(f"image-only:{encoder}", matched, tmp_path / "cache")
    assert trained.best_value > image_only + 30 and trained.best_value > 55
    # What does not depend on the condition picks one of five targets of a reference.
    assert shuffled.best_value < trained.best_value - 30


def test_another_run_in_the_same_folder_is_refused(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    data = f"{made_triplets.root}:triplets"
    train(settings(data, frozen="both"), tmp_path / "run")
    with pytest.raises(WrongUse, match=r"temperature is 0.01 there and 0.1 here"):
        train(settings(data, frozen="both", temperature=0.1), tmp_path / "run")


@pytest.mark.parametrize(("frozen", "held"), [("both", False), ("none", False), ("none", True)])
def test_an_image_that_cannot_be_read_ends_a_run_and_is_named(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, frozen: str, held: bool
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", frozen=frozen, held_out=0.1)
    data = open_data(chosen)
    assert isinstance(data.validation, HeldOut)
    example = (data.validation.triplets if held else data.training)[0]
    damage(made_triplets, example, "target")
    said = "^validation: " if held else "cannot be read.*"
    with pytest.raises(BuildFailed, match=f"{said}{re.escape(example.where)}.*then resume"):
        train(chosen, tmp_path / "run")
    assert not held or not (tmp_path / "run/history.jsonl").read_bytes()  # before the first step


def test_a_frozen_run_whose_tar_was_repaired_meanwhile_is_not_resumed_to_other_bytes(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_train, "FeatureBatches", functools.partial(FeatureBatches, max_broken=0.5))
    chosen = settings(f"{made_triplets.root}:triplets", frozen="both", checkpoint_every=1)
    example = open_data(chosen).training[0]
    tar = made_triplets.root / example.images["target"].tar
    whole = tar.read_bytes()
    damage(made_triplets, example, "target")
    with pytest.raises(Stop):
        train(chosen, tmp_path / "run", on_progress=stopping(2))
    broken = tar.read_bytes()
    tar.write_bytes(whole)
    with pytest.raises(BuildFailed, match=f"^{re.escape(example.where)}: can be read now, and could not when this run"):
        train(chosen, tmp_path / "run")
    tar.write_bytes(broken)
    assert train(chosen, tmp_path / "run").resumed_at == 1
