"""What Kubric's Blender view must be told about Blender 4: it was written for Blender 2.93 to 3.

Both functions are registered with the dispatcher that Kubric itself uses (``Blender.add_asset.register``).
"""

from __future__ import annotations

from typing import Any

from generators.kubric_scenes.studio.kubric_import import quiet
from manifests.errors import WrongUse

# Kubric's trait: the socket of Blender 4's Principled BSDF.
SOCKETS = {
    "color": "Base Color",
    "roughness": "Roughness",
    "metallic": "Metallic",
    "specular": "Specular IOR Level",
    "ior": "IOR",
    "transmission": "Transmission Weight",
    "emission": "Emission Color",
}
FILE = "obj_file"  # property of a mesh: where it was read from


def bridge(module: Any) -> None:
    """Register what differs with ``kubric.renderer.blender``. Doing it again changes nothing."""
    core, blender_utils = module.core, module.blender_utils
    dispatcher = vars(module.Blender)["add_asset"]

    def add_file_based_object(view: Any, asset: Any) -> Any:
        """``import_scene.obj`` and ``Mesh.use_auto_smooth`` are gone."""
        found = import_obj(asset.render_filename)
        module.register_object3d_setters(asset, found)
        to_blender = view._convert_to_blender_object
        asset.observe(module.AttributeSetter(found, "active_material", converter=to_blender), "material")
        asset.observe(module.AttributeSetter(found, "scale"), "scale")
        asset.observe(module.KeyframeSetter(found, "scale"), "scale", type="keyframe")
        return found

    def add_principled_material(view: Any, asset: Any) -> Any:
        """Sockets have other names, the specular tint is a colour, and emission has a strength, which starts at 0."""
        material = module.bpy.data.materials.new(asset.uid)
        material.use_nodes = True
        inputs = material.node_tree.nodes["Principled BSDF"].inputs
        inputs["Emission Strength"].default_value = 1.0
        for trait, socket in SOCKETS.items():
            asset.observe(module.AttributeSetter(inputs[socket], "default_value"), trait)
            asset.observe(module.KeyframeSetter(inputs[socket], "default_value"), trait, type="keyframe")
        return material

    dispatcher.register(core.FileBasedObject, blender_utils.prepare_blender_object(add_file_based_object))
    dispatcher.register(core.PrincipledBSDFMaterial, blender_utils.prepare_blender_object(add_principled_material))


def import_obj(path: str) -> Any:
    """A new object with the mesh and materials of an OBJ file, in the file's own axes; the mesh is read once."""
    import bpy

    for mesh in bpy.data.meshes:
        if mesh.get(FILE) == path:
            return bpy.data.objects.new(mesh.name, mesh)
    # Google Scanned Objects have Z up; the importer turns what it believes to be Y up unless it is told.
    try:
        with quiet(1, 2):
            bpy.ops.wm.obj_import(filepath=path, forward_axis="Y", up_axis="Z", use_split_objects=False)
        (found,) = bpy.context.selected_objects
    except (RuntimeError, ValueError) as error:
        raise WrongUse(f"{path}: Blender finds no mesh in it") from error
    found.data[FILE] = path
    return found


def hold_textures(mesh: Any, most: int) -> None:
    """Keep a mesh's textures in memory, at most `most` pixels wide and high.

    Cycles decodes a texture that lies in a file again for every picture: 0.1 s for 4096 × 4096.
    """
    for material in mesh.materials:
        for node in material.node_tree.nodes:
            image = getattr(node, "image", None)
            if image is None or image.packed_file is not None:
                continue
            image.pack()
            width, height = image.size
            if max(width, height) > most:
                image.scale(max(1, width * most // max(width, height)), max(1, height * most // max(width, height)))
