"""Importing Kubric without TensorFlow, and teaching its Blender view what Blender 4 renamed."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import io
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

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
    from generators.kubric_scenes.studio.blender_bridge import bridge  # which needs this module

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
    """An empty module ``tensorflow`` while Kubric is imported.

    Kubric imports TensorFlow, 600 MB, for ``tf.io.gfile`` alone, in functions that are never called here: assets come
    from `AssetShelf`. The stand-in is taken out of ``sys.modules`` again, or transformers and datasets would believe
    that TensorFlow is installed.
    """
    if "tensorflow" in sys.modules:
        yield
        return
    sys.modules["tensorflow"] = ModuleType("tensorflow")
    try:
        yield
    finally:
        del sys.modules["tensorflow"]
