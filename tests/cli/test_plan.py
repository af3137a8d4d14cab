"""What ``twinset plan`` prints."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twinset.cli.main import main
from twinset.generators.image_pairs import ImagePairGenerator
from twinset.generators.named_pairs import NamedPairCandidate

Said = pytest.CaptureFixture[str]


def printed(capsys: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_plan_shows_the_dag_with_states_and_whole_names(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    captions = recipe.parent / "captions.tsv"
    captions.write_text("image_id\tcaption\n1.png\tA dog is holding a ball.\n")
    ratings = recipe.parent / "ratings.txt"
    ratings.write_text("Word\tBigram\tConc.M\ndog\t0\t5.0\nball\t0\t5.0\n")
    recipe.write_text(
        recipe.read_text()
        + f"""
  triplets:
    source: {{kind: genecis-triplets, graphs: graphs, concreteness: {ratings}, images: images, licence: CC0-1.0}}
    count: 1
stages:
  graphs:
    source: {{kind: scene-graphs, captions: {captions}}}
"""
    )
    assert main(["plan", str(recipe), "--json"]) == 0
    found = printed(capsys)
    assert found["stages"]["graphs"]["planned"] == 1 and found["stages"]["graphs"]["reads"] == []
    assert found["subsets"]["triplets"]["reads"] == ["graphs"]
    assert found["subsets"]["triplets"]["state"] == "waits for graphs"
    assert (found["subsets"]["pairs"]["planned"], found["subsets"]["pairs"]["shards"]) == (6, 3)
    assert found["subsets"]["pairs"]["examples"] == []
    assert main(["plan", str(recipe)]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^triplets +graphs +\? +\? +waits for graphs$", table, re.M) and "kept" not in table
    assert "?: known once the stages that it reads are built" in table


def test_a_plan_names_models_and_gpus_that_are_not_here_and_what_left_out_means(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (recipe.parent / "pairs.jsonl").open("a").write("{}\n")
    model = recipe.parent / "no-model"
    drawn = f"{{kind: stable-diffusion, model: {model}, device: gpu, licence: CC0-1.0}}"
    recipe.write_text(f"{recipe.read_text()}  drawn: {{source: {drawn}, count: 1}}\n")
    assert main(["plan", str(recipe)]) == 0
    said = capsys.readouterr()
    lacking = [line for line in said.err.splitlines() if line.startswith("not found here: ")]
    assert f"there is no model folder {model}" in lacking[0] and "device is gpu, but torch finds no" in lacking[1]
    (left_out,) = [line for line in said.out.splitlines() if "left out by the plan" in line]
    assert left_out.endswith("1 left out by the plan: no-id (records without an id, which is text or a whole number)")


def test_plan_below_out_says_what_is_done(recipe: Path, built: Path, capsys: Said) -> None:
    (built / "pairs/_meta/receipts/00001.json").unlink()
    assert main(["plan", str(recipe), "--out", str(built), "--json"]) == 0
    assert printed(capsys)["subsets"]["pairs"]["state"] == "2 of 3 shards"
    assert main(["plan", str(recipe), "--out", str(built), "--set", "subsets.pairs.count=4"]) == 0
    assert not (built / "_spool").exists()


def test_a_plan_prints_what_stages_take_and_whose_rates_these_are(recipe: Path, built: Path, capsys: Said) -> None:
    assert main(["plan", str(recipe)]) == 0
    assert (
        "nothing was built to measure it by. Build a few samples and name their folder with --like"
        in capsys.readouterr().out
    )
    assert main(["plan", str(recipe), "--like", str(built)]) == 0
    header, row, together = capsys.readouterr().out.splitlines()[-3:]
    assert header.split()[:4] == ["stage", "candidates", "shards", "samples"] and together.startswith("Together: ")
    assert re.fullmatch(rf"pairs +6 +3 +6 +[\d.]+ kB +[\d.]+ s +6 candidates in {built}", row)
    assert main(["plan", str(recipe), "--like", str(recipe.parent / "nowhere")]) == 2


def test_planning_again_says_that_shards_go_stale(
    recipe: Path, built: Path, capsys: Said, caplog: pytest.LogCaptureFixture
) -> None:
    changed = ["--set", "subsets.pairs.encoding.quality=50"]
    assert main(["plan", str(recipe), "--out", str(built), *changed]) == 0
    assert "its 3 finished shards will be made again" in caplog.text


def test_a_plan_that_fails_is_one_line_and_a_traceback_where_it_is_asked_for(
    recipe: Path, capsys: Said, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(self: ImagePairGenerator) -> Iterator[NamedPairCandidate]:
        yield dict[str, NamedPairCandidate]()["lost"]

    monkeypatch.setattr(ImagePairGenerator, "plan", plan)
    assert main(["plan", str(recipe)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pairs: plan() of source 'image-pairs' failed: KeyError: 'lost' (" in line and "test_plan.py:" in line
    assert "Traceback" not in caplog.text
    with caplog.at_level("INFO", "twinset"):
        main(["--verbose", "plan", str(recipe)])
    assert "Traceback" in caplog.text
