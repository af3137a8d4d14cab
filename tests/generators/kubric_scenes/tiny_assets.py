"""Three assets in the layout of Google Scanned Objects, small enough to make for every test run."""

import io
import tarfile
from pathlib import Path

import trimesh
from PIL import Image

# Two units across, so that a scale of 0.5 makes a thing one unit long.
SHAPES = {
    "box": (trimesh.creation.box(extents=(2.0, 1.4, 1.0)), (200, 30, 30)),
    "can": (trimesh.creation.cylinder(radius=0.6, height=1.6, sections=24), (30, 60, 200)),
    "ball": (trimesh.creation.icosphere(subdivisions=2, radius=0.8), (220, 190, 30)),
}
URDF = """<?xml version="1.0"?>
<robot name="{name}"><link name="base">
<contact><lateral_friction value="1.0"/></contact>
<inertial><origin xyz="0 0 0"/><mass value="1.0"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.3"/></inertial>
<visual><geometry><mesh filename="visual_geometry.obj"/></geometry></visual>
<collision><geometry><mesh filename="collision_geometry.obj"/></geometry></collision>
</link></robot>
"""
MTL = "newmtl material_0\nKd 1.0 1.0 1.0\nmap_Kd texture.png\n"


def entry(name: str) -> dict[str, object]:
    """What the manifest says of an asset."""
    mesh, _ = SHAPES[name]
    return {
        "asset_type": "FileBasedObject",
        "license": "CC0 1.0",
        "kwargs": {
            "bounds": mesh.bounds.tolist(),
            "mass": 1.0,
            "render_filename": "{asset_dir}/visual_geometry.obj",
            "simulation_filename": "{asset_dir}/object.urdf",
        },
    }


def files(name: str) -> dict[str, bytes]:
    """The files of an asset's archive."""
    mesh, colour = SHAPES[name]
    vertices = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in mesh.vertices]
    faces = ["f " + " ".join(f"{corner + 1}" for corner in face) for face in mesh.faces]
    textured = ["f " + " ".join(f"{corner + 1}/1" for corner in face) for face in mesh.faces]
    texture = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(texture, "PNG")
    head = ["mtllib visual_geometry.mtl", "usemtl material_0", "vt 0.5 0.5"]
    return {
        "visual_geometry.obj": "\n".join([*head, *vertices, *textured]).encode(),
        "visual_geometry.mtl": MTL.encode(),
        "texture.png": texture.getvalue(),
        "collision_geometry.obj": "\n".join([*vertices, *faces]).encode(),
        "object.urdf": URDF.format(name=name).encode(),
    }


def pack(archive: Path, contents: dict[str, bytes]) -> None:
    """A flat tar.gz, as Google Scanned Objects have it."""
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
