"""The installed checkout: scripts find the module twinset, wherever they lie."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


def test_a_script_beside_a_checkout_named_twinset_imports_the_module(tmp_path: Path) -> None:
    checkout = tmp_path / "twinset"
    checkout.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    (checkout / "src/twinset").mkdir(parents=True)
    (checkout / "src/twinset/__init__.py").write_text("load = 'found'\n")
    venv.create(tmp_path / "env")
    python = tmp_path / "env/bin/python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")}))
    (packages / "built_with.pth").write_text(sysconfig.get_path("purelib"))  # setuptools, of the lock's version
    install = [Path(sys.executable).parent / "uv", "pip", "install", "--quiet", "--offline", "--python", python]
    # As the Makefile does.
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "--editable", "."], cwd=checkout, check=True)
    (tmp_path / "script.py").write_text("import twinset; print(twinset.load)")
    done = subprocess.run([python, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "found\n"), done.stderr


IN_A_RESEARCH_REPOSITORY = """
import twinset
from twinset.cli.main import main

built = twinset.build("recipe.yaml", "out")
assert built["subsets"]["mine"]["kept"] == 2, built
assert twinset.verify("out")["subsets"]["mine"]["problems"] == []
twinset.evaluate([("twinset", "out")], ["random:ViT-S-32-alt:0"], "scores")
settings = dict(model="small.json", weights=None, objective="negative-pairs", batch=2, steps=1, warmup=0, threads=1)
assert twinset.train(["out:mine"], "run", workers=0, **settings)["steps"] == 1
assert main(["status", "out"]) == 0
import evaluation
assert evaluation.MINE
"""
SMALL_CLIP = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}


def test_it_works_beside_packages_of_the_names_of_its_rooms(tmp_path: Path) -> None:
    """In a research repository, whose own ``evaluation`` or ``training`` must not meet twinset's."""
    for name in ("evaluation", "training", "filters", "cli", "stages", "generators", "models", "shards"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    for name in ("red", "blue", "green"):
        Image.new("RGB", (48, 40), name).save(tmp_path / f"{name}.png")
    pairs = [
        {
            "id": name,
            "image0": "red.png",
            "image1": f"{name}.png",
            "caption0": "a red wall",
            "caption1": f"a {name} wall",
        }
        for name in ("blue", "green")
    ]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    (tmp_path / "small.json").write_text(json.dumps(SMALL_CLIP))
    (tmp_path / "recipe.yaml").write_text(
        "name: mine\nsubsets:\n  mine:\n"
        "    source: {kind: image-pairs, annotations: pairs.json, media: ., licence: 'other: mine'}\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"TWINSET_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    code = [sys.executable, "-c", IN_A_RESEARCH_REPOSITORY]
    done = subprocess.run(code, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
