"""Assets that are absent, broken or no assets at all: their pairs are rejected, and all others made.

Attack: an archive of a stranger that refers outside its folder, expands for ever, or takes minutes to look at.
"""

import gzip
import io
import json
import math
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.generators.kubric_scenes.tiny_assets import entry, files, pack
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.kubric_scenes.assets.archives import MAX_BYTES, references, unpack
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf, UnusableAsset
from twinset.generators.kubric_scenes.scene.parts import Placement
from twinset.generators.kubric_scenes.scene.settle import settle
from twinset.shards.media.media_folder import MediaFolder
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import StageState, missing_problem, state_of

Contents = dict[str, bytes]
NAMES = {"green-turtle-toy": "can", "brown-hat": "box"}


def without(name: str) -> Callable[[Contents], Contents]:
    return lambda contents: {other: data for other, data in contents.items() if other != name}


def replaced(name: str, data: bytes) -> Callable[[Contents], Contents]:
    return lambda contents: contents | {name: data}


def cut(name: str) -> Callable[[Contents], Contents]:
    return lambda contents: contents | {name: contents[name][:60]}


def huge_texture() -> bytes:
    written = io.BytesIO()
    Image.new("1", (10_000, 8_000)).save(written, "PNG")
    return written.getvalue()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("texture.png"), "visual_geometry.mtl refers to texture.png, which is absent"),
        (replaced("texture.png", b"no picture"), "texture.png cannot be read"),
        (cut("texture.png"), "texture.png cannot be read"),
        (replaced("texture.png", huge_texture()), "texture.png has more than"),
        (without("visual_geometry.mtl"), "visual_geometry.obj refers to visual_geometry.mtl, which is absent"),
        (without("object.urdf"), "holds no object.urdf"),
        (without("collision_geometry.obj"), "object.urdf refers to collision_geometry.obj, which is absent"),
        (replaced("collision_geometry.obj", b"v a b c\nf 1 2 3\n"), "collision_geometry.obj holds"),
        (replaced("visual_geometry.obj", b""), "holds no mesh"),
        (replaced("visual_geometry.obj", bytes(range(256))), "holds no mesh"),
        (replaced("visual_geometry.obj", b"v 0 0 0\nv 0 0 0\nv 0 0 0\nf 1 2 3\n"), "without size"),
        (replaced("visual_geometry.obj", b"v nan 0 0\nv 0 1 0\nv 1 0 0\nf 1 2 3\n"), "without size"),
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


def test_an_archive_that_is_absent_or_a_folder(shelf: AssetShelf, manifest: Path) -> None:
    (manifest.parent / "box.tar.gz").unlink()
    for _ in range(2):
        with pytest.raises(UnusableAsset, match=r"box\.tar\.gz .*cannot be read") as caught:
            shelf.mesh("box")
        assert (caught.value.recorded, caught.value.size) == ("box.tar.gz", None)
        (manifest.parent / "box.tar.gz").mkdir(exist_ok=True)


def test_a_mass_that_is_no_number_never_rests(shelf: AssetShelf, manifest: Path) -> None:
    urdf = files("box")["object.urdf"].replace(b'mass value="1.0"', b'mass value="nan"')
    pack(manifest.parent / "box.tar.gz", files("box") | {"object.urdf": urdf})
    upright = (1.0, 0.0, 0.0, 0.0)
    dropped = Placement("box", 0.5, (0.0, 0.0, 1.2), upright)
    settled = settle(shelf, [Placement("can", 0.5, (0.0, 0.0, 0.4), upright)], dropped)
    assert math.isnan(settled.placement.position[2]) and not settled.still


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
    read = AssetShelf(manifest, manifest.parent)
    assert (read.listing.path, read.listing.size) == (manifest.name, manifest.stat().st_size)
    assert (read.data, read.recorded) == (folder + lies if lies is not None else data_dir, recorded)


@pytest.mark.parametrize("data_dir", ["..", "/etc", "a/../../b"])
def test_a_manifest_whose_archives_lie_elsewhere(data_dir: str, manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"data_dir": data_dir}))
    with pytest.raises(WrongUse, match=r"manifest\.json: data_dir: .*lay the manifest beside the archives"):
        AssetShelf(manifest, manifest.parent)


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
        "look": {"bystanders": 0},  # which would lack their assets too
    }
    return parse_recipe({"name": "tiny", "subsets": {"eq-x": {"source": source, "count": 4, "shard_size": 1}}})


def state(store: Store, recipe: Recipe) -> StageState:
    source: Any = recipe["eq-x"].source
    return state_of(store, "eq-x", source.media_files())


def test_pairs_whose_bucket_lacks_an_asset_are_rejected(tmp_path: Path) -> None:
    recipe, store = counting(tmp_path / "GSO.json", "memory://nowhere/GSO"), Store(str(tmp_path / "out"))
    prepare(Job(recipe, store), "eq-x")
    receipt = make_shard(store.root, "eq-x", 0)
    assert (receipt.rejected, receipt.missing) == ({"missing-media": 1}, {})
    found = state(store, recipe)
    assert found.todo == [1, 2, 3]
    assert "media of 1 of 4 candidates is missing" in missing_problem(recipe, "eq-x", found)


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
    source: Any = recipe["eq-x"].source
    media = source.media_files()
    assert isinstance(media, MediaFolder) and (there := media.find(absent)) and there.path == mirror.parent / absent


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
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_an_honest_archive_is_unpacked(tmp_path: Path) -> None:
    unpack(packed(tmp_path), "box", tmp_path / "box")
    assert {path.name for path in (tmp_path / "box").iterdir()} == set(files("box"))
    assert io.BytesIO((tmp_path / "box/object.urdf").read_bytes()).read() == files("box")["object.urdf"]
