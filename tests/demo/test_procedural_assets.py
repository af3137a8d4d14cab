"""The built-in assets: the same bytes every time, laid out as Google Scanned Objects are, at rest where they stand."""

import hashlib
import io
import json
import math
import multiprocessing
import tarfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset_demo import procedural_assets
from twinset_demo.procedural_assets import Asset
from twinset_demo.procedural_assets.model import Model

pybullet, trimesh = pytest.importorskip("pybullet"), pytest.importorskip("trimesh")

MEMBERS = {
    "data.json",
    "visual_geometry.obj",
    "visual_geometry.mtl",
    "texture.png",
    "collision_geometry.obj",
    "object.urdf",
}


@pytest.fixture(scope="module")
def folder() -> Path:
    """All assets, as this code builds them; not to be changed."""
    return procedural_assets.ensure()


@pytest.fixture(scope="module")
def unpacked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every archive's files in a folder of its id."""
    root = tmp_path_factory.mktemp("unpacked")
    for name in procedural_assets.ids():
        with tarfile.open(folder / f"{name}.tar.gz") as tar:
            tar.extractall(root / name)  # our own; Debian 12's Python has no `filter`
    return root


@pytest.fixture(scope="module")
def entries(folder: Path) -> dict[str, Any]:
    """The manifest's assets."""
    assets: dict[str, Any] = json.loads((folder / "manifest.json").read_text())["assets"]
    return assets


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(procedural_assets.build, tmp_path).result()
    assert digests(tmp_path) == digests(folder)


def test_ensure_builds_once_below_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(procedural_assets.catalogue().items())[:1]
    monkeypatch.setattr("twinset_demo.procedural_assets.catalogue", lambda: dict(names))
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path))
    folder = procedural_assets.ensure()
    assert folder.parent == tmp_path
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert procedural_assets.ensure() == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    (folder / f"{names[0][0]}.tar.gz").unlink()
    with pytest.raises(WrongUse, match=rf"lacks {names[0][0]}\.tar\.gz; remove this folder"):
        procedural_assets.ensure()


def broken(model: Model) -> None:
    raise ValueError("no such shape")


def test_an_asset_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"first": procedural_assets.catalogue()["red-coffee-mug"], "second": Asset("Broken", broken)}
    monkeypatch.setattr("twinset_demo.procedural_assets.catalogue", lambda: names)
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="no such shape"):
        procedural_assets.ensure()
    assert not list(tmp_path.iterdir())


def test_the_layout_is_that_of_google_scanned_objects(folder: Path, entries: dict[str, Any]) -> None:
    ids = procedural_assets.ids()
    assert len(ids) == 64
    assert sorted(entries) == ids == sorted(ids)
    assert {path.name for path in folder.iterdir()} == {"manifest.json", *(f"{name}.tar.gz" for name in ids)}
    for name, entry in entries.items():
        assert set(entry) == {"asset_type", "license", "kwargs", "metadata"}
        assert entry["asset_type"] == "FileBasedObject"
        assert set(entry["kwargs"]) == {"bounds", "mass", "render_filename", "simulation_filename"}
        assert entry["metadata"]["category"]
        with tarfile.open(folder / f"{name}.tar.gz") as tar:
            members = tar.getmembers()
            assert {member.name for member in members} == MEMBERS
            assert all(member.isfile() and member.mtime == 0 and member.uid == 0 for member in members)
            data = tar.extractfile("data.json")
            assert data and json.load(data) == {"id": name, **entry}


def test_meshes_are_light_whole_and_as_large_as_the_manifest_says(unpacked: Path, entries: dict[str, Any]) -> None:
    for name, entry in entries.items():
        scene = trimesh.load_scene(unpacked / name / "visual_geometry.obj")
        mesh = scene.to_mesh()
        assert np.allclose(mesh.bounds, entry["kwargs"]["bounds"], atol=2e-6), name
        assert 500 < len(mesh.faces) <= 7000, name
        assert 0.02 < mesh.extents.max() < 1, name
        assert np.isfinite(mesh.vertex_normals).all()
        # Outwards: the surface as a whole encloses a positive volume.
        assert mesh.volume > 0, name


def test_textures_show_more_than_one_colour(unpacked: Path) -> None:
    for name in procedural_assets.ids():
        materials = (unpacked / name / "visual_geometry.mtl").read_text()
        assert materials.count("newmtl") == materials.count("map_Kd texture.png") > 0
        picture = Image.open(io.BytesIO((unpacked / name / "texture.png").read_bytes())).convert("RGB")
        coordinates = np.array(
            [line.split()[1:] for line in (unpacked / name / "visual_geometry.obj").open() if line.startswith("vt ")],
            float,
        )
        assert ((coordinates >= 0) & (coordinates <= 1)).all()
        assert len(picture.getcolors(picture.width * picture.height)) > 1, name


def parts(path: Path) -> Iterator[Any]:
    """The objects of an OBJ file."""
    vertices: list[list[float]] = []
    faces: list[list[int]] = []
    for line in [*path.read_text().splitlines(), "o end"]:
        kind, *values = line.split()
        if kind == "o" and faces:
            yield trimesh.Trimesh(vertices, faces, process=True)
            faces = []
        elif kind == "v":
            vertices.append([float(value) for value in values])
        elif kind == "f":
            faces.append([int(value) - 1 for value in values])


def test_collision_parts_are_convex_and_as_large_as_the_thing(unpacked: Path, entries: dict[str, Any]) -> None:
    for name, entry in entries.items():
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for part in parts(unpacked / name / "collision_geometry.obj"):
            assert part.is_watertight, name
            outside = (
                part.face_normals @ part.vertices.T - np.sum(part.face_normals * part.triangles_center, axis=1)[:, None]
            )
            assert outside.max() < 1e-5, name
            low, high = np.minimum(low, part.bounds[0]), np.maximum(high, part.bounds[1])
        bounds = np.array(entry["kwargs"]["bounds"])
        longest = (bounds[1] - bounds[0]).max()
        assert abs(low[2] - bounds[0][2]) < 0.002 * longest, f"{name}: would float or sink"
        assert (low > bounds[0] - 0.03 * longest).all() and (high < bounds[1] + 0.03 * longest).all(), name


@pytest.fixture
def physics() -> Iterator[int]:
    client = pybullet.connect(pybullet.DIRECT)
    yield client
    pybullet.disconnect(client)


def load(client: int, urdf: Path, scale: float, height: float) -> int:
    return int(
        pybullet.loadURDF(
            str(urdf), (0, 0, height), globalScaling=scale, useMaximalCoordinates=True, physicsClientId=client
        )
    )


def floor(client: int) -> None:
    shape = pybullet.createCollisionShape(pybullet.GEOM_PLANE, physicsClientId=client)
    pybullet.createMultiBody(0, shape, physicsClientId=client)
    pybullet.setGravity(0, 0, -9.8, physicsClientId=client)


def test_dropped_from_a_centimetre_each_asset_stays_upright(unpacked: Path, entries: dict[str, Any]) -> None:
    for name, entry in entries.items():
        client = pybullet.connect(pybullet.DIRECT)
        try:
            floor(client)
            low, high = np.array(entry["kwargs"]["bounds"])
            scale = 1 / (high - low).max()
            body = load(client, unpacked / name / "object.urdf", scale, -low[2] * scale + 0.01)
            for _ in range(240):
                pybullet.stepSimulation(physicsClientId=client)
            position, rotation = pybullet.getBasePositionAndOrientation(body, physicsClientId=client)
            upright = np.array(pybullet.getMatrixFromQuaternion(rotation)).reshape(3, 3)[2, 2]
            assert math.degrees(math.acos(min(1.0, upright))) < 3, name
            assert abs(position[2] + low[2] * scale) < 0.01, f"{name} floats or sinks"
        finally:
            pybullet.disconnect(client)


@pytest.mark.parametrize(("name", "hollow"), [("red-coffee-mug", False), ("blue-bowl", True), ("fabric-basket", True)])
def test_vessels_are_hollow_to_the_physics(
    unpacked: Path, entries: dict[str, Any], physics: int, name: str, hollow: bool
) -> None:
    low, high = np.array(entries[name]["kwargs"]["bounds"])
    load(physics, unpacked / name / "object.urdf", 1.0, -low[2])
    (_, _, fraction, hit, _), *_ = pybullet.rayTest((0, 0, 1), (0, 0, 0), physicsClientId=physics)
    assert fraction < 1
    filled = hit[2] / (high[2] - low[2])
    assert filled < 0.3 if hollow else 0.5 < filled < 0.99


def test_a_sofa_is_sat_on_below_its_back(unpacked: Path, entries: dict[str, Any], physics: int) -> None:
    name = "purple-doll-house-wooden-sofa"
    low, high = np.array(entries[name]["kwargs"]["bounds"])
    load(physics, unpacked / name / "object.urdf", 1.0, -low[2])
    heights = []
    for y in (low[1] * 0.3, high[1] * 0.8):
        (_, _, _, hit, _), *_ = pybullet.rayTest((0, y, 1), (0, y, 0), physicsClientId=physics)
        heights.append(hit[2] / (high[2] - low[2]))
    assert 0.4 < heights[0] < 0.65 < 0.9 < heights[1]
