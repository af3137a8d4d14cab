"""Assets by id, from a manifest in the layout of Google Scanned Objects. Kubric's own AssetSource trusts archives."""

import hashlib
import json
import os
import shutil
import tempfile
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import MediaFile
from twinset.generators.kubric_scenes.assets.archives import Mesh, read_mesh, unpack
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric
from twinset.shards.media.media_folder import EscapesRoot, inside
from twinset.shards.storage.store import Store

REMEDY = (
    "name a manifest that can be read: a local mirror of Kubric's bucket (without `data_dir` the archives are looked"
    " for beside it), or s3://…, https://…, gs://… (which needs gcsfs)"
)


class UnusableAsset(WrongUse):
    """An asset's archive is absent (size None) or holds nothing that can be shown. recorded: its name as a source."""

    def __init__(self, message: str, recorded: str, size: int | None) -> None:
        super().__init__(message)
        self.recorded = recorded
        self.size = size


class AssetShelf:
    """The assets that a manifest lists; each archive is fetched, checked and unpacked when it is first asked for.

    manifest: path or URL of ``{"data_dir": …, "assets": {ID: …}}``, as Kubric publishes it. An absent `data_dir` means
    the manifest's own folder, a relative one is taken from there; none but a URL leads out, of http(s) one of the
    manifest's own host. What is unpacked lies in a temporary folder that goes with this object.

    listing: the manifest's file. entries: by asset id. data: folder or URL of the archives; recorded: what their names
    are recorded with, the folder below the manifest's own or the URL.

    Raises WrongUse, naming the file and the remedy, when the manifest is absent or damaged, `UnusableAsset` when an
    archive is; OSError when a store cannot be reached for now.
    """

    def __init__(self, manifest: Path | str) -> None:
        self.manifest = str(manifest)
        folder, _, name = self.manifest.rpartition("/")
        folder = folder or "."
        try:
            text = Store(folder).read(name)
        except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
            raise _unreadable(self.manifest, error) from error
        self.listing = MediaFile(name, len(text), hashlib.sha256(text).hexdigest())
        try:
            content = json.loads(text)
            self.entries: dict[str, dict[str, Any]] = dict(content["assets"].items())
            for asset, entry in self.entries.items():
                if "/" in asset or not isinstance(entry.get("kwargs", {}), dict):
                    raise ValueError(f"entry {asset!r}")
                for file in (asset, str(entry.get("path") or asset)):
                    inside(Path(), file)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EscapesRoot) as error:
            raise WrongUse(f"{self.manifest} is no manifest of Kubric's ({error}); {REMEDY}") from error
        self.data, self.recorded = _archives(self.manifest, folder, str(content.get("data_dir") or "."))
        self._sources: dict[str, MediaFile] = {}
        self._unpacked: dict[str, Path] = {}
        self._meshes: dict[str, Mesh] = {}

    def create(self, asset: str, **kwargs: Any) -> Any:
        """A new ``kubric.FileBasedObject``. kwargs: its traits (position, quaternion, scale, static …)."""
        from traitlets import TraitError  # which comes with Kubric

        files = {key: str(self._file(asset, key)) for key in ("render_filename", "simulation_filename")}
        try:
            traits = {**self._entry(asset)["kwargs"], **files, **kwargs}
            return load_kubric().FileBasedObject(asset_id=asset, **traits)
        except (KeyError, TypeError, TraitError) as error:
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
        """What to raise for an asset whose archive was unpacked and holds what cannot be used."""
        name = self._archive(asset)
        return UnusableAsset(
            f"{self.data}/{name}: {why}; fetch it again, or leave {asset!r} out of {self.manifest}",
            self.recorded + name,
            self._sources[asset].size,
        )

    @cached_property
    def _scratch(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="assets-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _entry(self, asset: str) -> dict[str, Any]:
        if asset not in self.entries:
            raise WrongUse(f"{self.manifest} lists no asset {asset!r}; name one that it lists")
        return self.entries[asset]

    def _file(self, asset: str, key: str) -> Path:
        """A file that the manifest names as ``{asset_dir}/…``, inside the unpacked archive."""
        named = str(self._entry(asset).get("kwargs", {}).get(key, ""))
        folder = self._folder(asset)
        try:
            path = inside(folder, named.removeprefix("{asset_dir}/"))
        except EscapesRoot as error:
            raise WrongUse(f"{self.manifest}: assets.{asset}.kwargs.{key} leaves its archive; correct it") from error
        if not path.is_file():
            raise self.unusable(asset, f"it holds no {path.name}")
        return path

    def _archive(self, asset: str) -> str:
        return str(self._entry(asset).get("path") or f"{asset}.tar.gz")

    def _folder(self, asset: str) -> Path:
        if asset not in self._unpacked:
            folder = inside(self._scratch, asset)
            shutil.rmtree(folder, ignore_errors=True)
            archive = self._scratch / "archive.tar.gz"
            self._sources[asset] = self._fetch(self._archive(asset), archive)
            try:
                unpack(archive, asset, folder)
            except ValueError as error:
                raise self.unusable(asset, str(error)) from error
            finally:
                archive.unlink()
            self._unpacked[asset] = folder
        return self._unpacked[asset]

    def _fetch(self, name: str, target: Path) -> MediaFile:
        inside(Path(), name)
        try:
            with Store(self.data).open(name) as reading, target.open("wb") as writing:
                shutil.copyfileobj(reading, writing)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            why = _unreadable(f"{self.data}/{name} ({self.manifest})", error)
            raise UnusableAsset(str(why), self.recorded + name, None) from error
        except WrongUse as error:
            raise _unreadable(f"{self.data}/{name} ({self.manifest})", error) from error
        sha256, size = sha256_of_file(target)
        return MediaFile(self.recorded + name, size, sha256)


def _archives(location: str, folder: str, data: str) -> tuple[str, str]:
    """Where the archives lie, and what their names are recorded with."""
    if "://" in data:
        if data.startswith("file:"):
            raise WrongUse(f"{location}: data_dir: {data!r} is a folder of this machine; {REMEDY}")
        if data.startswith("http") and urlsplit(data).netloc != urlsplit(location).netloc:
            raise WrongUse(f"{location}: data_dir: {data!r} is on another host; name the manifest by its URL there")
        return data, f"{data.rstrip('/')}/"
    below = data if "://" in folder else os.path.relpath(os.path.join(folder, data), folder)
    try:
        below = inside(Path(), os.path.normpath(below)).as_posix()
    except EscapesRoot as error:
        raise WrongUse(
            f"{location}: data_dir: {data!r} is not below the manifest's folder; lay the manifest beside the archives "
            "and leave data_dir out"
        ) from error
    return (folder, "") if below == "." else (f"{folder}/{below}", f"{below}/")


def _unreadable(what: str, error: Exception) -> WrongUse:
    """What to raise for a manifest or an archive that is not there."""
    why = str(error.__cause__ or (error.strerror if isinstance(error, OSError) else error))
    return WrongUse(f"{what} cannot be read: {why}; {REMEDY}")
