"""Unpacking an asset's archive and reading what it holds: nobody vouches for the bucket or mirror that it comes from.

Blender and PyBullet show and simulate whatever they get.
"""

import gzip
import io
import tarfile
import zlib
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.media.media_folder import EscapesRoot, inside

MAX_FILES = 100
MAX_BYTES = 1 << 28  # the largest asset of Google Scanned Objects has 60 MB
TEXTURES = ("PNG", "JPEG")
MAX_PIXELS = 1 << 26  # those of Google Scanned Objects have 4096 x 4096, 1 << 24
DEEPEST = 100  # elements of a URDF within each other: PyBullet's parser calls itself for each
MAPS = (b"bump", b"disp", b"decal", b"refl", b"norm")  # what names a texture, besides ``map_…``
CLASHES = (FileExistsError, NotADirectoryError, IsADirectoryError)  # of a file and a folder of one name

Mesh = tuple[NDArray[np.float32], NDArray[np.int32]]


def unpack(archive: Path, asset: str, folder: Path) -> None:
    """Unpack ASSET.tar.gz, flat or with everything in a folder ASSET, into a new folder.

    Raises:
        ValueError: the archive is damaged, holds anything but files and folders, would write or refers outside its
            folder, is larger than 256 MiB or 100 files, or a file in it names one that is absent or broken.
    """
    try:
        with gzip.open(archive) as stream:
            content = stream.read(MAX_BYTES + 1)  # up to its end, where gzip compares its checksum
        if len(content) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB are in it")
        # `tarfile.extractall(filter="data")` is not in Python 3.11.2, and lets links within the folder through.
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            members = list(islice(tar, MAX_FILES + 1))
            if len(members) > MAX_FILES or sum(member.size for member in members) > MAX_BYTES:
                raise ValueError(f"it holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
            files = {_target(member, asset, folder): member for member in members if not member.isdir()}
            for path, member in files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                file = tar.extractfile(member)
                assert file is not None  # it is a file
                path.write_bytes(file.read())
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, UnicodeError, *CLASHES) as error:
        raise ValueError(f"it is damaged ({error})") from error
    for path in files:
        _check_references(path, folder)


def _check_references(path: Path, folder: Path) -> None:
    """Raise ValueError where a file refers outside its folder, or to a mesh, materials or a texture that is not whole.

    Blender renders without them: white, or a glaring pink.
    """
    for reference in references(path):
        name = reference.split()[-1] if path.suffix.lower() == ".mtl" else reference
        try:
            # Readers disagree on what a name with spaces is.
            for part in (reference, *reference.split()):
                inside(folder, part)
        except EscapesRoot as error:
            raise ValueError(f"{path.name} refers to {reference!r}") from error
        file = path.parent / name
        if not file.is_file():
            raise ValueError(f"{path.name} refers to {file.name}, which is absent")
        if path.suffix.lower() == ".mtl":
            _check_texture(file)
        elif file.suffix.lower() == ".obj":
            read_mesh(file)


def _check_texture(file: Path) -> None:
    try:
        open_image(file.read_bytes(), TEXTURES, MAX_PIXELS)
    except UnreadableImage as error:
        why = f"has more than {MAX_PIXELS:,} pixels" if error.pixels else f"cannot be read ({error})"
        raise ValueError(f"{file.name} {why}") from error


def _target(member: tarfile.TarInfo, asset: str, folder: Path) -> Path:
    """Where a member is written to."""
    if not member.isreg():
        raise ValueError(f"{member.name!r} is a link or a device")
    name = member.name.removeprefix("./").removeprefix(f"{asset}/")
    try:
        inside(Path(), name)
    except EscapesRoot as error:
        raise ValueError(f"{member.name!r} would be written outside its folder") from error
    return folder / name


def references(path: Path) -> list[str]:
    """The files that a file of an asset names.

    Returns:
        Of a mesh its materials, of a material its textures with what is said of them before the name, of a URDF its
        meshes; none of any other file.

    Raises:
        ValueError: it is not UTF-8, or a damaged URDF.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".urdf":
            return _meshes(path)
        if kind not in (".obj", ".mtl"):
            return []
        # Blender joins a line that ends with a backslash with the next one.
        lines = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\\\n", b" ").splitlines()
        words = [line.split(None, 1) for line in lines]
        return [line[1].decode().strip() for line in words if len(line) > 1 and _names_file(kind, line[0])]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} refers to {error.object[:100]!r}, which is not UTF-8") from error


def _names_file(kind: str, keyword: bytes) -> bool:
    if kind == ".obj":
        return keyword == b"mtllib"
    return keyword.lower().startswith(b"map_") or keyword.lower() in MAPS


def _meshes(path: Path) -> list[str]:
    """Every attribute ``filename`` of a URDF. A document type may define entities, and is refused."""
    text = path.read_bytes().decode()  # PyBullet goes by no other encoding that the file declares
    if "<!DOCTYPE" in text:
        raise ValueError(f"{path.name} declares a document type, which may define entities")
    named, depth = [], 0
    try:
        for event, element in ElementTree.iterparse(io.StringIO(text), ("start", "end")):
            depth += 1 if event == "start" else -1
            if depth > DEEPEST:
                raise ValueError(f"{path.name} has more than {DEEPEST} elements within each other")
            if event == "start" and "filename" in element.attrib:
                named.append(element.attrib["filename"])
    except ElementTree.ParseError as error:
        raise ValueError(f"{path.name} is not XML ({error})") from error
    return named


def read_mesh(path: Path) -> Mesh:
    """Vertices (n, 3) float32 and triangles (m, 3) int32 of an OBJ file.

    Raises:
        ValueError: it holds no triangles, a number that is none, or all in one point. PyBullet would collide with
            whatever lay in its memory before.
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
