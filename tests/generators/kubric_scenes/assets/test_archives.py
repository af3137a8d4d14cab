"""Attack: an archive of a stranger that refers outside its folder, expands for ever, or takes minutes to look at."""

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from tests.generators.kubric_scenes.tiny_assets import files, pack
from twinset.generators.kubric_scenes.assets.archives import MAX_BYTES, references, unpack


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
