"""Reading the meshes of assets, which nobody vouches for: Blender and PyBullet show and simulate whatever they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from generators.kubric_scenes.assets.archives import REFERENCES

TEXTURES = ("PNG", "JPEG")
MAX_PIXELS = 1 << 26  # those of Google Scanned Objects have 4096 x 4096, 1 << 24

Mesh = tuple[NDArray[np.float32], NDArray[np.int32]]


def read_mesh(path: Path) -> Mesh:
    """Vertices (n, 3) float32 and triangles (m, 3) int32 of an OBJ file.

    Raises ValueError when it holds no triangles, a number that is none, or all in one point. PyBullet would collide
    with whatever lay in its memory before.
    """
    import trimesh

    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False, skip_materials=True)
        with np.errstate(over="ignore"):
            vertices, faces = mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32)
    except Exception as error:  # of a hostile file, trimesh raises whatever it stumbles over
        raise ValueError(f"{path.name} holds no mesh ({error})") from error
    if not len(faces):
        raise ValueError(f"{path.name} holds no mesh (no faces)")
    if not np.isfinite(vertices).all() or not np.ptp(vertices, axis=0).max() > 0:
        raise ValueError(f"{path.name} holds a mesh without size")
    return vertices, faces


def check_materials(path: Path) -> None:
    """Raise ValueError where an OBJ file names materials or a texture that is absent or not whole.

    Blender renders without them: white, or a glaring pink.
    """
    for name in REFERENCES[".obj"].findall(path.read_bytes()):
        materials = _beside(path, name)
        for texture in REFERENCES[".mtl"].findall(materials.read_bytes()):
            file = _beside(materials, texture)
            try:
                with Image.open(file, formats=TEXTURES) as picture:
                    large = picture.width * picture.height > MAX_PIXELS
                    if not large:
                        picture.load()
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
                raise ValueError(f"{file.name} cannot be read ({error})") from error
            if large:
                raise ValueError(f"{file.name} has more than {MAX_PIXELS:,} pixels")


def check_collisions(path: Path) -> None:
    """Raise ValueError where a URDF file names a mesh that is absent, or none."""
    for name in REFERENCES[".urdf"].findall(path.read_bytes()):
        mesh = _beside(path, name)
        if mesh.suffix.lower() == ".obj":
            read_mesh(mesh)


def _beside(path: Path, name: bytes) -> Path:
    """A file that another one names, which lies inside its folder: `archives.unpack` has looked."""
    found = path.parent / name.decode()
    if not found.is_file():
        raise ValueError(f"{path.name} refers to {found.name}, which is absent")
    return found
