"""EQ-Kubric as a user builds it: Blender in child processes, the same bytes from any number of them, every reader."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from twinset.cli.main import main
from twinset.contracts.kinds.kind import Stored
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

SUBSETS = ("eq-kubric-location", "eq-kubric-counting", "eq-kubric-attribute")
PIXELS = 96


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pairs an aspect, small and coarse; a shard a pair."""
    subsets = {
        name: {
            "source": {
                "kind": "kubric",
                "aspect": name.rsplit("-", 1)[-1],
                "assets": "procedural:manifest.json",
                "licence": "CC0-1.0",
                "resolution": PIXELS,
                "samples": 4,
            },
            "count": 3,
            "encoding": {"format": "png"},
            "shard_size": 1,
            "pool": "render",
        }
        for name in SUBSETS
    }
    path = tmp_path_factory.mktemp("kubric") / "kubric.yaml"
    path.write_text(yaml.safe_dump({"name": "kubric", "subsets": subsets}))
    return path


@pytest.fixture(scope="module")
def built(recipe: Path, twinset: Any, counts_of: Any) -> tuple[Path, dict[str, Any]]:
    out = recipe.parent / "out"
    return out, counts_of(twinset("build", recipe, "--out", out, "--workers", "2", "--json"))


@pytest.fixture(scope="module")
def pairs(built: Any) -> dict[str, list[Stored[Any]]]:
    store = Store(str(built[0]))
    return {name: list(read_samples(store, name)) for name in SUBSETS}


@pytest.mark.slow
def test_every_aspect_is_built_and_verifies(built: Any, twinset: Any, counts_of: Any) -> None:
    out, counts = built
    assert set(counts) == set(SUBSETS)
    for subset in counts.values():
        assert subset["planned"] == 3 == subset["kept"] + sum(subset["rejected"].values())
        assert subset["kept"] >= 2
    verified = counts_of(twinset("verify", out, "--media", "--json"))
    assert all(subset["problems"] == [] for subset in verified.values())


@pytest.mark.slow  # of single pictures, tests/generators/kubric_scenes/test_studio.py says it in seconds
def test_one_worker_makes_the_same_bytes(built: Any, recipe: Path, twinset: Any, contents: Any, tmp_path: Path) -> None:
    assert twinset("build", recipe, "--out", tmp_path / "one", "--workers", "1").returncode == 0
    assert contents(tmp_path / "one") == contents(built[0])


@pytest.mark.slow
def test_the_evidence_agrees_with_the_counts(pairs: dict[str, list[Stored[Any]]]) -> None:
    for name in SUBSETS:
        for pair in pairs[name]:
            for number in (0, 1):
                instances: Any = pair.json.provenance[f"instances{number}"]
                assert all(one["pixels"] > 0 and 0 < one["visible"] <= 1 for one in instances)
            expected = pair.json.provenance["count0"], pair.json.provenance["count1"]
            shown = [len(pair.json.provenance[f"instances{number}"]) for number in (0, 1)]  # type: ignore[arg-type]
            assert (tuple(shown) == expected) == (name == "eq-kubric-counting")


@pytest.mark.slow
def test_captions_say_what_the_provenance_says(pairs: dict[str, list[Stored[Any]]]) -> None:
    for pair in (pair for name in SUBSETS for pair in pairs[name]):
        for number, caption in enumerate(pair.texts.values()):
            subject = str(pair.json.provenance["subject"])
            assert subject in caption and caption.endswith(".")
            assert pair.json.provenance[f"object{number}"] in caption or pair.json.change == "counting"
            if pair.json.change == "counting":
                assert str(pair.json.provenance[f"count{number}"]) in caption.split()
        assert pair.texts["caption0"] != pair.texts["caption1"]


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


@pytest.mark.slow
def test_hugging_face_reads_the_evidence(built: Any, pairs: dict[str, list[Stored[Any]]], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for name in SUBSETS:
        loaded = datasets.load_dataset(str(built[0] / name), split="test", cache_dir=str(tmp_path))
        assert len(loaded) == len(pairs[name])
        for row, pair in zip(loaded, pairs[name], strict=True):
            assert [one["box"] for one in row["json"]["provenance"]["instances1"]] == [
                one["box"]
                for one in pair.json.provenance["instances1"]  # type: ignore[union-attr, call-overload, index]
            ]


@pytest.mark.parametrize(
    ("assets", "code", "said"),
    [
        ("/nowhere/GSO.json", 2, "there is no file"),
        ("memory://nowhere/GSO.json", 2, "name a manifest that can be read"),
        ("http://127.0.0.1:9/GSO.json", 1, "is the store reachable"),
    ],
)
def test_a_manifest_that_cannot_be_read(
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    assets: str,
    code: int,
    said: str,
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    source = f"subsets.{SUBSETS[0]}.source"
    settings = ("--set", f"{source}.assets={assets}", "--set", f"{source}.licence=CC-BY-4.0")
    answer = main(["build", str(recipe), "--out", str(tmp_path / "out"), "--only", SUBSETS[0], *settings])
    told = capsys.readouterr().err
    assert answer == code and assets in told and said in told, told
    assert "Traceback" not in told
