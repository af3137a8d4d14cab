"""Assets by id, and archives of strangers: what is wrong is refused, its pairs are rejected, and all others made.

Attack: an archive that refers outside its folder, expands for ever, or ends a parser.
"""

import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.kubric_scenes.tiny_assets import entry, files, pack
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.generators.kubric_scenes.assets import MAX_BYTES, AssetShelf, UnusableAsset, unpack
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import StageState, missing_problem, state_of


def test_the_mesh_is_what_is_rendered(shelf: AssetShelf) -> None:
    vertices, faces = shelf.mesh("box")
    assert (vertices.dtype, faces.dtype, faces.shape) == (np.float32, np.int32, (12, 3))
    np.testing.assert_allclose(vertices.min(0), (-1.0, -0.7, -0.5), atol=1e-5)
    np.testing.assert_allclose(vertices.max(0), (1.0, 0.7, 0.5), atol=1e-5)


def test_what_was_unpacked_goes_with_the_shelf(manifest: Path) -> None:
    shelf = AssetShelf(manifest)
    path = Path(shelf.create("box").render_filename)
    assert path.is_file()
    del shelf
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: .*mirror"),
        ("[" * 200_000, "is no manifest"),
        ('{"assets": {"a/b": {}}}', "is no manifest"),
        ('{"assets": {"a": {"kwargs": {}, "path": "../up.tar.gz"}}}', "is no manifest"),
    ],
)
def test_a_manifest_that_is_none(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(WrongUse, match=rf"manifest\.json.*{said}"):
        AssetShelf(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"render_filename": "{asset_dir}/../../x.obj"}, "render_filename leaves its archive"),
        ({"mass": "heavy"}, "is no asset of Kubric's"),
    ],
)
def test_a_manifest_that_asks_for_the_wrong_thing(kwargs: Any, said: str, manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    content["assets"]["box"]["kwargs"] |= kwargs
    manifest.write_text(json.dumps(content))
    with pytest.raises(WrongUse, match=said):
        AssetShelf(manifest).create("box")


def file(name: str, size: int = 0, target: str = "") -> tarfile.TarInfo:
    """An entry of an archive; with a target, a link."""
    member = tarfile.TarInfo(name)
    member.size, member.linkname = size, target
    member.type = tarfile.SYMTYPE if target else tarfile.REGTYPE
    return member


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([file("../up.txt")], "outside its folder"),
        ([file("box//tmp/up.txt")], "outside its folder"),
        ([file("box", target=".."), file("box/up.txt")], "a link or a device"),
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


def test_a_damaged_archive(shelf: AssetShelf, manifest: Path) -> None:
    archive = manifest.parent / "box.tar.gz"
    whole = archive.read_bytes()
    flipped = bytearray(gzip.compress(gzip.decompress(whole), 0))  # not compressed: only gzip's checksum can tell
    flipped[len(flipped) // 2] ^= 1
    for content in (b"", whole[:400], flipped):
        archive.write_bytes(content)
        with pytest.raises(WrongUse, match=r"box\.tar\.gz: it is damaged"):
            shelf.create("box")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("texture.png", None, "visual_geometry.mtl refers to texture.png, which is absent"),
        ("texture.png", b"no picture", "texture.png cannot be read"),
        ("visual_geometry.obj", bytes(range(256)), "holds no mesh"),
        ("visual_geometry.obj", b"v 1e300 0 0\nv 0 1 0\nv 1 0 0\nf 1 2 3\n", "without size"),
        ("visual_geometry.obj", b"v 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 9\n", "out of bounds"),
    ],
)
def test_an_archive_that_holds_no_asset(
    name: str, content: bytes | None, said: str, shelf: AssetShelf, manifest: Path
) -> None:
    archive = manifest.parent / "box.tar.gz"
    others = {other: data for other, data in files("box").items() if other != name}
    pack(archive, others if content is None else others | {name: content})
    with pytest.raises(UnusableAsset, match=rf"box\.tar\.gz: .*{said}.*; fetch it again") as caught:
        shelf.mesh("box")
    assert (caught.value.recorded, caught.value.size) == ("box.tar.gz", archive.stat().st_size)
    assert len(shelf.mesh("can")[1])


def test_archives_lie_beside_the_manifest_wherever_they_were_published(manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    elsewhere = json.dumps({**content, "data_dir": f"file://{manifest.parents[1]}/elsewhere"})
    manifest.write_text(elsewhere)
    shelf = AssetShelf(manifest)
    assert (shelf.listing.path, shelf.listing.size) == (manifest.name, manifest.stat().st_size)
    assert shelf.source("box").path == "box.tar.gz"
    Store("memory://bucket/GSO").write("manifest.json", elsewhere.encode())
    Store("memory://bucket/GSO").write("box.tar.gz", (manifest.parent / "box.tar.gz").read_bytes())
    assert AssetShelf("memory://bucket/GSO/manifest.json").source("box").path == "memory://bucket/GSO/box.tar.gz"


def test_pairs_that_lack_an_asset_are_rejected_until_it_is_there(tmp_path: Path) -> None:
    manifest = tmp_path / "GSO.json"
    assets = {"green-turtle-toy": entry("can"), "brown-hat": entry("box")}
    manifest.write_text(json.dumps({"assets": assets}))
    source: dict[str, Any] = {"kind": "kubric", "aspect": "counting", "assets": str(manifest), "licence": "CC0-1.0"}
    source |= {"resolution": 64, "samples": 1, "attempts": 1}
    recipe = parse_recipe({"name": "tiny", "subsets": {"eq-x": {"source": source, "count": 4, "shard_size": 1}}})
    pack(tmp_path / "green-turtle-toy.tar.gz", files("can"))
    store = Store(str(tmp_path / "out"))
    stage = prepare(Job(recipe, store), "eq-x")
    receipts = [make_shard(store.root, "eq-x", shard) for shard in range(stage.shards)]
    lacking = {receipt.shard for receipt in receipts if "missing-media" in receipt.rejected}
    assert lacking and len(lacking) < 4
    absent = "brown-hat.tar.gz"
    assert all(receipts[shard].missing == {absent: None} for shard in lacking)

    def state() -> StageState:
        opened: Any = recipe["eq-x"].source
        return state_of(store, "eq-x", opened.media_files())

    assert state().todo == []
    assert f"{absent} in {manifest}" in missing_problem(recipe, "eq-x", state())
    (tmp_path / absent).write_bytes(b"no archive")
    assert set(state().todo) == lacking
    broken = make_shard(store.root, "eq-x", min(lacking))
    assert broken.rejected == {"broken-media": 1} and broken.missing == {absent: 10}
    pack(tmp_path / absent, files("box"))
    assert set(state().todo) == lacking
    made = make_shard(store.root, "eq-x", min(lacking))
    assert made.missing == {} and not {"missing-media", "broken-media"} & set(made.rejected)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("object.urdf", b"<robot><mesh filename='&#46;&#x2e;/&#46;./x.obj'/></robot>", "holds entities"),
        ("object.urdf", b"<?xml version='1.0' encoding='cp037'?><r><mesh filename='/etc/x'/></r>", "refers to '"),
        ("object.urdf", b"<r a='filename=\"'><mesh filename='/etc/x'/><r b='\"'/></r>", "is not understood"),
        ("visual_geometry.mtl", b"newmtl a\nmap_Kd \\\n../../x.png\n", "refers to '"),
        ("visual_geometry.mtl", b"  map_Kd -bm 1 /etc/x.png\r", "refers to '"),
        ("visual_geometry.mtl", b"map_Kd \xff.png\n", "not UTF-8"),
        ("visual_geometry.obj", b" mtllib ../../x.mtl\n", "refers to '"),
        ("visual_geometry.obj", b"mtllib texture.png\n", "is no .mtl file"),
    ],
)
def test_files_that_refer_elsewhere_or_end_a_parser_are_refused(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """Attack: Blender or PyBullet reads a file of the user's, or expands for ever."""
    pack(tmp_path / "box.tar.gz", files("box") | {name: content})
    with pytest.raises(ValueError, match=said):
        unpack(tmp_path / "box.tar.gz", "box", tmp_path / "box")


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
