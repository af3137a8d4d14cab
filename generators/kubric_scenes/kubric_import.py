"""Importing Kubric without TensorFlow, and teaching its Blender view what Blender 4 renamed."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import io
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import fsspec

from manifests.errors import WrongUse

_lock = threading.Lock()
REMEDY = "install the renderer in a Python 3.11 environment: pip install -e '.[render]'"


def load_kubric() -> Any:
    """Kubric's assets, cameras, lights and scenes: the module ``kubric``. Neither Blender nor PyBullet is loaded.

    Raises WrongUse, with the remedy, when it is not installed.
    """
    return _load("kubric")


def load_simulator() -> Any:
    """Kubric's PyBullet view: the module ``kubric.simulator.pybullet``."""
    module = _load("kubric.simulator.pybullet")
    with contextlib.suppress(OSError):
        # The default of its scratch_dir is a folder that importing it makes, and nobody removes.
        os.rmdir(module.PyBullet.__init__.__defaults__[0])
    return module


def load_renderer() -> Any:
    """Kubric's Blender view, which works with Blender 4.2: the module ``kubric.renderer.blender``.

    Blender holds one scene a process, and importing it takes about a second.
    """
    from generators.kubric_scenes.blender_bridge import bridge  # which needs this module

    first = "bpy" not in sys.modules
    module = _load("kubric.renderer.blender")
    if first:
        atexit.register(_end_quietly)  # after Blender has registered its own, and so before that
    bridge(module)
    return module


def _end_quietly() -> None:
    # Blender counts its unfreed memory when the process ends, as an error on stdout, and there always is some.
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextlib.contextmanager
def quiet(*descriptors: int) -> Iterator[None]:
    """Send the process's standard output (1) or error (2) nowhere meanwhile.

    Blender reports every import and every render on the first, every texture on the second, from C++.
    """
    sys.stdout.flush()
    kept = {descriptor: os.dup(descriptor) for descriptor in descriptors}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in kept:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C has printed waits in its own buffer
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)


def _load(name: str) -> Any:
    try:
        with _lock, _tensorflow_stand_in(), contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except (ImportError, SystemExit) as error:  # Kubric exits where Blender cannot be imported
        raise WrongUse(f"Kubric cannot be imported ({error}); {REMEDY}") from error


@contextlib.contextmanager
def _tensorflow_stand_in() -> Iterator[None]:
    """A module ``tensorflow`` for as long as Kubric is imported.

    Kubric imports TensorFlow for ``tf.io.gfile`` alone, which opens and copies files on any storage: fsspec does the
    same without 600 MB. The stand-in is taken out of ``sys.modules`` again, or transformers and datasets would
    believe that TensorFlow is installed.
    """
    if "tensorflow" in sys.modules:
        yield
        return
    sys.modules["tensorflow"] = tensorflow = ModuleType("tensorflow")
    tensorflow.io = ModuleType("tensorflow.io")  # type: ignore[attr-defined]
    tensorflow.io.gfile = gfile = ModuleType("tensorflow.io.gfile")
    gfile.GFile, gfile.copy, gfile.exists = _open, _copy, _exists  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del sys.modules["tensorflow"]


def _open(name: Any, mode: str = "r") -> Any:
    return fsspec.open(str(name), mode).open()


def _copy(source: Any, target: Any, overwrite: bool = False) -> None:
    if not overwrite and _exists(target):
        raise FileExistsError(f"{target} exists already; remove it first")
    with _open(source, "rb") as reading, _open(target, "wb") as writing:
        shutil.copyfileobj(reading, writing)


def _exists(name: Any) -> bool:
    files, path = fsspec.core.url_to_fs(str(name))
    return bool(files.exists(path))
