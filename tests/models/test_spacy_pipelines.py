"""Pipelines of spaCy: found by name or path, never downloaded, and told apart by what is in their files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.models.spacy_pipelines import ALL_EMBEDDED, EMBEDDED, find_pipeline

ROOT = Path(__file__).resolve().parents[2]


def test_the_embedded_pipelines_are_whole() -> None:
    digests = {
        "en_captions_sm": "11438870ad97720919b81a12e6ddf66c",
        "en_ewt_sm": "209a4735bf250717cb5329781b20b22e",
    }
    assert {name: find_pipeline(name).digest for name in ALL_EMBEDDED} == digests  # relations change with them
    assert find_pipeline() == find_pipeline(EMBEDDED)
    assert not any(find_pipeline(name).torch for name in ALL_EMBEDDED)
    credits = (ROOT / "generators/scene_graphs/CREDITS.md").read_text()
    assert "CC BY-SA 4.0" in credits and "English\nEWT" in credits
    assert all(f"## {name}" in credits for name in ALL_EMBEDDED)


def test_a_pipeline_by_path_is_told_by_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(find_pipeline().source, folder)
    copy = find_pipeline(str(folder))
    assert (copy.digest, copy.source) == (find_pipeline().digest, str(folder))
    (folder / "vocab/key2row").write_bytes(b"\x81")
    config = (folder / "config.cfg").read_text()
    (folder / "config.cfg").write_text(config.replace("spacy.MaxoutWindowEncoder.v2", "spacy.TorchBiLSTMEncoder.v1"))
    assert find_pipeline(str(folder)).digest != copy.digest and find_pipeline(str(folder)).torch


def test_a_pipeline_by_the_name_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "en_tiny_xy"
    shutil.copytree(find_pipeline().source, package / "en_tiny_xy-0.1.0")
    shutil.copy(package / "en_tiny_xy-0.1.0/meta.json", package)
    (package / "__init__.py").write_text(
        "from spacy.util import load_model_from_init_py\n\n\n"
        "def load(**overrides):\n    return load_model_from_init_py(__file__, **overrides)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = find_pipeline("en_tiny_xy")
    assert (found.source, found.torch) == ("en_tiny_xy", False)


def test_what_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="json: a package without a spaCy pipeline"):
        find_pipeline("json")
    for name in ("en_core_web_zz", "../gone", "json.decoder", "sys", "__main__"):
        with pytest.raises(
            WrongUse, match=f"{name}: neither an installed package nor a folder; .*nothing is downloaded"
        ):
            find_pipeline(name)
    with pytest.raises(WrongUse, match=r"not a spaCy pipeline, which has a config\.cfg"):
        find_pipeline(str(tmp_path))


def test_workers_do_without_torch() -> None:
    code = (
        "import sys; from twinset.models.spacy_pipelines import find_pipeline; "
        "from twinset.generators.scene_graphs.relations import SceneGraphParser; "
        "(found,) = SceneGraphParser(find_pipeline()).relations(['a dog on a sofa']); "
        "assert found[0].object == 'sofa' and 'torch' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert EMBEDDED in find_pipeline().source
