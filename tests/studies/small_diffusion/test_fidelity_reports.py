"""The small model's reports, run on a random model that can draw nothing: what they hold, and that they repeat."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from studies.small_diffusion import edit_report, measure
from studies.small_diffusion.measure import fidelity, held_out_scenes
from studies.small_diffusion.report import Share
from tests.generators.prompt_to_prompt import tiny_models
from twinset.contracts.errors import WrongUse
from twinset.generators.edited_pairs.vocabulary import KINDS
from twinset_demo.small_diffusion.scenes import Scene, is_held_out, normalised
from twinset_demo.small_world.checker import ATTRIBUTES


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the small model's layout, with random weights."""
    return tiny_models.save_small(tmp_path_factory.mktemp("small"))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_fidelity_is_measured_and_the_same_whatever_the_batch(model: Path, tmp_path: Path) -> None:
    for name, batch in (("one", "4"), ("again", "4"), ("other", "3")):
        arguments = ["--model", str(model), "--prompts", "4", "--steps", "2", "--batch", batch, "--device", "cpu"]
        measure.main([*arguments, "--out", str(tmp_path / name)])
    assert files(tmp_path / "one") == files(tmp_path / "again")
    report = json.loads((tmp_path / "one" / "fidelity.json").read_text())
    assert report["shares"] == json.loads((tmp_path / "other" / "fidelity.json").read_text())["shares"]
    assert report["shares"].keys() > set(ATTRIBUTES) and report["settings"]["prompts"] == 4
    assert report["shares"]["all that the caption says"]["right"] == 0
    assert Image.open(io.BytesIO(files(tmp_path / "one")["fidelity.png"])).width > 128


def test_edits_are_made_each_way_and_reported(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", str(model), "--edits", "1", "--steps", "2", "--device", "cpu"]
    monkeypatch.chdir(tmp_path)
    edit_report.main([*arguments, "--cross", "0.5"])
    assert capsys.readouterr().out.endswith("wrote out/edits/edits.json and out/edits/edits.png\n")
    out = tmp_path / "out/edits"
    report = json.loads((out / "edits.json").read_text())
    assert report["settings"]["cross"] == [0.5]
    ways = {kind: [row["way"] for row in report["rows"] if row["kind"] == kind] for kind in KINDS}
    assert ways["object"] == ways["attribute"] == ["plain", "prompt-to-prompt", "with local blend"]
    assert ways["scene"] == ["plain", "prompt-to-prompt"]
    assert {row["second"]["of"] for row in report["rows"]} == {1}
    assert Image.open(out / "edits.png").width > 4 * 4 * 128
    assert not (out / "sweep.png").exists()


@pytest.mark.slow
def test_a_sweep_holds_plain_and_every_pair_of_steps(model: Path, tmp_path: Path) -> None:
    arguments = ["--model", str(model), "--edits", "1", "--steps", "2", "--device", "cpu", "--out", str(tmp_path)]
    edit_report.main([*arguments, "--cross", "0", "0.5", "--self", "0", "0.5"])
    report = json.loads((tmp_path / "edits.json").read_text())
    tried = {(row["cross_replace_steps"], row["self_replace_steps"], row["way"]) for row in report["rows"]}
    assert tried == {(0, 0, "plain")} | {
        (*steps, way) for steps in ((0, 0.5), (0.5, 0), (0.5, 0.5)) for way in ("prompt-to-prompt", "with local blend")
    }
    assert tuple(report["chosen"]) in {steps[:2] for steps in tried}
    assert Image.open(tmp_path / "sweep.png").height > 400


def test_held_out_scenes_are_those_of_the_world() -> None:
    scenes = held_out_scenes(60, seed=0)
    assert scenes[:20] == held_out_scenes(20, seed=0)
    assert all(is_held_out(scene.caption()) and scene == normalised(scene) for scene in scenes)
    assert len({scene.caption() for scene in scenes}) == 60
    with pytest.raises(WrongUse, match=r"--prompts 100000: only \d{3} captions are kept from training"):
        held_out_scenes(100_000, seed=0)
    ball = Scene(colour="red", place="in the snow")
    verdict = {"style": True, "count": True, "size": False, "colour": True, "shape": True}
    shares = fidelity([ball], [{**verdict, "position": True, "place": True, "time": True}])
    assert shares["all that the caption says"] == Share(1, 1)
    assert shares["all, with what it leaves out"] == Share(0, 1)
    assert shares["size"] == Share(0, 0) and shares["size, left out of the caption"] == Share(0, 1)
