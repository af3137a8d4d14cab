"""Materials of the ground as Blender's shader nodes: gravel, wood, tiles, cloth and grass.

Patterns are flat: relief is a bump, which costs less than geometry. What is smaller than a pixel only makes noise that
Cycles samples in vain, so patterns have no finer detail than about a hundredth of a scene unit, and fade far away.
"""

import math
from collections.abc import Callable
from typing import Any

from twinset.generators.kubric_scenes.scene.look import Material
from twinset.generators.kubric_scenes.scene.parts import Colour, Ground


class ShaderNodes:
    """The nodes of one tree, which are wired as they are made."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def add(self, kind: str, settings: dict[str, Any] | None = None, **inputs: Any) -> Any:
        """A node's outputs. inputs: values, or outputs of other nodes, by socket ("Base_Color"; "_0" by number)."""
        node = self._tree.nodes.new(f"ShaderNode{kind}")
        for name, value in (settings or {}).items():
            setattr(node, name, value)
        for name, value in inputs.items():
            socket = node.inputs[int(name[1:]) if name[0] == "_" else name.replace("_", " ")]
            if hasattr(value, "is_linked"):
                self._tree.links.new(value, socket)
            else:
                socket.default_value = value
        return node.outputs

    def math(self, operation: str, one: Any, other: Any = 0.0, clamp: bool = False) -> Any:
        """One of Blender's operations on two numbers."""
        return self.add("Math", {"operation": operation, "use_clamp": clamp}, _0=one, _1=other)[0]

    def mix(self, share: Any, one: Any, other: Any) -> Any:
        """A colour between two."""
        colours = [(*each, 1.0) if isinstance(each, tuple) else each for each in (one, other)]
        return self.add("Mix", {"data_type": "RGBA"}, _0=share, _6=colours[0], _7=colours[1])[2]

    def between(self, value: Any, low: float, high: float, to_low: float = 0.0, to_high: float = 1.0) -> Any:
        """A number's place from `low` to `high`, smoothly, mapped to another range."""
        settings = {"interpolation_type": "SMOOTHSTEP"}
        return self.add("MapRange", settings, _0=value, _1=low, _2=high, _3=to_low, _4=to_high)[0]

    def placed(self, position: Any, scale: tuple[float, float], turn: float = 0.0) -> Any:
        """A position, turned (radians) and then scaled."""
        turned = self.add("Mapping", _0=position, Rotation=(0.0, 0.0, turn))[0]
        return self.add("Mapping", _0=turned, Scale=(*scale, 1.0))[0]

    def noise(self, position: Any, scale: float, detail: float = 0.0, distortion: float = 0.0) -> Any:
        """Smooth noise around a half."""
        settings = {"noise_dimensions": "2D"}
        return self.add("TexNoise", settings, Vector=position, Scale=scale, Detail=detail, Distortion=distortion)[0]

    def bricks(self, position: Any, width: float, height: float, offset: float, joint: float) -> tuple[Any, Any]:
        """A number 0-1 for each brick, and 1 in the joints between them; lengths in scene units."""
        outputs = self.add(
            "TexBrick",
            {"offset": offset},
            Vector=position,
            Color1=(0.0, 0.0, 0.0, 1.0),
            Color2=(1.0, 1.0, 1.0, 1.0),
            Mortar=(0.5, 0.5, 0.5, 1.0),
            Scale=1.0,
            Mortar_Size=joint,
            Mortar_Smooth=0.3,
            Brick_Width=width,
            Row_Height=height,
        )
        return outputs[0], outputs[1]


FADED = (14.0, 70.0)  # scene units from the camera where a pattern begins to fade into its mean colour, and has
BLADE, THREAD = 0.019, 0.045  # scene units: widths of grass and cloth, which do not grow with the pattern


#: Of a pattern: its colour, and its height in scene units times `_RELIEF`.
_Drawn = tuple[Any, Any]


def _gravel(nodes: ShaderNodes, position: Any, ground: Ground) -> _Drawn:
    settings = {"voronoi_dimensions": "2D"}
    cells = nodes.add("TexVoronoi", settings, Vector=position, Scale=1.0 / ground.size, Randomness=0.95)
    shade = nodes.add("SeparateColor", _0=cells["Color"])
    stone = nodes.mix(shade[0], ground.dark, ground.light)
    # Some stones are of the third colour.
    stone = nodes.mix(nodes.between(shade[1], 0.8, 0.85), stone, ground.joint)
    gap = nodes.between(cells["Distance"], 0.42, 0.75)
    dark: Colour = (ground.dark[0] * 0.35, ground.dark[1] * 0.35, ground.dark[2] * 0.35)
    return nodes.mix(gap, stone, dark), nodes.between(cells["Distance"], 0.0, 0.75, 1.0, 0.0)


def _wood(nodes: ShaderNodes, position: Any, ground: Ground) -> _Drawn:
    plank, joint = nodes.bricks(position, 6.0 * ground.size, ground.size, 0.37, 0.012)
    # Each plank is cut from another place of the tree.
    along = nodes.add("CombineXYZ", _0=nodes.math("MULTIPLY", plank, 37.0), _1=nodes.math("MULTIPLY", plank, 11.0))
    sawn = nodes.add("VectorMath", {"operation": "ADD"}, _0=position, _1=along[0])[0]
    grain = nodes.noise(nodes.placed(sawn, (0.5, 9.0)), 1.0, detail=2.0, distortion=0.8)
    share = nodes.math("ADD", nodes.math("MULTIPLY", plank, 0.4), nodes.between(grain, 0.25, 0.75, 0.0, 0.6))
    wood = nodes.mix(share, ground.dark, ground.light)
    return nodes.mix(joint, wood, ground.joint), nodes.math("SUBTRACT", nodes.math("MULTIPLY", grain, 0.15), joint)


def _tiles(nodes: ShaderNodes, position: Any, ground: Ground) -> _Drawn:
    tile, joint = nodes.bricks(position, ground.size, ground.size, 0.0, 0.02)
    cloud = nodes.noise(position, 2.5, detail=3.0, distortion=1.2)
    share = nodes.math("ADD", nodes.math("MULTIPLY", tile, 0.5), nodes.between(cloud, 0.25, 0.75, 0.0, 0.5))
    return nodes.mix(joint, nodes.mix(share, ground.dark, ground.light), ground.joint), nodes.math("SUBTRACT", 1, joint)


def _cloth(nodes: ShaderNodes, position: Any, ground: Ground) -> _Drawn:
    x, y, _ = nodes.add("SeparateXYZ", _0=position)
    colours = []
    for across in (x, y):
        # A wide band and a narrow line in each repeat, one way in the warp and one in the weft.
        place = nodes.math("FRACT", nodes.math("DIVIDE", across, ground.size))
        wide = nodes.between(nodes.math("PINGPONG", place, 0.5), 0.24, 0.26)
        narrow = nodes.between(nodes.math("ABSOLUTE", nodes.math("SUBTRACT", place, 0.12)), 0.03, 0.045)
        colours.append(nodes.mix(narrow, ground.joint, nodes.mix(wide, ground.light, ground.dark)))
    turns = 2.0 * math.pi / THREAD
    warp, weft = (nodes.math("SINE", nodes.math("MULTIPLY", across, turns)) for across in (x, y))
    over = nodes.math("MULTIPLY", warp, weft)
    folds = nodes.noise(position, 0.7, detail=1.0)
    colour = nodes.mix(nodes.between(over, -0.6, 0.6, 0.25, 0.75), colours[0], colours[1])
    threads = nodes.math("MULTIPLY", nodes.math("ADD", over, 1.0), 0.12)
    return colour, nodes.math("ADD", nodes.math("MULTIPLY", folds, 3.0), threads)


def _grass(nodes: ShaderNodes, position: Any, ground: Ground) -> _Drawn:
    # Blades lie two ways; both bend alike, which is cheaper than bending each.
    bent = nodes.add("TexNoise", {"noise_dimensions": "2D"}, Vector=position, Scale=4.0, Detail=0.0)["Color"]
    swayed = nodes.add("VectorMath", {"operation": "MULTIPLY_ADD"}, _0=bent, _1=(0.05, 0.05, 0.0), _2=position)[0]
    layers = [nodes.noise(nodes.placed(swayed, (0.17, 1.0), turn), 1.0 / BLADE) for turn in (0.4, 1.3)]
    height = nodes.math("MAXIMUM", *layers)
    tall = nodes.between(height, 0.45, 0.8)
    # Patches of another green, as dark in their gaps as the rest: a lighter veil over both looked like mist.
    patches = nodes.between(nodes.noise(position, 1.0 / ground.size, detail=1.0), 0.4, 0.7)
    return nodes.mix(tall, ground.dark, nodes.mix(patches, ground.light, ground.joint)), tall


_PATTERNS: dict[Material, Callable[[ShaderNodes, Any, Ground], _Drawn]] = {
    "gravel": _gravel,
    "wood": _wood,
    "tiles": _tiles,
    "cloth": _cloth,
    "grass": _grass,
}
#: What shines mirrors a changed thing far around it, and the pair is rejected for it after both are rendered.
_ROUGHNESS: dict[Material, float] = {"gravel": 0.85, "wood": 0.55, "tiles": 0.6, "cloth": 0.95, "grass": 0.8}
_SPECULAR: dict[Material, float] = {"gravel": 0.2, "wood": 0.25, "tiles": 0.15, "cloth": 0.05, "grass": 0.15}
#: Height of the relief, scene units; 0 has none. A bump draws the pattern three times more: with one, a picture of
#: grass took four times as long as one of a plain floor.
_RELIEF: dict[Material, float] = {"gravel": 0.05, "wood": 0.012, "tiles": 0.01, "cloth": 0.03, "grass": 0.0}


def roughen(nodes: ShaderNodes, position: Any) -> tuple[Any, Any]:
    """A grain around 1 to multiply a floor's colour by, and the bump that it makes."""
    grain = nodes.noise(position, 11.0, detail=3.0)
    bump = nodes.add("Bump", Height=grain, Distance=0.03, Strength=0.6)
    return nodes.between(grain, 0.2, 0.8, 0.75, 1.25), bump[0]


def new_material(bpy: Any, ground: Ground) -> Any:
    """Blender's material for a ground; the caller removes it."""
    material = bpy.data.materials.new(ground.material)
    material.use_nodes = True
    nodes = ShaderNodes(material.node_tree)
    surface = material.node_tree.nodes["Principled BSDF"]
    where = nodes.add("TexCoord")["Object"]
    shifted = nodes.add("Mapping", _0=where, Location=(*ground.shift, 0.0))[0]
    turned = nodes.placed(shifted, (1.0, 1.0), ground.turn)
    colour, height = _PATTERNS[ground.material](nodes, turned, ground)
    mean = nodes.mix(0.5, ground.light, ground.dark)
    far = nodes.between(nodes.add("CameraData")["View Z Depth"], *FADED)
    links = material.node_tree.links
    links.new(nodes.mix(far, colour, mean), surface.inputs["Base Color"])
    if relief := _RELIEF[ground.material]:
        near = nodes.math("SUBTRACT", 1.0, far)
        bump = nodes.add("Bump", Height=height, Distance=relief, Strength=near)
        links.new(bump[0], surface.inputs["Normal"])
    surface.inputs["Roughness"].default_value = _ROUGHNESS[ground.material]
    surface.inputs["Specular IOR Level"].default_value = _SPECULAR[ground.material]
    return material
