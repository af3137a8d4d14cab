"""Assets by id, and archives of strangers: what is wrong is refused, its pairs are rejected, and all others made.

Attack: an archive that refers outside its folder, expands for ever, or ends a parser.
"""

import gzip
import io
import json
import tarfile
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.generators.kubric_scenes.tiny_assets import entry, files, pack
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes import assets
from twinset.generators.kubric_scenes.assets import AssetShelf, UnusableAsset, unpack
from twinset.generators.kubric_scenes.source import Kubric
from twinset.shards.contracts import Context
from twinset.shards.storage.store import Store

TRIANGLE = b"v 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\n"


def test_a_manifest_that_is_none(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    with pytest.raises(WrongUse, match=r"manifest\.json cannot be read: .*mirror"):
        AssetShelf(manifest)
    for listed in ("[" * 200_000, '{"a/b": {}}', '{"a": {"path": "../up.tar.gz"}}'):
        manifest.write_text(f'{{"assets": {listed}}}')
        with pytest.raises(WrongUse, match=r"manifest\.json is no manifest"):
            AssetShelf(manifest)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("render_filename", "{asset_dir}/../../x.obj", "render_filename is no .obj file of its archive"),
        ("simulation_filename", "{asset_dir}/none.urdf", "it holds no none.urdf"),
        ("mass", "heavy", "is no asset of Kubric's"),
    ],
)
def test_a_manifest_that_asks_for_the_wrong_thing(manifest: Path, name: str, value: str, problem: str) -> None:
    content = json.loads(manifest.read_text())
    content["assets"]["box"]["kwargs"][name] = value
    manifest.write_text(json.dumps(content))
    with pytest.raises(WrongUse, match=problem):
        AssetShelf(manifest).create("box")


def file(name: str, size: int = 0, target: str = "") -> tarfile.TarInfo:
    """An entry of an archive; with a target, a link."""
    member = tarfile.TarInfo(name)
    member.size, member.linkname = size, target
    member.type = tarfile.SYMTYPE if target else tarfile.REGTYPE
    return member


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        *(([file(name)], "no file with a plain name") for name in ("../up.txt", "/tmp/up.txt", "..", "x" * 300)),
        ([file("box", target=".."), file("up.txt")], "no file with a plain name"),
        ([file(f"{n}.txt") for n in range(200)], "more than 100 files"),
        ([file("bomb.bin", 1 << 40)], "it is damaged"),
    ],
)
def test_a_hostile_archive_is_not_unpacked(members: list[tarfile.TarInfo], problem: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "box.tar.gz", "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"") if member.size == 0 else None)
    with pytest.raises(ValueError, match=problem):
        unpack(tmp_path / "box.tar.gz", tmp_path / "box")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["box.tar.gz"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("texture.png", None, "visual_geometry.mtl refers to 'texture.png', which is not in"),
        ("visual_geometry.obj", bytes(range(256)), "holds no mesh"),
        ("visual_geometry.obj", b"v 1e300 0 0\nv 0 1 0\nv 1 0 0\nf 1 2 3\n", "without size"),
        ("visual_geometry.obj", TRIANGLE + b"f 1 2 9\n", "out of bounds"),
        # Attack: Blender or PyBullet reads a file of the user's, or expands for ever.
        ("object.urdf", b"<robot><mesh filename='&#46;&#x2e;/&#46;./x.obj'/></robot>", "not understood"),
        ("object.urdf", b"<?xml version='1.0' encoding='cp037'?><r><mesh filename='/etc/x'/></r>", "refers to '"),
        ("visual_geometry.mtl", b"newmtl a\nmap_Kd \\\n../../x.png\n", "refers to '"),
        ("visual_geometry.mtl", b"  map_Kd -bm 1 /etc/x.png\r", "refers to '"),
        ("visual_geometry.obj", b" mtllib ../../x.mtl\n" + TRIANGLE, "refers to '"),
        ("visual_geometry.obj", b"mtllib texture.png\n" + TRIANGLE, "is no .mtl file"),
        ("visual_geometry.obj", b"\x1cmtllib ../../x.mtl\n" + TRIANGLE, "holds control characters"),
    ],
)
def test_an_archive_that_holds_no_asset(
    name: str, content: bytes | None, problem: str, shelf: AssetShelf, manifest: Path
) -> None:
    archive = manifest.parent / "box.tar.gz"
    intact = {file: data for file, data in files("box").items() if file != name}
    pack(archive, intact if content is None else intact | {name: content})
    with pytest.raises(UnusableAsset, match=rf"box\.tar\.gz: .*{problem}.*; fetch it again") as caught:
        shelf.mesh("box")
    assert (caught.value.recorded, caught.value.size) == ("box.tar.gz", archive.stat().st_size)
    assert len(shelf.mesh("can")[1])


def test_archives_lie_beside_the_manifest_wherever_they_were_published(manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    elsewhere = json.dumps({**content, "data_dir": f"file://{manifest.parents[1]}/elsewhere"})
    mirror = Store("memory://bucket/GSO")
    mirror.write("manifest.json", elsewhere.encode())
    mirror.write("box.tar.gz", (manifest.parent / "box.tar.gz").read_bytes())
    assert AssetShelf("memory://bucket/GSO/manifest.json").source("box").path == "memory://bucket/GSO/box.tar.gz"


def test_pairs_that_lack_an_asset_are_rejected_with_what_to_look_for(tmp_path: Path) -> None:
    manifest = tmp_path / "GSO.json"
    manifest.write_text(json.dumps({"assets": {"green-turtle-toy": entry("can"), "brown-hat": entry("box")}}))
    (tmp_path / "brown-hat.tar.gz").write_bytes(b"no archive")
    settings = {"kind": "kubric", "aspect": "counting", "assets": str(manifest), "licence": "CC0-1.0"}
    source: Any = Kubric.model_validate(settings).open(Context("eq-x"))
    results = source.make(list(islice(source.plan(), 4)))
    assert {(result.reason, result.media, result.media_size) for result in results} == {
        ("missing-media", "green-turtle-toy.tar.gz", None),
        ("broken-media", "brown-hat.tar.gz", 10),
    }
    assert source.media_files().size("brown-hat.tar.gz") == 10


def test_an_archive_that_expands_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "MAX_BYTES", 1 << 20)
    archive = tmp_path / "box.tar.gz"
    archive.write_bytes(gzip.compress(bytes(1 << 26), 1))
    with pytest.raises(ValueError, match="more than 1 MiB"):
        unpack(archive, tmp_path / "box")
