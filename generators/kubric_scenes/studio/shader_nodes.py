"""Building trees of Blender's shader nodes: one call a node, with what goes into its sockets."""

from typing import Any


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
