"""The demo as a user builds it: two of its subsets with real decoding, and all of it in slow tests."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

from tests.end_to_end.conftest import RENDERED, SMALLER_DEMO, Build, contents
from twinset import build, status
from twinset.cli.main import main
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

ONLY_RENDERED = [f"--only={name}" for name in RENDERED]
PAIRS = ("eq-ag", "eq-gebc", "eq-youcook2", *RENDERED, "eq-sd")
OTHERS = ("triplets", "trohn-text", "trohn-img", "bivlc")
TEMPLATES = ("focus-attribute", "change-attribute", "focus-object", "change-object")
CHEAP = ("--only=eq-gebc", "--only=focus-object")


class Demo(NamedTuple):
    """A copy of a build. counts: that the build printed; options: with which it was built."""

    out: Path
    counts: dict[str, Any]
    options: tuple[str, ...]


@pytest.fixture(scope="module", params=["cheap", pytest.param("whole", marks=pytest.mark.slow)])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, build_once: Build) -> Demo:
    options = CHEAP if request.param == "cheap" else SMALLER_DEMO
    built, out = build_once(f"{request.param}-demo", "demo", *options), tmp_path_factory.mktemp("demo") / "out"
    shutil.copytree(built, out)
    return Demo(out, json.loads((built.parent / "counts.json").read_text())["subsets"], options)


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


def counts_by(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == 0
    subsets: dict[str, Any] = json.loads(capsys.readouterr().out)["subsets"]
    return subsets


@pytest.mark.slow
def test_demo_makes_all_subsets(built_demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = counts_by(capsys, "status", built_demo)
    assert set(counts) == {*PAIRS, *TEMPLATES, *OTHERS}
    assert all(subset["kept"] > 0 for subset in counts.values())
    assert counts["eq-youcook2"]["rejected"]["face"] > 0


def test_demo_verifies_and_status_agrees(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.counts["eq-gebc"]["rejected"] == {"motion-word": 2, "equal-captions": 2}
    verified = counts_by(capsys, "verify", demo.out, "--media")
    assert all(subset["problems"] == [] for subset in verified.values())
    shown = counts_by(capsys, "status", demo.out)
    assert shown.keys() == demo.counts.keys()
    for name, subset in shown.items():
        assert subset["planned"] == subset["kept"] + sum(subset["rejected"].values())
        assert subset["done"] == subset["shards"]
        assert subset["missing"] == 0 and subset["stale"] == {}
        assert {key: subset[key] for key in demo.counts[name]} == demo.counts[name]


def test_look_and_exports(demo: Demo, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["look", str(demo.out), "--count", "4"]) == 0
    assert (demo.out / "look-4.html").stat().st_size > 10_000
    for form, kind in (("eqben", PAIRS), ("openclip", PAIRS), ("genecis", TEMPLATES)):
        names = [name for name in kind if name in demo.counts]
        only = [f"--only={name}" for name in names]
        assert main(["export", str(demo.out), *only, "--format", form, "--out", str(tmp_path / form)]) == 0
        assert f"samples: {sum(demo.counts[name]['kept'] for name in names):,}\n" in capsys.readouterr().out


def test_a_changed_byte_is_found_and_mended_and_nothing_else_made_again(
    demo: Demo, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(demo.out, copy)
    made = [path for path in contents(copy) if path.endswith(".tar") or "/receipts/" in path]
    tar = next((copy / "eq-gebc/test").glob("*.tar"))
    content = bytearray(tar.read_bytes())
    content[len(content) // 2] ^= 1
    tar.write_bytes(content)
    sound = [path for path in made if not (path.startswith("eq-gebc/") and Path(path).stem == tar.stem)]
    before = {path: os.stat(copy / path).st_mtime_ns for path in sound}
    assert main(["verify", str(copy)]) == 1
    assert tar.name in capsys.readouterr().err
    assert counts_by(capsys, "build", "demo", "--out", copy, *demo.options) == demo.counts
    assert contents(copy) == contents(demo.out)
    assert {path: os.stat(copy / path).st_mtime_ns for path in sound} == before


@pytest.mark.slow
def test_eqbens_loader_reads_a_list_of_pairs(built_demo: Path, twinset: Any, tmp_path: Path) -> None:
    eqben_utils = pytest.importorskip("eqben.eqben_utils")
    assert twinset("export", built_demo, *ONLY_RENDERED, "--format", "eqben", "--out", tmp_path).returncode == 0

    class Toolkit:
        def process_img_pixel(self, path: str) -> Image.Image:
            return Image.open(path)

    for name in RENDERED:
        annotation = tmp_path / "annotation" / f"{name}.json"
        records = json.loads(annotation.read_text())
        assert isinstance(records, list) and {"image0", "image1", "caption0", "caption1"} <= set(records[0])
        loaded = eqben_utils.EqBenKubric(str(tmp_path / "image"), str(annotation), None, Toolkit())
        assert len(loaded) == len(records) == len([loaded[number] for number in range(len(loaded))])


@pytest.mark.slow
def test_the_evidence_agrees_with_the_counts_and_hugging_face_reads_it(built_demo: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for name in RENDERED:
        loaded = datasets.load_dataset(str(built_demo / name), split="test", cache_dir=str(tmp_path))
        for row, pair in zip(loaded, read_samples(Store(str(built_demo)), name), strict=True):
            provenance: Any = pair.json.provenance
            counted = all(len(provenance[f"instances{n}"]) == provenance[f"count{n}"] for n in (0, 1))
            assert counted == (name == "eq-kubric-counting")
            for number in (0, 1):
                instances = provenance[f"instances{number}"]
                assert all(shown["pixels"] > 0 and 0 < shown["visible"] <= 1 for shown in instances)
                read = row["json"]["provenance"][f"instances{number}"]
                assert [shown["box"] for shown in read] == [shown["box"] for shown in instances]


@pytest.mark.parametrize(
    ("assets", "code"),
    [("/nowhere/GSO.json", 2), ("memory://nowhere/GSO.json", 2), ("http://127.0.0.1:9/GSO.json", 1)],
)
def test_a_manifest_of_assets_that_cannot_be_read(tmp_path: Path, capsys: Any, assets: str, code: int) -> None:
    source = f"subsets.{RENDERED[0]}.source"
    settings = ("--set", f"{source}.assets={assets}", "--set", f"{source}.licence=CC-BY-4.0")
    assert main(["build", "demo", "--out", str(tmp_path / "out"), "--only", RENDERED[0], *settings]) == code
    message = capsys.readouterr().err
    assert assets in message and "Traceback" not in message


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "runner"), [("1", "threads"), ("4", "threads"), ("2", "processes")])
def test_bytes_do_not_depend_on_workers_and_their_kind(
    workers: str, runner: str, small_recipe: Path, twinset: Any, reference: Path, tmp_path: Path
) -> None:
    command = ("build", small_recipe, "--out", tmp_path / "out", "--workers", workers, "--runner", runner)
    assert twinset(*command).returncode == 0
    assert contents(tmp_path / "out") == contents(reference)


@pytest.mark.slow
def test_the_demo_is_scored(built_demo: Path, twinset: Any, tmp_path: Path) -> None:
    places = ("--data", built_demo, "--out", tmp_path / "out", "--cache", tmp_path / "cache")
    result = twinset("eval", "demo", *places, OMP_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr
    benchmarks = json.loads((tmp_path / "out" / "results.json").read_text())["benchmarks"]
    assert set(benchmarks) == {"demo-pairs", "demo-text-pairs", "demo-galleries"}
    models = [model for benchmark in benchmarks.values() for model in benchmark["models"].values()]
    subsets = {name for model in models for name in model["by_subset"]}
    assert {"eq-ag", "eq-kubric-counting", "eq-sd", "bivlc", "change-object"} <= subsets


@pytest.mark.slow
def test_the_demo_trains_and_is_done_when_it_is_called_again(built_demo: Path, twinset: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, again = (twinset("train", "demo", "--data", built_demo, "--out", out, OMP_NUM_THREADS="1") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert {f"report: {out / 'report.html'}", f"model: open_clip:{out}"} <= {*first.stdout.splitlines()}
    losses = [json.loads(line)["loss"] for line in (out / "history.jsonl").read_text().splitlines()]
    assert len(losses) == 40 and losses[-1] < losses[0] / 1.5
    assert "resumed_at: 40" in again.stdout


NEGATIVES = '{kind: replayed-negatives, captions: "miniature:small_world/negatives.csv", licence: CC0-1.0}'


@pytest.mark.slow
def test_the_recipe_triplet_clip_builds_on_the_small_model(tmp_path: Path) -> None:
    settings = (
        f"stages.negatives.source={NEGATIVES}",
        "stages.images.source.engine={kind: diffusers, model: small, steps: 2}",
        "subsets.triplet-clip.source.photos=miniature:small_world/photos",
        "subsets.triplet-clip.source.licence=CC0-1.0",
    )
    build("triplet-clip", tmp_path / "out", settings=settings)
    (subset,) = status(tmp_path / "out")["subsets"].values()
    assert subset["kept"] == 6
