"""Assets by id, from a manifest in the layout of Google Scanned Objects, and what their archives hold.

Nobody vouches for the bucket or mirror that archives come from; Blender and PyBullet show and simulate whatever they
get, and Kubric's own AssetSource trusts it.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import zlib
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import MediaFile
from twinset.generators.kubric_scenes.kubric_import import load_kubric
from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.media.media_folder import EscapesRoot, inside
from twinset.shards.storage.store import Store

MAX_FILES = 100
NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)  # of a file that an archive holds
MAX_BYTES = 1 << 28  # the largest asset of Google Scanned Objects has 60 MB
TEXTURES = ("PNG", "JPEG")
MAX_PIXELS = 1 << 26  # those of Google Scanned Objects have 4096 x 4096, 1 << 24
#: What names another file, by the kind of file that it stands in.
REFERENCES = {
    ".obj": re.compile(rb"(?im)^[ \t\v\f]*mtllib[ \t\v\f]+(\S.*)$"),
    ".mtl": re.compile(rb"(?im)^[ \t\v\f]*(?:map_\S*|bump|disp|decal|refl|norm)[ \t\v\f]+(\S.*)$"),
    ".urdf": re.compile(rb"filename\s*=\s*(\"[^\"]*\"|'[^']*')"),
}
#: Not in a text of meshes or materials: Blender takes some for white space.
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
#: What tarfile and zlib raise, the last three at headers that they do not expect.
DAMAGED = (tarfile.TarError, EOFError, zlib.error, UnicodeError, RecursionError, IndexError, OverflowError)
KINDS = {"render_filename": ".obj", "simulation_filename": ".urdf"}  # the only ones whose references are checked
REMEDY = (
    "name a manifest that can be read: in a local mirror of Kubric's bucket, or s3://…, https://…, gs://… (which needs"
    " gcsfs); archives are looked for beside it"
)

Mesh = tuple[NDArray[np.float32], NDArray[np.int32]]


class UnusableAsset(WrongUse):
    """An asset's archive is absent (size None) or holds nothing that can be shown. recorded: its name as a source."""

    def __init__(self, message: str, recorded: str, size: int | None) -> None:
        super().__init__(message)
        self.recorded = recorded
        self.size = size


class AssetShelf:
    """The assets that a manifest lists; each archive is fetched, checked and unpacked when it is first asked for.

    manifest: path or URL of ``{"assets": {ID: …}}``, as Kubric publishes it. Archives lie in its folder, wherever its
    `data_dir` says that they were published: a manifest leads to no other host and no other folder.
    What is unpacked lies in a temporary folder that goes with this object.

    listing: the manifest's file. entries: by asset id.

    Raises WrongUse, naming the file and the remedy, when the manifest is absent or damaged, `UnusableAsset` when an
    archive is; OSError when a store cannot be reached for now.
    """

    def __init__(self, manifest: Path | str) -> None:
        self.manifest = str(manifest)
        folder, _, name = self.manifest.rpartition("/")
        self._data = folder or "."
        try:
            text = Store(self._data).read(name)
        except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
            raise _unreadable(self.manifest, error) from error
        self.listing = MediaFile(name, len(text), hashlib.sha256(text).hexdigest())
        try:
            self.entries: dict[str, dict[str, Any]] = dict(json.loads(text)["assets"].items())
            for asset, entry in self.entries.items():
                if "/" in asset or asset == "." or not isinstance(entry.get("kwargs", {}), dict):
                    raise ValueError(f"entry {asset!r}")
                for file in (asset, self._archive(asset)):
                    file.encode()
                    inside(Path(), file)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EscapesRoot) as error:
            raise WrongUse(f"{self.manifest} is no manifest of Kubric's ({error}); {REMEDY}") from error
        self._sources: dict[str, MediaFile] = {}
        self._scratch = TemporaryDirectory(prefix="assets-")
        self._folders: dict[str, Path] = {}
        self._meshes: dict[str, Mesh] = {}

    def create(self, asset: str, **kwargs: Any) -> Any:
        """A new ``kubric.FileBasedObject``. kwargs: its traits (position, quaternion, scale, static …)."""
        from traitlets import TraitError  # which comes with Kubric

        files = {key: str(self._file(asset, key)) for key in KINDS}
        try:
            traits = {**self._entry(asset)["kwargs"], **files, **kwargs}
            return load_kubric().FileBasedObject(asset_id=asset, **traits)
        except (KeyError, TypeError, ValueError, TraitError) as error:
            raise WrongUse(f"{self.manifest}: assets.{asset} is no asset of Kubric's ({error}); correct it") from error

    def mesh(self, asset: str) -> Mesh:
        """Vertices (n, 3) float32 in the asset's units and triangles (m, 3) int32 of what is rendered."""
        if asset not in self._meshes:
            path = self._file(asset, "render_filename")
            try:
                self._meshes[asset] = read_mesh(path)
            except ValueError as error:
                raise self.unusable(asset, str(error)) from error
        return self._meshes[asset]

    def source(self, asset: str) -> MediaFile:
        """The asset's archive, for provenance."""
        self._folder(asset)
        return self._sources[asset]

    def unusable(self, asset: str, why: str) -> UnusableAsset:
        """What to raise for an asset whose archive was fetched and holds what cannot be used."""
        source = self._sources[asset]
        return UnusableAsset(
            f"{self._data}/{self._archive(asset)}: {why}; fetch it again, or leave {asset!r} out of {self.manifest}",
            source.path,
            source.size,
        )

    def _entry(self, asset: str) -> dict[str, Any]:
        if asset not in self.entries:
            raise WrongUse(f"{self.manifest} lists no asset {asset!r}; name one that it lists")
        return self.entries[asset]

    def _file(self, asset: str, key: str) -> Path:
        """A file that the manifest names as ``{asset_dir}/…``, from the unpacked archive."""
        name = str(self._entry(asset).get("kwargs", {}).get(key, "")).removeprefix("{asset_dir}/")
        if not NAME.fullmatch(name) or Path(name).suffix.lower() != KINDS[key]:
            raise WrongUse(
                f"{self.manifest}: assets.{asset}.kwargs.{key} is no {KINDS[key]} file of its archive; correct it"
            )
        path = self._folder(asset) / name
        if not path.is_file():
            raise self.unusable(asset, f"it holds no {name}")
        return path

    def _archive(self, asset: str) -> str:
        return str(self._entry(asset).get("path") or f"{asset}.tar.gz")

    def _folder(self, asset: str) -> Path:
        """Where the asset's archive lies unpacked."""
        if asset not in self._folders:
            folder = Path(self._scratch.name, str([*self.entries].index(asset)))
            archive = Path(self._scratch.name, "archive.tar.gz")
            shutil.rmtree(folder, ignore_errors=True)
            self._sources[asset] = self._fetch(self._archive(asset), archive)
            try:
                unpack(archive, folder)
            except ValueError as error:
                raise self.unusable(asset, str(error)) from error
            self._folders[asset] = folder
        return self._folders[asset]

    def _fetch(self, name: str, target: Path) -> MediaFile:
        recorded = f"{self._data}/{name}" if "://" in self._data else name
        try:
            with Store(self._data).open(name) as reading, target.open("wb") as writing:
                shutil.copyfileobj(reading, writing)
        except (WrongUse, FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            refusal = _unreadable(f"{self._data}/{name} ({self.manifest})", error)
            raise refusal if isinstance(error, WrongUse) else UnusableAsset(str(refusal), recorded, None) from error
        sha256, size = sha256_of_file(target)
        return MediaFile(recorded, size, sha256)


def _unreadable(what: str, error: Exception) -> WrongUse:
    """What to raise for a manifest or an archive that is not there."""
    why = str(error.__cause__ or (error.strerror if isinstance(error, OSError) else error))
    return WrongUse(f"{what} cannot be read: {why}; {REMEDY}")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the archive of an asset, which is flat, into a new folder.

    Raises:
        ValueError: the archive is damaged, holds anything but files of plain names, is larger than 256 MiB or 100
            files, or a file in it names one that is absent, broken or elsewhere.
    """
    try:
        with gzip.open(archive) as stream:
            content = stream.read(MAX_BYTES + 1)  # up to its end, where gzip compares its checksum
        if len(content) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB are in it")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            members = list(islice(tar, MAX_FILES + 1))
            if len(members) > MAX_FILES or sum(member.size for member in members) > MAX_BYTES:
                raise ValueError(f"it holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
            folder.mkdir()
            for member in members:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None or not NAME.fullmatch(member.name):
                    raise ValueError(f"{member.name[:100]!r} is no file with a plain name")
                (folder / member.name).write_bytes(file.read())
    except (*DAMAGED, gzip.BadGzipFile) as error:
        raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
    for path in sorted(folder.iterdir()):
        _check_references(path)


def _check_references(path: Path) -> None:
    """Raise ValueError where a file refers to a mesh, materials or a texture that is not whole, or is not beside it.

    Blender renders without them: white, or a glaring pink.
    """
    kind = path.suffix.lower()
    for name in references(path):
        file = path.with_name(name) if NAME.fullmatch(name) else None
        if file is None or not file.is_file():
            raise ValueError(f"{path.name} refers to {name[:100]!r}, which is not in the archive")
        if kind == ".urdf":
            read_mesh(file)
        elif kind == ".mtl":
            _check_texture(file)
        elif file.suffix.lower() != ".mtl":  # whose own references would go unseen
            raise ValueError(f"{path.name} refers to materials {name}, which is no .mtl file")


def _check_texture(file: Path) -> None:
    try:
        open_image(file.read_bytes(), TEXTURES, MAX_PIXELS)
    except UnreadableImage as error:
        why = f"has more than {MAX_PIXELS:,} pixels" if error.size else f"cannot be read ({error})"
        raise ValueError(f"{file.name} {why}") from error


def references(path: Path) -> list[str]:
    """What stands where a mesh names its materials, a material its textures, a URDF its meshes; else nothing.

    Raises:
        ValueError: the file can name others in a way that is not seen here.
    """
    kind = path.suffix.lower()
    if kind not in REFERENCES:
        return []
    # Blender joins a line that ends with a backslash with the next one.
    content = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\\\n", b" ").replace(b"\r", b"\n")
    named = REFERENCES[kind].findall(content)
    if kind == ".urdf":
        if b"&" in content or b"<!DOCTYPE" in content or len(named) != content.count(b"filename"):
            raise ValueError(f"{path.name} names files in a way that is not understood")
        named = [name[1:-1] for name in named]
    elif CONTROL.search(content):
        raise ValueError(f"{path.name} holds control characters")
    return [name.decode(errors="replace").strip() for name in named]


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
