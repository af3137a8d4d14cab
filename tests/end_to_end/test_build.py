"""The demo as a user builds it: two of its subsets with real decoding, and all of it in slow tests."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

from tests.end_to_end.conftest import RENDERED, SMALLER_DEMO, Build, contents
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
    status = counts_by(capsys, "status", demo.out)
    assert status.keys() == demo.counts.keys()
    for name, subset in status.items():
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
