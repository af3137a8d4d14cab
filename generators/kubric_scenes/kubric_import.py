"""Importing Kubric without TensorFlow, and telling its Blender view about Blender 4: it was written for 2.93 to 3."""

import atexit
import contextlib
import ctypes
import importlib
import io
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from twinset.contracts.errors import WrongUse

_lock = threading.Lock()
FILE = "obj_file"  # property of a mesh in Blender: where it was read from
REMEDY = "install the renderer in a Python 3.11 environment: pip install 'twinset[render]'"


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
    first = "bpy" not in sys.modules
    with quiet(2) if first else contextlib.nullcontext():  # Blender complains where there is no /etc/mtab
        module = _load("kubric.renderer.blender")
    if first:
        atexit.register(_end_quietly)  # after Blender has registered its own, and so before that
    _bridge(module)
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
    """Import a module of Kubric's with an empty module ``tensorflow``.

    Kubric imports TensorFlow, 600 MB, for ``tf.io.gfile`` alone, in functions that are never called here: assets come
    from `AssetShelf`. The stand-in is taken out of ``sys.modules`` again, or transformers and datasets would believe
    that TensorFlow is installed.
    """
    stand_in = ModuleType("tensorflow")
    with _lock, contextlib.redirect_stdout(io.StringIO()):
        imported = sys.modules.setdefault("tensorflow", stand_in)
        try:
            module = importlib.import_module(name)
            _count_in_this_process(importlib.import_module("kubric.utils").next_global_count)
            return module
        except (ImportError, SystemExit) as error:  # Kubric exits where Blender cannot be imported
            raise WrongUse(f"Kubric cannot be imported ({error}); {REMEDY}") from error
        finally:
            if imported is stand_in:
                del sys.modules["tensorflow"]


def _count_in_this_process(count: Any) -> None:
    """Give Kubric's counter of names a lock of this process's threads, before it makes one of all processes.

    Each process counts on its own, and that one is a named semaphore: a child that is ended before it has given it back
    leaves a warning of a leak as the build's last words.
    """
    if not hasattr(count, "counter"):
        count.counter, count.lock = defaultdict(int), threading.Lock()


def _bridge(module: Any) -> None:
    """Register what differs with the dispatcher of ``kubric.renderer.blender``. Doing it again changes nothing."""

    def add_file_based_object(view: Any, asset: Any) -> Any:
        """``import_scene.obj`` and ``Mesh.use_auto_smooth`` are gone."""
        added = _import_obj(asset.render_filename)
        module.register_object3d_setters(asset, added)
        to_blender = view._convert_to_blender_object
        asset.observe(module.AttributeSetter(added, "active_material", converter=to_blender), "material")
        asset.observe(module.AttributeSetter(added, "scale"), "scale")
        return added

    prepared = module.blender_utils.prepare_blender_object(add_file_based_object)
    vars(module.Blender)["add_asset"].register(module.core.FileBasedObject, prepared)


def _import_obj(path: str) -> Any:
    """A new object with the mesh and materials of an OBJ file, in the file's own axes; the mesh is read once."""
    import bpy

    for mesh in bpy.data.meshes:
        if mesh.get(FILE) == path:
            return bpy.data.objects.new(mesh.name, mesh)
    # Google Scanned Objects have Z up; the importer turns what it believes to be Y up unless it is told.
    try:
        with quiet(1, 2):
            bpy.ops.wm.obj_import(filepath=path, forward_axis="Y", up_axis="Z", use_split_objects=False)
        (imported,) = bpy.context.selected_objects
    except (RuntimeError, ValueError) as error:
        raise WrongUse(f"{path}: Blender finds no mesh in it") from error
    imported.data[FILE] = path
    return imported
