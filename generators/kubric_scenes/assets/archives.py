"""Unpacking an asset's archive and reading what it holds: nobody vouches for the bucket or mirror that it comes from.

Blender and PyBullet show and simulate whatever they get.
"""

import gzip
import tarfile
import zlib
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.media.media_folder import EscapesRoot, inside

MAX_FILES = 100
CHUNK = 1 << 20
#: The largest asset of Google Scanned Objects is 60 MB; in memory, text of a mesh is ten times larger.
MAX_BYTES = 1 << 28
TEXTURES = ("PNG", "JPEG")
MAX_PIXELS = 1 << 26  # those of Google Scanned Objects have 4096 x 4096, 1 << 24

DEEPEST = 100  # elements of a URDF within each other: PyBullet's parser calls itself for each

Mesh = tuple[NDArray[np.float32], NDArray[np.int32]]


def unpack(archive: Path, asset: str, folder: Path) -> None:
    """Unpack ASSET.tar.gz, flat or with everything in a folder ASSET, into a new folder.

    Raises ValueError when the archive is damaged, holds anything but files and folders, would write or refers outside
    its folder, or is larger than 256 MiB or 100 files.
    """
    try:
        with _Bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
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
        for reference in references(path):
            try:
                # Readers disagree on what a name with spaces is.
                for part in (reference, *reference.split()):
                    inside(folder, part)
            except EscapesRoot as error:
                raise ValueError(f"{path.name} refers to {reference!r}") from error


def references(path: Path) -> list[str]:
    """The files that a file of an asset names: a mesh its materials, a material its textures with what is said of them
    before the name, a URDF its meshes; none for any other. Raises ValueError: it is not UTF-8, or a damaged URDF.
    """
    kind = path.suffix.lower()
    if kind == ".urdf":
        return _filenames(path)
    if kind not in (".obj", ".mtl"):
        return []
    named = []
    # Blender joins a line that ends with a backslash with the next one.
    for line in path.read_bytes().replace(b"\r\n", b"\n").replace(b"\\\n", b" ").splitlines():
        keyword, *rest = line.split(None, 1)[:2] or [b""]
        if (keyword == b"mtllib") if kind == ".obj" else _is_texture(keyword.lower()):
            named += rest
    try:
        return [one.decode().strip() for one in named]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} refers to {error.object[:100]!r}, which is not UTF-8") from error


def _is_texture(keyword: bytes) -> bool:
    return keyword.startswith(b"map_") or keyword in (b"bump", b"disp", b"decal", b"refl", b"norm")


def _filenames(path: Path) -> list[str]:
    """Every attribute ``filename`` of a URDF, as an XML parser reads it: a name can be written in references to
    characters. No document type, so no entities.
    """
    parser = expat.ParserCreate("utf-8")  # PyBullet goes by no other encoding that the file declares
    named: list[str] = []
    depth = 0

    def start(_name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"{path.name} has more than {DEEPEST} elements within each other")
        named.extend(value for name, value in attributes.items() if name == "filename")

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_declared: object) -> None:
        raise ValueError(f"{path.name} declares a document type, which may define entities")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise ValueError(f"{path.name} is not XML ({error})") from error
    return named


class _Bounded(gzip.GzipFile):
    """A compressed file that may not expand for ever: tarfile reads a header of any length whole."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or self.tell() + size > 3 * MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB are in it")
        return super().read(size)


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
    for name in references(path):
        materials = _beside(path, name)
        for texture in references(materials):
            file = _beside(materials, texture.split()[-1])
            try:
                open_image(file.read_bytes(), TEXTURES, MAX_PIXELS)
            except UnreadableImage as error:
                if error.pixels:
                    raise ValueError(f"{file.name} has more than {MAX_PIXELS:,} pixels") from error
                raise ValueError(f"{file.name} cannot be read ({error})") from error


def check_collisions(path: Path) -> None:
    """Raise ValueError where a URDF file names a mesh that is absent, or none."""
    for name in references(path):
        mesh = _beside(path, name)
        if mesh.suffix.lower() == ".obj":
            read_mesh(mesh)


def _beside(path: Path, name: str) -> Path:
    """A file that another one names, which lies inside its folder: `unpack` has looked."""
    found = path.parent / name
    if not found.is_file():
        raise ValueError(f"{path.name} refers to {found.name}, which is absent")
    return found
