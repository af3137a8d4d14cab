"""What surrounds a scene and lights it from all sides: an even light, a sky, or a background picture."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.scene.panoramas import refuse_huge
from twinset.generators.kubric_scenes.scene.parts import View
from twinset.generators.kubric_scenes.studio.grounds import ShaderNodes, roughen

STEEP = 0.55  # exponent of how a sky goes from the horizon to the zenith
MAP = 256  # pixels across of the map by which rays find a background's lamps; finer ones take a second a picture
LIT = (4.2, 5.6)  # irradiance of the ground that a background is brought to, W/m²
SEEN = 0.3  # radiance of the ground that is aimed at within these bounds
MOST_REFLECTED = 0.85
REMEDY = "give HDRI files (.hdr, .exr) that can be read"


class World:
    """Blender's world. It is built again for each view: nodes that are not used cost time too."""

    def __init__(self, bpy: Any) -> None:
        self._bpy = bpy
        self._tree = bpy.context.scene.world.node_tree
        self._settings = bpy.context.scene.world.cycles
        self._file: Path | None = None
        self._image: Any = None
        self._from_above: NDArray[np.float64] = np.ones(3)
        self._ground = self._from_above

    def surround(self, view: View) -> None:
        """Light the scene as a view says. Raises `WrongUse`: the background cannot be read."""
        # An even light and a sky are smooth: rays need no map of them, which costs a second a picture.
        self._settings.sampling_method = "MANUAL" if view.background is not None else "NONE"
        self._settings.sample_map_resolution = MAP
        self._tree.nodes.clear()
        nodes = ShaderNodes(self._tree)
        strength = 1.0
        if view.background is not None:
            self._load(view.background)
            colour = self._panorama(nodes, nodes.add("TexCoord")["Generated"], view)
            strength = self._strength()
        elif view.sky is not None:
            _, _, up = nodes.add("SeparateXYZ", _0=nodes.add("TexCoord")["Generated"])
            height = nodes.math("POWER", nodes.math("MAXIMUM", up, 0.0), STEEP)
            colour = nodes.mix(height, view.sky.horizon, view.sky.zenith)
        else:
            colour = (*view.ambient, 1.0)
        nodes.add("OutputWorld", Surface=nodes.add("Background", Color=colour, Strength=strength)[0])

    def floor_below(self, view: View) -> Any:
        """A material for the floor that shows a background's own ground and takes light and shadow.

        The background is projected from the camera, so that floor and backdrop are one picture and meet unseen. To be
        as bright as it, a matte floor under the irradiance E reflects ρ = π L / E, L being the background's radiance.
        """
        assert view.background is not None
        self._load(view.background)
        material = self._bpy.data.materials.new("projected")
        material.use_nodes = True
        material.node_tree.nodes.clear()
        nodes = ShaderNodes(material.node_tree)
        place = nodes.add("NewGeometry")["Position"]
        seen = nodes.add("VectorMath", {"operation": "SUBTRACT"}, _0=place, _1=view.camera)[0]
        direction = nodes.add("VectorMath", {"operation": "NORMALIZE"}, _0=seen)[0]
        radiance = self._panorama(nodes, direction, view)
        share = tuple((math.pi / np.maximum(self._from_above, 1e-6)).tolist())
        reflected = nodes.add("VectorMath", {"operation": "MULTIPLY"}, _0=radiance, _1=share)[0]
        # Backgrounds are coarse so near: a grain of its own keeps the floor from being a blur.
        grain, bump = roughen(nodes, place)
        grained = nodes.add("VectorMath", {"operation": "SCALE"}, _0=reflected, Scale=grain)[0]
        most = nodes.add("VectorMath", {"operation": "MINIMUM"}, _0=grained, _1=(MOST_REFLECTED,) * 3)[0]
        matte = nodes.add("BsdfDiffuse", Color=most, Normal=bump)
        nodes.add("OutputMaterial", Surface=matte[0])
        return material

    def _panorama(self, nodes: ShaderNodes, direction: Any, view: View) -> Any:
        turned = nodes.add("Mapping", _0=direction, Rotation=(0.0, 0.0, view.background_yaw))[0]
        return nodes.add("TexEnvironment", {"image": self._image, "interpolation": "Cubic"}, _0=turned)[0]

    def _strength(self) -> float:
        """What a background is multiplied by: night and noon come out equally bright."""
        lit = max(float(self._from_above.mean()), 1e-6)
        reflected = max(math.pi * float(self._ground.mean()) / lit, 1e-6)
        return float(np.clip(math.pi * SEEN / reflected, *LIT)) / lit

    def _load(self, file: Path) -> None:
        if file == self._file:
            return
        refuse_huge(file)
        try:
            image = self._bpy.data.images.load(str(file), check_existing=True)
        except RuntimeError as error:
            raise WrongUse(f"{str(error).strip()}; {REMEDY}") from error
        if not min(image.size):  # Blender shows what it cannot decode as a pink sky
            self._bpy.data.images.remove(image)
            raise WrongUse(f"{file} is damaged; {REMEDY}")
        from_above, ground = _measured(self._bpy.data.images, image)
        # Not a number is less than nothing too; a picture would be black, or left to Blender.
        if not (0 < from_above.mean() < math.inf and ground.mean() < math.inf):
            self._bpy.data.images.remove(image)
            raise WrongUse(f"{file} gives no light, or holds pixels that are not numbers; {REMEDY}")
        self._from_above, self._ground = from_above, ground
        image.buffers_free()  # Cycles has a copy of its own
        if self._image is not None and self._image != image:
            self._bpy.data.images.remove(self._image)  # 8k pixels wide is 400 MB
        self._image, self._file = image, file


def _measured(bpy_images: Any, image: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of a panorama, by channel: the irradiance of level ground under it, and the mean radiance of its lower half."""
    small = image.copy()
    small.scale(128, 64)
    pixels = np.empty(128 * 64 * small.channels, np.float32)
    small.pixels.foreach_get(pixels)
    bpy_images.remove(small)
    # Blender's first row is the lowest.
    rows = np.maximum(pixels.reshape(64, 128, -1)[..., :3], 0.0).mean(axis=1).astype(np.float64)
    height = (np.arange(len(rows)) + 0.5) / len(rows) * math.pi - math.pi / 2  # radians above the horizon
    # E = ∫ L sin h cos h dh dφ over the upper half; a row's L is a mean over φ.
    weight = np.where(height > 0, np.sin(height) * np.cos(height), 0.0) * math.pi / len(rows) * 2 * math.pi
    below = np.where(height < 0, np.cos(height), 0.0)
    return weight @ rows, below @ rows / below.sum()
