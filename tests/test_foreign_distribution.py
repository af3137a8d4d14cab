"""A package with a part for each door is installed: twinset builds, screens, exports, evaluates and trains with it."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.made_recipe import ROOT, run_python, write_package
from tests.tiny_encoders import open_clip_config

RECIPE = """
name: mylab
max_missing: 0

stages:
  negatives:
    source:
      kind: negative-captions
      captions: captions.jsonl
      kinds: [replace_obj]
      engine: {kind: mylab-words}
      licence: CC0-1.0
  scores:
    source: {kind: caption-scores, negatives: negatives, scorers: [{kind: mylab-length}]}
  prompts:
    source: {kind: negative-prompts, negatives: negatives, licence: CC0-1.0}
  images:
    source:
      kind: negative-images
      negatives: prompts
      engine: {kind: mylab-flat}
      sides: [caption, negative_caption]
  squares-candidates:
    source: {kind: mylab-squares, annotations: pairs.json, media: photos, licence: CC0-1.0}
    filters:
      - {kind: mylab-bright}
    shard_size: 4
  squares-decisions:
    source: {kind: mylab-screening, pairs: squares-candidates}

subsets:
  squares:
    source: {kind: screened-pairs, pairs: squares-candidates, decisions: squares-decisions}
    shard_size: 4
  drawn:
    source: {kind: generated-pairs, negatives: prompts, images: images, licence: CC0-1.0}
"""
#: The commands in Python, in one process: torch is imported once.
USE = """
import json
from pathlib import Path

import twinset
from twinset.generators.decisions.answers import Answer, FILE
from twinset.generators.decisions.question import planned_tasks
from twinset.review.store import AnswerStore
from twinset.shards.storage.store import Store

def use():
    only = ["squares", "drawn", "scores"]
    try:
        twinset.build("recipe.yaml", "out", only=only)
    except twinset.DecisionsMissing:
        answers = AnswerStore(Path("out", FILE))
        for task in planned_tasks(Store("out"), "_stages/squares-decisions"):
            about = {"stage": "squares-decisions", "task": task.key, "binding": task.binding}
            answers.save(Answer(**about, annotator="ann", answer="yes"))
    built = twinset.build("recipe.yaml", "out", only=only)
    exported = twinset.export("out", "mylab-list", "exported")
    models = ["mylab-grey:100", "mylab-grey:255"]
    evaluated = twinset.evaluate([("mylab-greys", "photos")], models, "evaluated", cache="cache")
    trained = twinset.train(
        ["out:squares"], "trained", model="tiny.json", weights=None, objective="mylab-paired",
        regulariser="mylab-spread", steps=1, batch=4, warmup=0, threads=1,
    )
    return {"built": built, "exported": exported, "evaluated": evaluated, "trained": trained}

if __name__ == "__main__":
    print(json.dumps(use()))
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder where everything was done, and what the functions returned."""
    folder = tmp_path_factory.mktemp("mylab")
    shutil.copytree(ROOT / "tests/foreign/mylab", folder / "installed/mylab")
    project = tomllib.loads((ROOT / "tests/foreign/pyproject.toml").read_text("utf-8"))["project"]
    write_package(folder / "installed", "mylab", project["entry-points"], project["version"])
    (folder / "recipe.yaml").write_text(RECIPE)
    captions = [f"a dog runs over the {where}" for where in ("grass", "sand", "road")]
    lines = [json.dumps({"caption": caption, "image_id": f"i{n}"}) for n, caption in enumerate(captions)]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    (folder / "photos").mkdir()
    pairs = []
    for number in range(9):
        levels = (40 + number, 255 if number == 8 else 160 + number)  # the last is too bright
        pairs.append([f"square{number}", *(f"{number}-{side}.png" for side in "ab")])
        for name, level in zip(pairs[-1][1:], levels, strict=True):
            Image.fromarray(np.full((40, 40, 3), level, np.uint8)).save(folder / "photos" / name)
    named = [dict(zip(("name", "image0", "image1"), pair, strict=True)) for pair in pairs]
    (folder / "photos/pairs.json").write_text(json.dumps(named))
    (folder / "pairs.json").write_text(json.dumps([*pairs, ["odd"]]))
    open_clip_config(folder)
    (folder / "use.py").write_text(USE)
    return folder, json.loads(run_python(folder, "use.py").splitlines()[-1])


def test_a_dataset_is_built_filtered_and_screened_with_its_parts(used: tuple[Path, dict[str, Any]]) -> None:
    folder, results = used
    assert results["built"]["subsets"]["squares"]["kept"] == 8 and results["built"]["subsets"]["drawn"]["kept"] == 3
    out = folder / "out"
    for name in ("squares-candidates", "squares-decisions", "negatives", "scores", "images"):
        assert "mylab 0.1.0" in (out / "_stages" / name / "_meta/stage.json").read_text()
    (rejected,) = pq.read_table(out / "_stages/squares-candidates/_meta/rejections.parquet").to_pylist()
    assert (rejected["filter"], rejected["reason"]) == ("mylab-bright", "bright")
    decisions = pq.read_table(out / "_stages/squares-decisions/_meta/index.parquet")
    assert {*decisions["question"].to_pylist()} == {"mylab-fits"} and {*decisions["choice"].to_pylist()} == {"yes"}
    scores = pq.read_table(out / "_stages/scores/_meta/index.parquet")
    assert scores["letters_caption"].to_pylist() == [len(caption) / 100 for caption in scores["caption"].to_pylist()]
    assert all("cat" in caption for caption in scores["negative_caption"].to_pylist())


AGAIN = """
from twinset.cli.main import main

for name in ("squares", "drawn"):
    assert main(["build", f"{name}.yaml", "--out", f"again-{name}"]) == 0
"""


@pytest.mark.slow
def test_a_card_rebuilds_what_was_screened_or_generated(used: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = used
    for subset in ("squares", "drawn"):
        card = (folder / "out" / subset / "README.md").read_text()
        (pasted,) = re.findall(r"^(`{3,})yaml\n(.*?)^\1$", card.partition("recipe.yaml")[2], flags=re.M | re.S)
        text = pasted[1]
        for named, own in {"captions": "captions.jsonl", "annotations": "pairs.json", "media": "photos"}.items():
            text = text.replace(f"path/to/{named}", own)
        (folder / f"{subset}.yaml").write_text(text)
        shutil.copytree(folder / "out/_review", folder / f"again-{subset}/_review")  # people's decisions are an input
    run_python(folder, "-c", AGAIN)
    for subset in ("squares", "drawn"):
        made, again = (
            {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.tar"))}
            for root in (folder / "out" / subset, folder / f"again-{subset}" / subset)
        )
        assert made and again == made


def test_it_is_exported_with_its_format(used: tuple[Path, dict[str, Any]]) -> None:
    folder, results = used
    lines = (folder / "exported/pairs.tsv").read_text().splitlines()
    assert results["exported"] == len(lines) == 11 and "\ta dark square0\ta light square0" in "".join(lines)


def test_its_benchmark_is_measured_with_its_model_and_metric(used: tuple[Path, dict[str, Any]]) -> None:
    folder, results = used
    first, second = (scores["figures"] for scores in results["evaluated"]["scores"])
    assert first["sum"] == first["group"] == 100 and second["sum"] == 100 and second["text"] < 100
    (table,) = (folder / "evaluated/tables").glob("*-all.csv")
    assert "sum,sum low,sum high" in table.read_text().splitlines()[0]
    assert "sum" in (folder / "evaluated/report.html").read_text()


def test_a_step_is_trained_with_its_losses(used: tuple[Path, dict[str, Any]]) -> None:
    folder, results = used
    record = json.loads((folder / "trained/settings.json").read_text())
    assert results["trained"]["steps"] == 1
    assert (record["settings"]["objective"], record["settings"]["regulariser_weight"]) == ("mylab-paired", 0.125)
    assert record["identity"]["packages"] == {"mylab-paired": "mylab 0.1.0", "mylab-spread": "mylab 0.1.0"}
    row = json.loads((folder / "trained/history.jsonl").read_text().splitlines()[0])
    assert row["loss"] == pytest.approx(row["objective"] + 0.125 * row["regulariser"], rel=1e-4) and "spread" in row
