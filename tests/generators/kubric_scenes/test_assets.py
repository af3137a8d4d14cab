"""Assets by id, and archives of strangers: what is wrong is refused, its pairs are rejected, and all others made.

Attack: an archive that refers outside its folder, expands for ever, or ends a parser.
"""

import functools
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.kubric_scenes.tiny_assets import entry, files, pack
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.kubric_scenes.assets.archives import MAX_BYTES, references, unpack
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf, UnusableAsset
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import StageState, missing_problem, state_of


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


def test_an_object_does_not_inherit_from_the_one_before(shelf: AssetShelf) -> None:
    kb = load_kubric()
    moved = shelf.create("can", position=(1.0, 2.0, 3.0), scale=2.0, static=True)
    fresh = shelf.create("can")
    assert isinstance(moved, kb.FileBasedObject)
    assert tuple(moved.position) == (1.0, 2.0, 3.0)
    assert (tuple(fresh.position), tuple(fresh.scale), fresh.static) == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), False)


def test_what_was_unpacked_goes_with_the_shelf(manifest: Path) -> None:
    shelf = AssetShelf(manifest)
    path = Path(shelf.create("box").render_filename)
    assert path.is_file()
    del shelf
    assert not path.exists()


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


def test_assets_from_a_server(server: str, manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    del content["data_dir"]  # then the archives lie beside the manifest
    manifest.write_text(json.dumps(content))
    shelf = AssetShelf(f"{server}/manifest.json")
    assert len(shelf.mesh("can")[1]) > 0
    (manifest.parent / "box.tar.gz").unlink()
    with pytest.raises(WrongUse, match=r"box\.tar\.gz .*cannot be read.*mirror"):
        shelf.mesh("box")


@pytest.mark.parametrize("name", ["gone/manifest.json", "nowhere://bucket/manifest.json"])
def test_a_manifest_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"manifest\.json cannot be read: .*mirror"):
        AssetShelf(name if "://" in name else tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"assets": []}',
        '{"assets": {"a": 1}}',
        '{"assets": {"../up": {"kwargs": {}}}}',
        '{"assets": {"a": {"kwargs": {}, "path": "../up.tar.gz"}}}',
        "[" * 200_000,
    ],
)
def test_a_manifest_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(WrongUse, match="is no manifest of Kubric's"):
        AssetShelf(tmp_path / "manifest.json")


def rewrite(manifest: Path, **kwargs: Any) -> None:
    content = json.loads(manifest.read_text())
    content["assets"]["box"]["kwargs"] |= kwargs
    manifest.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"render_filename": "{asset_dir}/../../x.obj"}, "render_filename leaves its archive"),
        ({"simulation_filename": "{asset_dir}/none.urdf"}, "holds no none.urdf"),
        ({"mass": "heavy"}, "is no asset of Kubric's"),
    ],
)
def test_a_manifest_that_asks_for_the_wrong_thing(kwargs: Any, said: str, manifest: Path) -> None:
    rewrite(manifest, **kwargs)
    with pytest.raises(WrongUse, match=said):
        AssetShelf(manifest).create("box")


def link(name: str, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def file(name: str, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([file("../up.txt")], "outside its folder"),
        ([file("/tmp/up.txt")], "outside its folder"),
        ([file("box//tmp/up.txt")], "outside its folder"),
        ([link("texture.png", "/etc/passwd")], "a link or a device"),
        ([link("box", ".."), file("box/up.txt")], "a link or a device"),
        ([file(f"{n}.txt") for n in range(200)], "more than 100 files"),
        ([file("bomb.bin", 1 << 40)], "it is damaged"),
    ],
)
def test_a_hostile_archive_is_not_unpacked(members: list[tarfile.TarInfo], said: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "box.tar.gz", "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"") if member.size == 0 else None)
    with pytest.raises(ValueError, match=said):
        unpack(tmp_path / "box.tar.gz", "box", tmp_path / "in" / "box")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["box.tar.gz"]


@pytest.mark.parametrize("cut", [0, 400])
def test_a_damaged_archive(cut: int, shelf: AssetShelf, manifest: Path) -> None:
    archive = manifest.parent / "box.tar.gz"
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(WrongUse, match=r"box\.tar\.gz: it is damaged"):
        shelf.create("box")


@pytest.mark.parametrize("place", [0.3, 0.7])
def test_a_flipped_bit_is_noticed(place: float, shelf: AssetShelf, manifest: Path) -> None:
    # Not compressed, so that only gzip's checksum can tell.
    archive = manifest.parent / "box.tar.gz"
    content = bytearray(gzip.compress(gzip.decompress(archive.read_bytes()), 0))
    content[int(place * len(content))] ^= 1
    archive.write_bytes(content)
    with pytest.raises(WrongUse, match=r"box\.tar\.gz: it is damaged"):
        shelf.create("box")


def test_an_archive_with_a_folder_of_the_assets_name(shelf: AssetShelf, manifest: Path) -> None:
    pack(manifest.parent / "box.tar.gz", {f"box/{name}": data for name, data in files("box").items()})
    assert Path(shelf.create("box").render_filename).is_file()


Contents = dict[str, bytes]
NAMES = {"green-turtle-toy": "can", "brown-hat": "box"}


def without(name: str) -> Callable[[Contents], Contents]:
    return lambda contents: {other: data for other, data in contents.items() if other != name}


def replaced(name: str, data: bytes) -> Callable[[Contents], Contents]:
    return lambda contents: contents | {name: data}


def huge_texture() -> bytes:
    written = io.BytesIO()
    Image.new("1", (10_000, 8_000)).save(written, "PNG")
    return written.getvalue()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("texture.png"), "visual_geometry.mtl refers to texture.png, which is absent"),
        (replaced("texture.png", b"no picture"), "texture.png cannot be read"),
        (replaced("texture.png", huge_texture()), "texture.png has more than"),
        (without("visual_geometry.mtl"), "visual_geometry.obj refers to visual_geometry.mtl, which is absent"),
        (without("collision_geometry.obj"), "object.urdf refers to collision_geometry.obj, which is absent"),
        (replaced("collision_geometry.obj", b"v a b c\nf 1 2 3\n"), "collision_geometry.obj holds"),
        (replaced("visual_geometry.obj", bytes(range(256))), "holds no mesh"),
        (replaced("visual_geometry.obj", b"v 0 0 0\nv 0 0 0\nv 0 0 0\nf 1 2 3\n"), "without size"),
        (replaced("visual_geometry.obj", b"v 1e300 0 0\nv 0 1 0\nv 1 0 0\nf 1 2 3\n"), "without size"),
        (replaced("visual_geometry.obj", b"v 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 9\n"), "out of bounds"),
    ],
)
def test_an_archive_that_holds_no_asset(
    change: Callable[[Contents], Contents], said: str, shelf: AssetShelf, manifest: Path
) -> None:
    archive = manifest.parent / "box.tar.gz"
    pack(archive, change(files("box")))
    with pytest.raises(UnusableAsset, match=rf"box\.tar\.gz: .*{said}.*; fetch it again") as caught:
        shelf.mesh("box")
    assert (caught.value.recorded, caught.value.size) == ("box.tar.gz", archive.stat().st_size)
    assert len(shelf.mesh("can")[1])


@pytest.mark.parametrize(
    ("data_dir", "lies", "recorded"),
    [
        (None, "", ""),
        (".", "", ""),
        ("GSO", "/GSO", "GSO/"),
        ("GSO/../a/", "/a", "a/"),
        ("{folder}/GSO", "/GSO", "GSO/"),
        ("memory://bucket/GSO", None, "memory://bucket/GSO/"),
    ],
)
def test_archives_are_recorded_as_they_lie(
    data_dir: str | None, lies: str | None, recorded: str, manifest: Path
) -> None:
    folder = str(manifest.parent)
    content = json.loads(manifest.read_text())
    content["data_dir"] = data_dir.format(folder=folder) if data_dir else None
    manifest.write_text(json.dumps(content))
    read = AssetShelf(manifest)
    assert (read.listing.path, read.listing.size) == (manifest.name, manifest.stat().st_size)
    assert (read.data, read.recorded) == (folder + lies if lies is not None else data_dir, recorded)


@pytest.mark.parametrize("data_dir", ["..", "/etc", "a/../../b"])
def test_a_manifest_whose_archives_lie_elsewhere(data_dir: str, manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"data_dir": data_dir}))
    with pytest.raises(WrongUse, match=r"manifest\.json: data_dir: .*lay the manifest beside the archives"):
        AssetShelf(manifest)


def counting(manifest: Path, data_dir: str) -> Recipe:
    """Four pairs in four shards of two things, whose archives lie in `data_dir`."""
    assets = {name: entry(shape) for name, shape in NAMES.items()}
    manifest.write_text(json.dumps({"data_dir": data_dir, "assets": assets}))
    source = {
        "kind": "kubric",
        "aspect": "counting",
        "assets": str(manifest),
        "licence": "CC0-1.0",
        "resolution": 64,
        "samples": 1,
        "attempts": 1,
    }
    return parse_recipe({"name": "tiny", "subsets": {"eq-x": {"source": source, "count": 4, "shard_size": 1}}})


def state(store: Store, recipe: Recipe) -> StageState:
    source: Any = recipe["eq-x"].source
    return state_of(store, "eq-x", source.media_files())


def test_pairs_that_lack_an_asset_are_rejected_until_it_is_there(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror" / "GSO"
    mirror.mkdir(parents=True)
    manifest = mirror.parent / "GSO.json"
    recipe = counting(manifest, "GSO")
    pack(mirror / "green-turtle-toy.tar.gz", files("can"))
    store = Store(str(tmp_path / "out"))
    stage = prepare(Job(recipe, store), "eq-x")
    receipts = [make_shard(store.root, "eq-x", shard) for shard in range(stage.shards)]
    lacking = {receipt.shard for receipt in receipts if "missing-media" in receipt.rejected}
    assert lacking and len(lacking) < 4
    absent = "GSO/brown-hat.tar.gz"
    assert all(receipts[shard].missing == {absent: None} for shard in lacking)
    found = state(store, recipe)
    assert found.todo == []
    assert f"{absent} in {manifest}" in missing_problem(recipe, "eq-x", found)

    (mirror.parent / absent).write_bytes(b"no archive")
    assert set(state(store, recipe).todo) == lacking
    broken = make_shard(store.root, "eq-x", min(lacking))
    assert broken.rejected == {"broken-media": 1} and broken.missing == {absent: 10}

    pack(mirror.parent / absent, files("box"))
    assert set(state(store, recipe).todo) == lacking
    made = make_shard(store.root, "eq-x", min(lacking))
    assert made.missing == {} and not {"missing-media", "broken-media"} & set(made.rejected)


def packed(folder: Path, **changed: bytes) -> Path:
    names = {"urdf": "object.urdf", "mtl": "visual_geometry.mtl", "obj": "visual_geometry.obj"}
    pack(folder / "box.tar.gz", files("box") | {names[kind]: content for kind, content in changed.items()})
    return folder / "box.tar.gz"


OUTSIDE = {
    "urdf": b"<robot><mesh filename='../../x.obj'/></robot>",
    "urdf in references to characters": b"<robot><mesh filename='&#46;&#x2e;/&#46;./x.obj'/></robot>",
    "urdf, the whole name in references": b"<robot><mesh filename='&#47;etc&#47;passwd'/></robot>",
    "urdf that says another encoding": b"<?xml version='1.0' encoding='cp037'?><r><mesh filename='/etc/x'/></r>",
    "mtl": b"newmtl a\nmap_Kd ../../x.png\n",
    "mtl with options": b"  map_Kd -bm 1 /etc/x.png\n",
    "mtl with a space in the name": b"map_Kd ../../x y.png\n",
    "mtl, joined lines": b"map_Kd \\\n../../x.png\n",
    "mtl, old line ends": b"newmtl a\rbump ../../x.png\r",
    "obj": b"mtllib ../../x.mtl\n",
    "obj, indented": b" mtllib /etc/x.mtl\n",
}


@pytest.mark.parametrize("how", OUTSIDE)
def test_references_outside_the_folder_are_refused(tmp_path: Path, how: str) -> None:
    """Attack: Blender or PyBullet reads a file of the user's that an asset names."""
    archive = packed(tmp_path, **{how.split()[0].rstrip(","): OUTSIDE[how]})
    with pytest.raises(ValueError, match=r"(object|visual_geometry)\.(urdf|mtl|obj) refers to '"):
        unpack(archive, "box", tmp_path / "box")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!DOCTYPE r [<!ENTITY a '../'>]><robot><mesh filename='&a;x'/></robot>", "declares a document type"),
        (b"<a>" * 200 + b"</a>" * 200, "more than 100 elements within each other"),
        (b"<robot>", "is not XML"),
    ],
)
def test_a_urdf_that_is_more_than_plain_xml_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """Attack: entities, which expand for ever or hide a name, and depth, which ends PyBullet's parser."""
    with pytest.raises(ValueError, match=said):
        unpack(packed(tmp_path, urdf=content), "box", tmp_path / "box")


def test_names_are_found_as_they_stand(tmp_path: Path) -> None:
    texts = {
        "a.urdf": b"<robot><mesh filename='a.obj'/><visual filename=\"b.obj\"/></robot>",
        "a.mtl": b"newmtl m\n# map_Kd no.png\nmap_Kd a.png \r\nMAP_KS -s 1 b.png\nKd 1 1 1\nnorm c.png",
        "a.obj": b"mtllib  a.mtl \nv 0 0 0\nmtllibs\n",
        "a.png": b"mtllib a.mtl",
    }
    named = {name: (tmp_path / name).write_bytes(text) and references(tmp_path / name) for name, text in texts.items()}
    expected = {"a.urdf": ["a.obj", "b.obj"], "a.mtl": ["a.png", "-s 1 b.png", "c.png"], "a.obj": ["a.mtl"]}
    assert named == {**expected, "a.png": []}


def test_a_header_that_expands_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """Attack: tarfile reads a header of comments whole, whatever length it claims; gzip makes 4 GB of 4 MB."""
    member = tarfile.TarInfo("comments")
    member.type, member.size = tarfile.XHDTYPE, 4 * MAX_BYTES
    archive, zeros = tmp_path / "box.tar.gz", bytes(1 << 24)
    with gzip.open(archive, "wb", compresslevel=1) as stream:
        stream.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(4 * MAX_BYTES // len(zeros)):
            stream.write(zeros)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 256 MiB"):
            unpack(archive, "box", tmp_path / "box")
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_BYTES
    finally:
        tracemalloc.stop()
