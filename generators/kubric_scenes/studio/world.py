"""What lights a scene from all sides: an even light, or a background picture, which the floor shows too."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.scene.panoramas import light_of, read_panorama
from twinset.generators.kubric_scenes.scene.parts import View

MAP = 256  # pixels across of the map by which rays find a background's lamps; finer ones take a second a picture
LIT = (4.2, 5.6)  # irradiance of the ground that a background is brought to, W/m²
SEEN = 0.3  # radiance of the ground that is aimed at within these bounds
MOST_REFLECTED = 0.85


class World:
    """Blender's world. It is built again for each view: nodes that are not used cost time too."""

    def __init__(self, bpy: Any) -> None:
        self._bpy = bpy
        self._tree = bpy.context.scene.world.node_tree
        self._settings = bpy.context.scene.world.cycles
        self._file: Path | None = None
        self._image: Any = None
        self._ground = bpy.data.materials.new("projected")
        self._ground.use_nodes = True
        self._from_above: NDArray[np.float64] = np.ones(3)  # irradiance, W/m²
        self._below = self._from_above  # radiance

    def surround(self, view: View) -> None:
        """Light the scene as a view says. Raises `WrongUse`: the background cannot be read."""
        # An even light is smooth: rays need no map of it, which costs a second a picture.
        self._settings.sampling_method = "MANUAL" if view.background is not None else "NONE"
        self._settings.sample_map_resolution = MAP
        colour, strength = (*view.ambient, 1.0), 1.0
        if view.background is not None:
            self._load(view.background)
        self._tree.nodes.clear()
        if view.background is not None:
            colour = self._panorama(self._tree, add(self._tree, "TexCoord")["Generated"], view)
            strength = self._strength()
        add(self._tree, "OutputWorld", Surface=add(self._tree, "Background", Color=colour, Strength=strength)[0])

    def floor_below(self, view: View) -> Any:
        """A material for the floor that shows the background's own ground and takes light and shadow.

        The background is projected from the camera, so that floor and backdrop are one picture and meet unseen. To be
        as bright as it, a matte floor under the irradiance E reflects ρ = π L / E, L being the background's radiance.
        """
        tree = self._ground.node_tree
        tree.nodes.clear()
        place = add(tree, "NewGeometry")["Position"]
        seen = add(tree, "VectorMath", {"operation": "SUBTRACT"}, _0=place, _1=view.camera)[0]
        direction = add(tree, "VectorMath", {"operation": "NORMALIZE"}, _0=seen)[0]
        share = tuple((math.pi / np.maximum(self._from_above, 1e-6)).tolist())
        radiance = self._panorama(tree, direction, view)
        reflected = add(tree, "VectorMath", {"operation": "MULTIPLY"}, _0=radiance, _1=share)[0]
        most = add(tree, "VectorMath", {"operation": "MINIMUM"}, _0=reflected, _1=(MOST_REFLECTED,) * 3)[0]
        add(tree, "OutputMaterial", Surface=add(tree, "BsdfDiffuse", Color=most)[0])
        return self._ground

    def _panorama(self, tree: Any, direction: Any, view: View) -> Any:
        turned = add(tree, "Mapping", _0=direction, Rotation=(0.0, 0.0, view.background_yaw))[0]
        return add(tree, "TexEnvironment", {"image": self._image, "interpolation": "Cubic"}, _0=turned)[0]

    def _strength(self) -> float:
        """What a background is multiplied by: night and noon come out equally bright."""
        lit = max(float(self._from_above.mean()), 1e-6)
        reflected = max(math.pi * float(self._below.mean()) / lit, 1e-6)
        return float(np.clip(math.pi * SEEN / reflected, *LIT)) / lit

    def _load(self, file: Path) -> None:
        """Give Blender a background's pixels: it reads no file of a stranger."""
        if file == self._file:
            return
        pixels = read_panorama(file)
        height, width, _ = pixels.shape
        if self._image is not None:
            self._bpy.data.images.remove(self._image)  # 8k pixels wide is 400 MB
        self._image = self._bpy.data.images.new("background", width, height, float_buffer=True)
        # Blender's first row is the lowest, and a pixel has four channels.
        self._image.pixels.foreach_set(np.dstack([pixels, np.ones((height, width), np.float32)])[::-1].ravel())
        self._from_above, self._below = light_of(pixels)
        self._file = file


def add(tree: Any, kind: str, settings: dict[str, Any] | None = None, **inputs: Any) -> Any:
    """A new node's outputs. inputs: values, or outputs of other nodes, by socket ("Color"; "_0" by number)."""
    node = tree.nodes.new(f"ShaderNode{kind}")
    for name, value in (settings or {}).items():
        setattr(node, name, value)
    for name, value in inputs.items():
        socket = node.inputs[int(name[1:]) if name[0] == "_" else name]
        if hasattr(value, "is_linked"):
            tree.links.new(value, socket)
        else:
            socket.default_value = value
    return node.outputs
