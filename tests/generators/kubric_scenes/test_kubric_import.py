"""Kubric without TensorFlow: the stand-in opens what fsspec opens, and is gone when Kubric has been imported."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from generators.kubric_scenes import kubric_import
from generators.kubric_scenes.kubric_import import load_kubric, load_renderer, load_simulator
from manifests.errors import WrongUse


def test_nobody_sees_the_stand_in_afterwards() -> None:
    load_kubric(), load_simulator(), load_renderer()
    assert "tensorflow" not in sys.modules
    assert importlib.util.find_spec("tensorflow") is None


def test_kubric_reads_and_writes_files(tmp_path: Path) -> None:
    kb = load_kubric()
    kb.write_json({"a": [1, 2]}, tmp_path / "new" / "a.json")
    assert kb.file_io.read_json(tmp_path / "new" / "a.json") == {"a": [1, 2]}
    gfile = sys.modules["kubric.file_io"].tf.io.gfile
    gfile.copy(tmp_path / "new" / "a.json", "memory://kubric/a.json")
    assert gfile.exists("memory://kubric/a.json") and not gfile.exists(tmp_path / "b.json")
    with pytest.raises(FileExistsError):
        gfile.copy("memory://kubric/a.json", tmp_path / "new" / "a.json")
    gfile.copy("memory://kubric/a.json", tmp_path / "new" / "a.json", overwrite=True)


def test_assets_alone_load_neither_blender_nor_pybullet() -> None:
    script = (
        "import sys; from generators.kubric_scenes.kubric_import import load_kubric; load_kubric();"
        " print(sorted({'bpy', 'pybullet', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_importing_the_simulator_leaves_no_folder_behind(tmp_path: Path) -> None:
    script = "from generators.kubric_scenes.kubric_import import load_simulator; load_simulator()"
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(kubric_import.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", script], env=environment, timeout=60, check=True)
    assert list(tmp_path.iterdir()) == []


def test_what_to_do_without_kubric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubric.absent", None)
    with pytest.raises(WrongUse, match=r"pip install -e '\.\[render\]'"):
        kubric_import._load("kubric.absent")
