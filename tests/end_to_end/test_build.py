"""The miniature as a user builds it without a server: real decoding, faces and renders."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.end_to_end.conftest import SMALLER_DEMO, contents, counts_of
from twinset.cli.main import main
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

RENDERED = ("eq-kubric-location", "eq-kubric-counting", "eq-kubric-attribute")
ONLY_RENDERED = [f"--only={name}" for name in RENDERED]
PAIRS = ("eq-ag", "eq-gebc", "eq-youcook2", *RENDERED, "eq-sd")
OTHERS = ("triplets", "trohn-text", "trohn-img", "bivlc")
TEMPLATES = ("focus-attribute", "change-attribute", "focus-object", "change-object")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, smaller_demo: Any) -> tuple[Path, dict[str, Any]]:
    """A copy of the smaller demo's build, and what the build counted."""
    out = tmp_path_factory.mktemp("demo") / "out"
    shutil.copytree(smaller_demo[0], out)
    return out, smaller_demo[1]


def test_demo_makes_all_subsets(demo: Any) -> None:
    _, counts = demo
    assert set(counts) == {*PAIRS, *TEMPLATES, *OTHERS}
    for subset in counts.values():
        assert subset["kept"] > 0
        assert subset["planned"] == subset["kept"] + sum(subset["rejected"].values())
    assert counts["eq-youcook2"]["rejected"]["face"] > 0
    assert {"motion-word", "equal-captions"} <= set(counts["eq-gebc"]["rejected"])


def test_demo_verifies_and_status_agrees(demo: Any, twinset: Any) -> None:
    out, counts = demo
    verified = counts_of(twinset("verify", out, "--media", "--json"))
    assert all(subset["problems"] == [] for subset in verified.values())
    status = counts_of(twinset("status", out, "--json"))  # stdout is JSON alone
    assert status.keys() == counts.keys()
    for name, subset in status.items():
        assert subset["done"] == subset["shards"]
        assert subset["missing"] == 0 and subset["stale"] == {}
        assert {key: subset[key] for key in counts[name]} == counts[name]


def test_look_and_exports(demo: Any, twinset: Any, tmp_path: Path) -> None:
    out, counts = demo
    look = twinset("look", out, "--count", "4")
    assert look.returncode == 0, look.stderr
    assert (out / "look-4.html").stat().st_size > 10_000
    for format, names in (("eqben", PAIRS), ("openclip", PAIRS), ("genecis", TEMPLATES)):
        only = [f"--only={name}" for name in names]
        export = twinset("export", out, *only, "--format", format, "--out", tmp_path / format)
        assert export.returncode == 0, export.stderr
        assert f"samples: {sum(counts[name]['kept'] for name in names):,}\n" in export.stdout


@pytest.mark.slow
def test_eqbens_loader_reads_a_list_of_pairs(demo: Any, twinset: Any, tmp_path: Path) -> None:
    eqben_utils = pytest.importorskip("eqben.eqben_utils")
    assert twinset("export", demo[0], *ONLY_RENDERED, "--format", "eqben", "--out", tmp_path).returncode == 0

    class Toolkit:
        def process_img_pixel(self, path: str) -> Image.Image:
            return Image.open(path)

    for name in RENDERED:
        annotation = tmp_path / "annotation" / f"{name}.json"
        records = json.loads(annotation.read_text())
        assert isinstance(records, list) and {"image0", "image1", "caption0", "caption1"} <= set(records[0])
        loaded = eqben_utils.EqBenKubric(str(tmp_path / "image"), str(annotation), None, Toolkit())
        assert len(loaded) == demo[1][name]["kept"] == len([loaded[number] for number in range(len(loaded))])


@pytest.mark.slow
def test_the_evidence_agrees_with_the_counts_and_hugging_face_reads_it(demo: Any, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for name in RENDERED:
        loaded = datasets.load_dataset(str(demo[0] / name), split="test", cache_dir=str(tmp_path))
        for row, pair in zip(loaded, read_samples(Store(str(demo[0])), name), strict=True):
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
def test_a_manifest_of_assets_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, assets: str, code: int
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    source = f"subsets.{RENDERED[0]}.source"
    settings = ("--set", f"{source}.assets={assets}", "--set", f"{source}.licence=CC-BY-4.0")
    assert main(["build", "demo", "--out", str(tmp_path / "out"), "--only", RENDERED[0], *settings]) == code
    message = capsys.readouterr().err
    assert assets in message and "Traceback" not in message


def test_a_changed_byte_is_found_and_mended_and_nothing_else_made_again(
    demo: Any, twinset: Any, tmp_path: Path
) -> None:
    out, counts = demo
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    made = [path for path in contents(copy) if path.endswith(".tar") or "/receipts/" in path]
    assert {Path(path).suffix for path in made} == {".tar", ".json"}
    tar = next((copy / "eq-ag/test").glob("*.tar"))
    content = bytearray(tar.read_bytes())
    content[len(content) // 2] ^= 1
    tar.write_bytes(content)
    sound = [path for path in made if not (path.startswith("eq-ag/") and Path(path).stem == tar.stem)]
    before = {path: os.stat(copy / path).st_mtime_ns for path in sound}
    verify = twinset("verify", copy)
    assert verify.returncode == 1 and tar.name in verify.stderr
    assert counts_of(twinset("build", "demo", "--out", copy, "--json", *SMALLER_DEMO)) == counts
    assert contents(copy) == contents(out)
    assert {path: os.stat(copy / path).st_mtime_ns for path in sound} == before


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "runner"), [("1", "threads"), ("4", "threads"), ("2", "processes")])
def test_bytes_do_not_depend_on_workers_and_their_kind(
    workers: str, runner: str, small_recipe: Path, twinset: Any, reference: Path, tmp_path: Path
) -> None:
    command = ("build", small_recipe, "--out", tmp_path / "out", "--workers", workers, "--runner", runner)
    assert twinset(*command).returncode == 0
    assert contents(tmp_path / "out") == contents(reference)
