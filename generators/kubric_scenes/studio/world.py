"""What surrounds a scene and lights it from all sides: an even light, a sky, or a background picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from generators.kubric_scenes.scene.parts import View
from generators.kubric_scenes.studio.shader_nodes import ShaderNodes
from manifests.errors import WrongUse

STEEP = 0.55  # exponent of how a sky goes from the horizon to the zenith


class World:
    """Blender's world. It is built again where its kind changes: nodes that are not used cost time too."""

    def __init__(self, bpy: Any) -> None:
        self._bpy = bpy
        self._tree = bpy.context.scene.world.node_tree
        self._settings = bpy.context.scene.world.cycles

    def surround(self, view: View) -> None:
        """Light the scene as a view says."""
        # Skies are smooth: rays find their light as well without a map of it, which costs a second a picture.
        self._settings.sampling_method = "NONE" if view.sky is not None else "AUTOMATIC"
        self._tree.nodes.clear()
        nodes = ShaderNodes(self._tree)
        if view.sky is None:
            colour: Any = (*view.ambient, 1.0)
        else:
            _, _, up = nodes.add("SeparateXYZ", _0=nodes.add("TexCoord")["Generated"])
            height = nodes.math("POWER", nodes.math("MAXIMUM", up, 0.0), STEEP)
            colour = nodes.mix(height, view.sky.horizon, view.sky.zenith)
        background = nodes.add("Background", Color=colour)
        nodes.add("OutputWorld", Surface=background[0])
