"""Assets by id, from a manifest in the layout of Google Scanned Objects, through Kubric's own AssetSource."""

from __future__ import annotations

import copy
import shutil
import tempfile
import weakref
from collections import OrderedDict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from generators.kubric_scenes.assets.archives import Mesh, check_collisions, check_materials, read_mesh, unpack
from generators.kubric_scenes.assets.manifest import UnusableAsset, read_manifest, unreadable
from generators.kubric_scenes.studio.kubric_import import load_kubric
from manifests.canonical import sha256_of_file
from manifests.errors import WrongUse
from shards.kinds.samples import Source
from shards.media.media_folder import EscapesRoot, inside
from shards.storage.store import Store

KEPT = 64  # unpacked assets (10-60 MB each) and meshes that are kept, the last used


class AssetShelf:
    """The assets that a manifest lists; each archive is fetched, checked and unpacked when it is first asked for.

    manifest: path or URL, as `generators.kubric_scenes.assets.manifest.read_manifest` takes it. scratch: where assets
    are unpacked, in a folder of this object's own that goes when it goes.

    Raises WrongUse, naming the file and the remedy, when the manifest is absent or damaged, `UnusableAsset` when an
    archive is; OSError when a store cannot be reached for now.
    """

    def __init__(self, manifest: Path | str, scratch: Path) -> None:
        self.manifest = str(manifest)
        self._listed = read_manifest(self.manifest)
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="assets-", dir=scratch))
        self._sources: dict[str, Source] = {}
        self._unpacked: OrderedDict[str, Path] = OrderedDict()
        self._kept_mesh = lru_cache(KEPT)(self._mesh)
        self.close = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    def ids(self) -> tuple[str, ...]:
        """All ids, sorted."""
        return tuple(sorted(self._listed.entries))

    def create(self, asset: str, **kwargs: Any) -> Any:
        """A new ``kubric.FileBasedObject``. kwargs: its traits (position, quaternion, scale, static …)."""
        from traitlets import TraitError  # which comes with Kubric

        # AssetSource writes what it is given back into the entry, where the next object would find it.
        self._kubric._assets[asset] = copy.deepcopy(self._entry(asset))
        for key in ("render_filename", "simulation_filename"):
            self._file(asset, key)
        try:
            return self._kubric.create(asset, **kwargs)
        except (KeyError, TypeError, TraitError) as error:
            raise WrongUse(f"{self.manifest}: assets.{asset} is no asset of Kubric's ({error}); correct it") from error

    def mesh(self, asset: str) -> Mesh:
        """Vertices (n, 3) float32 in the asset's units and triangles (m, 3) int32 of what is rendered."""
        return self._kept_mesh(asset)

    def _mesh(self, asset: str) -> Mesh:
        path, urdf = self._file(asset, "render_filename"), self._file(asset, "simulation_filename")
        try:
            check_materials(path)
            check_collisions(urdf)
            return read_mesh(path)
        except ValueError as error:
            raise self.unusable(asset, str(error)) from error

    def source(self, asset: str) -> Source:
        """The asset's archive, for provenance."""
        if asset not in self._sources:
            self._folder(asset)
        return self._sources[asset]

    def unusable(self, asset: str, why: str) -> UnusableAsset:
        """What to raise for an asset whose archive was unpacked and holds what cannot be used."""
        name = self._archive(asset)
        return UnusableAsset(
            f"{self._listed.data}/{name}: {why}; fetch it again, or leave {asset!r} out of {self.manifest}",
            self._listed.recorded + name,
            self.source(asset).size,
        )

    @cached_property
    def _kubric(self) -> Any:
        """Kubric's AssetSource, which finds archives unpacked by us: its own unpacking trusts every archive."""
        source = load_kubric().AssetSource("shelf", self._scratch, {}, scratch_dir=self._scratch)
        source.fetch = lambda _path, asset: self._folder(asset)
        return source

    def _entry(self, asset: str) -> dict[str, Any]:
        if asset not in self._listed.entries:
            raise WrongUse(f"{self.manifest} lists no asset {asset!r}; name one that it lists")
        return self._listed.entries[asset]

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
        """Where an asset lies unpacked."""
        if asset not in self._unpacked:
            folder = inside(self._scratch, asset)
            shutil.rmtree(folder, ignore_errors=True)
            archive = self._scratch / "archive.tar.gz"
            source = self._sources[asset] = self._fetch(self._archive(asset), archive)
            try:
                unpack(archive, asset, folder)
            except ValueError as error:
                why = f"archive of the asset {asset!r}: {error}; fetch it again, or leave the asset out"
                raise UnusableAsset(why, source.path, source.size) from error
            finally:
                archive.unlink()
            self._unpacked[asset] = folder
        self._unpacked.move_to_end(asset)
        while len(self._unpacked) > KEPT:
            _, oldest = self._unpacked.popitem(last=False)
            shutil.rmtree(oldest, ignore_errors=True)
        return self._unpacked[asset]

    def _fetch(self, name: str, target: Path) -> Source:
        inside(Path(), name)
        try:
            with Store(self._listed.data).open(name) as reading, target.open("wb") as writing:
                shutil.copyfileobj(reading, writing)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            why = unreadable(f"{self._listed.data}/{name} ({self.manifest})", error)
            raise UnusableAsset(str(why), self._listed.recorded + name, None) from error
        except WrongUse as error:
            raise unreadable(f"{self._listed.data}/{name} ({self.manifest})", error) from error
        sha256, size = sha256_of_file(target)
        return Source(self._listed.recorded + name, size, sha256)
