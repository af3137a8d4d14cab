"""EQ-Kubric as a user builds it: Blender in child processes, the same bytes from any number of them, every reader."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from tests.end_to_end.conftest import contents, counts_of
from twinset.cli.main import main
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

SUBSETS = ("eq-kubric-location", "eq-kubric-counting", "eq-kubric-attribute")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pairs an aspect, small and coarse; a shard a pair."""
    source = {"kind": "kubric", "assets": "procedural:manifest.json", "licence": "CC0-1.0"}
    coarse = {"resolution": 96, "samples": 4}
    stage = {"count": 3, "encoding": {"format": "png"}, "shard_size": 1, "pool": "render"}
    subsets = {name: {"source": {**source, **coarse, "aspect": name.rsplit("-", 1)[-1]}, **stage} for name in SUBSETS}
    path = tmp_path_factory.mktemp("kubric") / "kubric.yaml"
    path.write_text(yaml.safe_dump({"name": "kubric", "subsets": subsets}))
    return path


@pytest.fixture(scope="module")
def built(recipe: Path, twinset: Any) -> tuple[Path, dict[str, Any]]:
    out = recipe.parent / "out"
    return out, counts_of(twinset("build", recipe, "--out", out, "--workers", "2", "--json"))


@pytest.mark.slow
def test_every_aspect_is_built_and_verifies(built: Any, twinset: Any) -> None:
    out, counts = built
    assert set(counts) == set(SUBSETS)
    for subset in counts.values():
        assert subset["planned"] == 3 == subset["kept"] + sum(subset["rejected"].values())
        assert subset["kept"] >= 2
    verified = counts_of(twinset("verify", out, "--media", "--json"))
    assert all(subset["problems"] == [] for subset in verified.values())


@pytest.mark.slow  # of single pictures, tests/generators/kubric_scenes/test_studio.py says it in seconds
def test_one_worker_makes_the_same_bytes(built: Any, recipe: Path, twinset: Any, tmp_path: Path) -> None:
    assert twinset("build", recipe, "--out", tmp_path / "one", "--workers", "1").returncode == 0
    assert contents(tmp_path / "one") == contents(built[0])


@pytest.mark.slow
def test_the_evidence_agrees_with_the_counts_and_hugging_face_reads_it(built: Any, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for name in SUBSETS:
        loaded = datasets.load_dataset(str(built[0] / name), split="test", cache_dir=str(tmp_path))
        for row, pair in zip(loaded, read_samples(Store(str(built[0])), name), strict=True):
            provenance: Any = pair.json.provenance
            counted = all(len(provenance[f"instances{n}"]) == provenance[f"count{n}"] for n in (0, 1))
            assert counted == (name == "eq-kubric-counting")
            for number in (0, 1):
                instances = provenance[f"instances{number}"]
                assert all(one["pixels"] > 0 and 0 < one["visible"] <= 1 for one in instances)
                read = row["json"]["provenance"][f"instances{number}"]
                assert [one["box"] for one in read] == [one["box"] for one in instances]


@pytest.mark.slow
def test_eqbens_loader_reads_a_list_of_pairs(built: Any, twinset: Any, tmp_path: Path) -> None:
    eqben_utils = pytest.importorskip("eqben.eqben_utils")
    out, counts = built
    assert twinset("export", out, "--format", "eqben", "--out", tmp_path / "eqben").returncode == 0

    class Toolkit:
        def process_img_pixel(self, path: str) -> Image.Image:
            return Image.open(path)

    for name in SUBSETS:
        annotation = tmp_path / "eqben" / "annotation" / f"{name}.json"
        listed = json.loads(annotation.read_text())
        assert isinstance(listed, list) and {"image0", "image1", "caption0", "caption1"} <= set(listed[0])
        loaded = eqben_utils.EqBenKubric(str(tmp_path / "eqben" / "image"), str(annotation), None, Toolkit())
        assert len(loaded) == counts[name]["kept"] == len([loaded[number] for number in range(len(loaded))])


@pytest.mark.parametrize(
    ("assets", "code"),
    [("/nowhere/GSO.json", 2), ("memory://nowhere/GSO.json", 2), ("http://127.0.0.1:9/GSO.json", 1)],
)
def test_a_manifest_that_cannot_be_read(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, assets: str, code: int
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    source = f"subsets.{SUBSETS[0]}.source"
    settings = ("--set", f"{source}.assets={assets}", "--set", f"{source}.licence=CC-BY-4.0")
    assert main(["build", str(recipe), "--out", str(tmp_path / "out"), "--only", SUBSETS[0], *settings]) == code
    message = capsys.readouterr().err
    assert assets in message and "Traceback" not in message
