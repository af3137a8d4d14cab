"""Kubric without TensorFlow: the stand-in is gone when Kubric has been imported."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.studio import kubric_import
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric, load_renderer, load_simulator


def test_nobody_sees_the_stand_in_afterwards() -> None:
    load_kubric(), load_simulator(), load_renderer()
    assert "tensorflow" not in sys.modules
    assert importlib.util.find_spec("tensorflow") is None


def test_assets_alone_load_neither_blender_nor_pybullet() -> None:
    script = (
        "import sys; from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric; load_kubric();"
        " print(sorted({'bpy', 'pybullet', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_importing_the_simulator_leaves_no_folder_behind(tmp_path: Path) -> None:
    script = "from twinset.generators.kubric_scenes.studio.kubric_import import load_simulator; load_simulator()"
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(kubric_import.__file__).parents[4])}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def test_naming_an_asset_makes_no_named_semaphore() -> None:
    # 'spawn' as in a build's children: locks of forked processes have no name
    script = (
        "import multiprocessing, multiprocessing.resource_tracker as tracker;"
        " multiprocessing.set_start_method('spawn'); made = []; tracker.register = lambda *what: made.append(what);"
        " from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric; kubric = load_kubric();"
        " names = kubric.Sphere(name='a').uid, kubric.Sphere(name='a').uid;"
        " print(names, made)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "('a', 'a.001') []\n"


def test_what_to_do_without_kubric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubric.absent", None)
    with pytest.raises(WrongUse, match=r"pip install 'twinset\[render\]'"):
        kubric_import._load("kubric.absent")
