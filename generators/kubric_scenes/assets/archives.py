"""Unpacking an asset's archive and reading what it holds: nobody vouches for the bucket or mirror that it comes from.

Blender and PyBullet show and simulate whatever they get.
"""

import gzip
import re
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.media.media_folder import EscapesRoot, inside

MAX_FILES = 100
CHUNK = 1 << 20
MAX_BYTES = (
    1 << 28
)  # the largest asset of Google Scanned Objects is 60 MB; in memory, text of a mesh is ten times larger
TEXTURES = ("PNG", "JPEG")
MAX_PIXELS = 1 << 26  # those of Google Scanned Objects have 4096 x 4096, 1 << 24

# Where the files of an asset name other files: the texture in a material, the material in a mesh, the mesh in a URDF.
REFERENCES = {
    ".obj": re.compile(rb"^mtllib[ \t]+(.+?)\s*$", re.M),
    ".mtl": re.compile(rb"^[ \t]*(?:map_\w+|bump|disp|decal|refl|norm)[ \t].*?(\S+)\s*$", re.M | re.I),
    ".urdf": re.compile(rb"filename\s*=\s*[\"']([^\"']*)"),
}

Mesh = tuple[NDArray[np.float32], NDArray[np.int32]]


def unpack(archive: Path, asset: str, folder: Path) -> None:
    """Unpack ASSET.tar.gz, flat or with everything in a folder ASSET, into a new folder.

    Raises ValueError when the archive is damaged, holds anything but files and folders, would write or refers outside
    its folder, or is larger than 256 MiB or 100 files.
    """
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            members = _checked(tar, asset)
            # Gzip compares its checksum at its end, behind where a tar ends: a flipped bit goes unnoticed without.
            while stream.read(CHUNK):
                if stream.tell() > 2 * MAX_BYTES:
                    raise ValueError(f"more than {MAX_BYTES >> 20} MiB follow its last file")
            folder.mkdir(parents=True)
            for name, member in members.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None  # it is a file
                path.write_bytes(content.read())
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, UnicodeError) as error:
        raise ValueError(f"it is damaged ({error})") from error
    for path in sorted(folder.rglob("*")):
        pattern = REFERENCES.get(path.suffix.lower())
        for reference in pattern.findall(path.read_bytes()) if pattern is not None else ():
            try:
                inside(folder, reference.decode())
            except (EscapesRoot, UnicodeError) as error:
                raise ValueError(f"{path.name} refers to {reference!r}") from error


def _checked(tar: tarfile.TarFile, asset: str) -> dict[str, tarfile.TarInfo]:
    """The files of an archive, by their paths below the folder.

    Sizes are summed while headers are read, so that a bomb is not inflated first.
    """
    members: dict[str, tarfile.TarInfo] = {}
    size = 0
    for number, member in enumerate(tar):
        size += member.size
        if number >= MAX_FILES or size > MAX_BYTES:
            raise ValueError(f"it holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
        if member.isdir():
            continue
        if not member.isreg():
            raise ValueError(f"{member.name!r} is a link or a device")
        name = member.name.removeprefix("./").removeprefix(f"{asset}/")
        try:
            inside(Path(), name)
        except EscapesRoot as error:
            raise ValueError(f"{member.name!r} would be written outside its folder") from error
        members[name] = member
    return members


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
                open_image(file.read_bytes(), TEXTURES, MAX_PIXELS)
            except UnreadableImage as error:
                if error.pixels:
                    raise ValueError(f"{file.name} has more than {MAX_PIXELS:,} pixels") from error
                raise ValueError(f"{file.name} cannot be read ({error})") from error


def check_collisions(path: Path) -> None:
    """Raise ValueError where a URDF file names a mesh that is absent, or none."""
    for name in REFERENCES[".urdf"].findall(path.read_bytes()):
        mesh = _beside(path, name)
        if mesh.suffix.lower() == ".obj":
            read_mesh(mesh)


def _beside(path: Path, name: bytes) -> Path:
    """A file that another one names, which lies inside its folder: `unpack` has looked."""
    found = path.parent / name.decode()
    if not found.is_file():
        raise ValueError(f"{path.name} refers to {found.name}, which is absent")
    return found
