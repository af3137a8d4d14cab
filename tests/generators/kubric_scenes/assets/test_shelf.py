"""Assets by id: what a manifest lists, what an archive may hold, what is said when either cannot be had."""

import functools
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.kubric_scenes.tiny_assets import files, pack
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric


def test_what_a_shelf_says_of_its_assets(shelf: AssetShelf, manifest: Path) -> None:
    assert sorted(shelf.entries) == ["ball", "box", "can"]
    archive = (manifest.parent / "can.tar.gz").read_bytes()
    source = shelf.source("can")
    assert (source.path, source.size) == ("can.tar.gz", len(archive))
    assert source.sha256 == hashlib.sha256(archive).hexdigest()


def test_the_mesh_is_what_is_rendered(shelf: AssetShelf) -> None:
    vertices, faces = shelf.mesh("box")
    assert (vertices.dtype, faces.dtype, faces.shape) == (np.float32, np.int32, (12, 3))
    np.testing.assert_allclose(vertices.min(0), (-1.0, -0.7, -0.5), atol=1e-5)
    np.testing.assert_allclose(vertices.max(0), (1.0, 0.7, 0.5), atol=1e-5)


def test_a_mesh_that_is_none(shelf: AssetShelf, manifest: Path) -> None:
    pack(manifest.parent / "box.tar.gz", files("box") | {"visual_geometry.obj": b"f 1 2 nothing"})
    with pytest.raises(WrongUse, match=r"box\.tar\.gz: visual_geometry\.obj holds no mesh"):
        shelf.mesh("box")


def test_an_object_does_not_inherit_from_the_one_before(shelf: AssetShelf) -> None:
    kb = load_kubric()
    moved = shelf.create("can", position=(1.0, 2.0, 3.0), scale=2.0, static=True)
    fresh = shelf.create("can")
    assert isinstance(moved, kb.FileBasedObject)
    assert tuple(moved.position) == (1.0, 2.0, 3.0)
    assert (tuple(fresh.position), tuple(fresh.scale), fresh.static) == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), False)
    assert fresh.metadata["category"] == "Toys"


def test_what_was_unpacked_goes_with_the_shelf(shelf: AssetShelf, tmp_path: Path) -> None:
    path = Path(shelf.create("box").render_filename)
    assert path.is_relative_to(tmp_path / "scratch") and path.is_file()
    shelf.close()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_few_assets_stay_unpacked(shelf: AssetShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.kubric_scenes.assets.shelf.KEPT", 2)
    first = Path(shelf.create("box").render_filename)
    source = shelf.source("box")
    for name in ("can", "ball"):
        shelf.create(name)
    assert not first.exists() and shelf.source("box") == source
    assert Path(shelf.create("box").render_filename).is_file()


@pytest.fixture
def server(manifest: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    serve = functools.partial(Quiet, directory=str(manifest.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_assets_from_a_server(server: str, manifest: Path, tmp_path: Path) -> None:
    content = json.loads(manifest.read_text())
    del content["data_dir"]  # then the archives lie beside the manifest
    manifest.write_text(json.dumps(content))
    shelf = AssetShelf(f"{server}/manifest.json", tmp_path / "scratch")
    assert len(shelf.mesh("can")[1]) > 0
    (manifest.parent / "box.tar.gz").unlink()
    with pytest.raises(WrongUse, match=r"box\.tar\.gz .*cannot be read.*mirror"):
        shelf.mesh("box")


def test_a_server_that_does_not_answer_is_trouble_that_may_pass(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1:9/manifest\.json"):
        AssetShelf("http://127.0.0.1:9/manifest.json", tmp_path)


@pytest.mark.parametrize("name", ["gone/manifest.json", "nowhere://bucket/manifest.json"])
def test_a_manifest_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"manifest\.json cannot be read: .*mirror"):
        AssetShelf(name if "://" in name else tmp_path / name, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"assets": []}',
        '{"assets": {"a": 1}}',
        '{"assets": {"a": {"kwargs": [1]}}}',
        '{"assets": {"../up": {"kwargs": {}}}}',
        '{"assets": {"a": {"kwargs": {}, "path": "../up.tar.gz"}}}',
        "[" * 200_000,
    ],
)
def test_a_manifest_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(WrongUse, match="is no manifest of Kubric's"):
        AssetShelf(tmp_path / "manifest.json", tmp_path)


def rewrite(manifest: Path, **kwargs: Any) -> None:
    content = json.loads(manifest.read_text())
    content["assets"]["box"]["kwargs"] |= kwargs
    manifest.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"render_filename": "{asset_dir}/../../x.obj"}, "render_filename leaves its archive"),
        ({"render_filename": "/etc/passwd"}, "render_filename leaves its archive"),
        ({"simulation_filename": "{asset_dir}/none.urdf"}, "holds no none.urdf"),
        ({"colour": "red"}, "is no asset of Kubric's"),
        ({"mass": "heavy"}, "is no asset of Kubric's"),
        ({"bounds": None}, "is no asset of Kubric's"),
    ],
)
def test_a_manifest_that_asks_for_the_wrong_thing(kwargs: Any, said: str, manifest: Path, tmp_path: Path) -> None:
    rewrite(manifest, **kwargs)
    with pytest.raises(WrongUse, match=said):
        AssetShelf(manifest, tmp_path / "scratch").create("box")


def test_an_asset_that_is_not_listed(shelf: AssetShelf) -> None:
    with pytest.raises(WrongUse, match="lists no asset 'mug'"):
        shelf.create("mug")


def link(name: str, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def device(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = tarfile.FIFOTYPE
    return member


def file(name: str, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def refers(name: str, text: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda contents: contents | {name: contents[name] + text.encode()}


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([file("../up.txt")], "outside its folder"),
        ([file("/tmp/up.txt")], "outside its folder"),
        ([file("box/../../up.txt")], "outside its folder"),
        ([file("box//tmp/up.txt")], "outside its folder"),
        ([link("texture.png", "/etc/passwd")], "a link or a device"),
        ([link("box", ".."), file("box/up.txt")], "a link or a device"),
        ([device("texture.png")], "a link or a device"),
        ([file(f"{n}.txt") for n in range(200)], "more than 100 files"),
        ([file("same.txt")] * 200, "more than 100 files"),
        ([file("bomb.bin", 1 << 40)], "256 MiB"),
    ],
)
def test_a_hostile_archive_is_not_unpacked(
    members: list[tarfile.TarInfo], said: str, shelf: AssetShelf, manifest: Path, tmp_path: Path
) -> None:
    with tarfile.open(manifest.parent / "box.tar.gz", "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"") if member.size == 0 else None)
    before = sorted(path for path in tmp_path.rglob("*") if "scratch" not in path.parts)
    with pytest.raises(WrongUse, match=f"'box'.*{said}"):
        shelf.create("box")
    assert sorted(path for path in tmp_path.rglob("*") if "scratch" not in path.parts) == before
    assert not list((tmp_path / "scratch").rglob("*.txt"))


@pytest.mark.parametrize(
    "change",
    [
        refers("visual_geometry.mtl", "map_Kd -s 1 1 1 ../../secret.png\n"),
        refers("visual_geometry.mtl", "bump /etc/passwd\n"),
        refers("visual_geometry.obj", "\nmtllib /etc/passwd\n"),
    ],
)
def test_files_that_refer_outside_their_archive(change: Any, shelf: AssetShelf, manifest: Path) -> None:
    pack(manifest.parent / "box.tar.gz", change(files("box")))
    with pytest.raises(WrongUse, match=r"'box'.*refers to"):
        shelf.create("box")


@pytest.mark.parametrize("cut", [0, 10, 400])
def test_a_damaged_archive(cut: int, shelf: AssetShelf, manifest: Path) -> None:
    archive = manifest.parent / "box.tar.gz"
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(WrongUse, match="'box': it is damaged"):
        shelf.create("box")


@pytest.mark.parametrize("place", [0.3, 0.5, 0.7])
def test_a_flipped_bit_is_noticed(place: float, shelf: AssetShelf, manifest: Path) -> None:
    # Not compressed, so that only gzip's checksum can tell.
    archive = manifest.parent / "box.tar.gz"
    content = bytearray(gzip.compress(gzip.decompress(archive.read_bytes()), 0))
    content[int(place * len(content))] ^= 1
    archive.write_bytes(content)
    with pytest.raises(WrongUse, match="'box': it is damaged"):
        shelf.create("box")


def test_an_archive_with_a_folder_of_the_assets_name(shelf: AssetShelf, manifest: Path) -> None:
    pack(manifest.parent / "box.tar.gz", {f"box/{name}": data for name, data in files("box").items()})
    assert Path(shelf.create("box").render_filename).is_file()
