"""Assets as files, laid out as Kubric's copy of Google Scanned Objects is: a manifest and one archive an asset."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twinset_demo.procedural_assets.model import Mesh, Model

if TYPE_CHECKING:
    import trimesh

METRES = 0.01  # models are built in centimetres
DENSITY = 400.0  # kg/m³ of the colliding parts: things are hollow or of wood and plastic
LICENCE = "CC0-1.0"
# Roughness and metallic of Blender's Principled BSDF, which its OBJ importer reads from Pr and Pm.
FINISHES = {
    "cloth": (0.95, 0.0),
    "matte": (0.75, 0.0),
    "satin": (0.45, 0.0),
    "gloss": (0.18, 0.0),
    "steel": (0.27, 1.0),
}


def archive(name: str, description: str, category: str, model: Model) -> tuple[dict[str, Any], bytes]:
    """The manifest's entry for an asset and the bytes of its ``NAME.tar.gz``, the same in every run.

    The origin is the centre of mass of the colliding parts, taken as homogeneous; units are metres.
    """
    mesh, hulls = model.mesh(), model.hulls()
    volumes = np.array([hull.volume for hull in hulls])
    volume = float(volumes.sum())
    centre = np.average([hull.center_mass for hull in hulls], axis=0, weights=volumes)
    vertices = np.round((mesh.vertices - centre) * METRES, 6)
    mass = round(volume * METRES**3 * DENSITY, 4)
    inertia = np.sum([_inertia(hull, centre) for hull in hulls], axis=0) * METRES**5 * DENSITY
    entry = {
        "asset_type": "FileBasedObject",
        "license": LICENCE,
        "kwargs": {
            "bounds": [vertices.min(axis=0).tolist(), vertices.max(axis=0).tolist()],
            "mass": mass,
            "render_filename": "{asset_dir}/visual_geometry.obj",
            "simulation_filename": "{asset_dir}/object.urdf",
        },
        "metadata": {
            "category": category,
            "description": description,
            "nr_faces": len(mesh.faces),
            "nr_vertices": len(vertices),
        },
    }
    texture = io.BytesIO()
    mesh.texture.save(texture, "PNG")
    files = {
        "data.json": (json.dumps({"id": name, **entry}, indent=2) + "\n").encode(),
        "visual_geometry.obj": _visual(mesh, vertices).encode(),
        "visual_geometry.mtl": _materials(mesh).encode(),
        "texture.png": texture.getvalue(),
        "collision_geometry.obj": _collision(hulls, centre).encode(),
        "object.urdf": _urdf(name, mass, inertia).encode(),
    }
    return entry, _tar(files)


def _inertia(hull: trimesh.Trimesh, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tensor of a part of density 1 about ``centre`` (parallel axes), cm⁵."""
    arm = hull.center_mass - centre
    return np.asarray(hull.moment_inertia + hull.volume * (arm @ arm * np.eye(3) - np.outer(arm, arm)))


def _visual(mesh: Mesh, vertices: NDArray[np.float64]) -> str:
    text = "mtllib visual_geometry.mtl\no visual_geometry\n"
    text += _lines("v %.6f %.6f %.6f\n", vertices) + _lines("vt %.6f %.6f\n", mesh.uv)
    text += _lines("vn %.3f %.3f %.3f\n", mesh.normals)
    corners = np.stack([mesh.faces, mesh.uv_faces, mesh.faces], axis=-1) + 1
    finishes = np.array(mesh.finishes)
    for finish in sorted(set(mesh.finishes)):
        text += f"usemtl {finish}\n" + _lines("f %d/%d/%d %d/%d/%d %d/%d/%d\n", corners[finishes == finish])
    return text


def _lines(form: str, rows: NDArray[Any]) -> str:
    """A line a row; at once, because assets have thousands."""
    return form * len(rows) % tuple((rows + 0).ravel().tolist())  # + 0: no minus zero


def _materials(mesh: Mesh) -> str:
    blocks = []
    for finish in sorted(set(mesh.finishes)):
        roughness, metallic = FINISHES[finish]
        blocks.append(
            f"newmtl {finish}\nKa 1 1 1\nKd 1 1 1\nKs 0.5 0.5 0.5\nNs {1000 * (1 - roughness) ** 2:.1f}\n"
            f"Pr {roughness}\nPm {metallic}\nd 1\nillum 2\nmap_Kd texture.png\n"
        )
    return "\n".join(blocks)


def _collision(hulls: list[trimesh.Trimesh], centre: NDArray[np.float64]) -> str:
    """One object a part: PyBullet makes a compound with one convex hull for each of them."""
    text, count = "", 1
    for number, hull in enumerate(hulls):
        text += f"o part_{number}\n" + _lines("v %.6f %.6f %.6f\n", (hull.vertices - centre) * METRES)
        text += _lines("f %d %d %d\n", hull.faces + count)
        count += len(hull.vertices)
    return text


def _urdf(name: str, mass: float, inertia: NDArray[np.float64]) -> str:
    moments = {
        f"i{'xyz'[i]}{'xyz'[j]}": f"{inertia[i, j] + 0.0:.4e}"
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    }
    return f"""<robot name="{name}">
    <link name="base">
        <contact>
            <lateral_friction value="1.0" />
        </contact>
        <inertial>
            <origin xyz="0 0 0" />
            <mass value="{mass}" />
            <inertia {" ".join(f'{key}="{value}"' for key, value in moments.items())} />
        </inertial>
        <visual>
            <origin xyz="0 0 0" />
            <geometry>
                <mesh filename="visual_geometry.obj" />
            </geometry>
        </visual>
        <collision>
            <origin xyz="0 0 0" />
            <geometry>
                <mesh filename="collision_geometry.obj" />
            </geometry>
        </collision>
    </link>
</robot>
"""


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
