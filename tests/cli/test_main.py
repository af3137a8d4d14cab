"""What the commands say of a dataset whose media are missing, or whose plan is gone; no flow runs here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import main
from manifests.recipe import load_recipe
from shards.storage.store import Store
from stages.prepare import make_one, prepare


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """OUT with the subset ``eq-steps`` of one video that is not there: every shard is made, every pair rejected."""
    segments = [{"id": n, "segment": [9 * n, 9 * n + 5], "sentence": f"Chop {n} onions."} for n in range(3)]
    (tmp_path / "steps.json").write_text(json.dumps({"database": {"video": {"annotations": segments}}}))
    (tmp_path / "media").mkdir()
    source = "{kind: youcook2, annotations: steps.json, media: media}"
    (tmp_path / "recipe.yaml").write_text(f"name: small\nsubsets: {{eq-steps: {{source: {source}}}}}\n")
    out = str(tmp_path / "out")
    stage = prepare(Store(out), load_recipe(str(tmp_path / "recipe.yaml")), "eq-steps")
    for number in range(stage.shards):
        make_one(out, "eq-steps", number)
    return tmp_path / "out"


def test_status_tells_of_missing_media_though_all_shards_are_done(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(made), "--json"]) == 0
    subset = json.loads(capsys.readouterr().out)["subsets"]["eq-steps"]
    assert (subset["done"], subset["missing"], subset["missing_media"]) == (1, 0, 3)
    assert "media of 3 of 3 candidates is missing or broken, such as video" in subset["problems"][0]
    assert main(["status", str(made)]) == 0
    assert "media of 3 of 3 candidates" in capsys.readouterr().out
    assert main(["verify", str(made)]) == 1


@pytest.mark.parametrize("alone", [True, False])
def test_a_subset_without_its_stage_record_is_a_problem(
    made: Path, alone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if not alone:
        prepare(Store(str(made)), load_recipe(str(made.parent / "recipe.yaml")), "eq-steps")
        (made / "eq-steps").rename(made / "eq-lost")
        prepare(Store(str(made)), load_recipe(str(made.parent / "recipe.yaml")), "eq-steps")
        make_one(str(made), "eq-steps", 0)
    lost = "eq-steps" if alone else "eq-lost"
    (made / lost / "_meta/stage.json").unlink()
    assert main(["status", str(made), "--json"]) == 0
    subsets = json.loads(capsys.readouterr().out)["subsets"]
    assert len(subsets) == (1 if alone else 2)
    assert (subsets[lost]["planned"], subsets[lost]["done"]) == (0, 0)
    assert f"{lost}/_meta/stage.json: absent" in subsets[lost]["problems"][0]
    assert main(["verify", str(made), "--only", lost]) == 1
    assert f"{lost}/_meta/stage.json: absent" in capsys.readouterr().err
    assert main(["look", str(made), "--only", lost]) == 2
    assert main(["verify", str(made), "--only", "eq-other"]) == 2


def test_a_folder_in_place_of_a_file_is_named_with_what_to_do(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receipt = made / "eq-steps/_meta/receipts/00000.json"
    receipt.unlink()
    receipt.mkdir()
    assert main(["status", str(made)]) == 1
    said = capsys.readouterr().err
    assert str(receipt) in said and "remove the folder that lies where a file belongs" in said


def test_a_plan_has_no_column_of_what_is_kept(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(made.parent / "recipe.yaml")]) == 0
    assert "planned" in (table := capsys.readouterr().out) and "kept" not in table
    assert main(["plan", str(made.parent / "recipe.yaml"), "--json"]) == 0
    subset = json.loads(capsys.readouterr().out)["subsets"]["eq-steps"]
    assert (subset["planned"], subset["kept"], subset["rejected"], subset["shards"]) == (3, 0, {}, 1)


@pytest.mark.parametrize("place", ["", "s3://", "s3:///prefix", "file://", "a\0b", "caf\udce9"])
def test_a_place_that_is_none_is_wrong_use(made: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["build", "demo", "--out", place], ["status", place]):
        try:
            assert main(arguments) == 2
        except SystemExit as ended:
            assert ended.code == 2
        said = capsys.readouterr().err
        assert "name" in said and "Traceback" not in said


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("twinset ")
