"""Assets of nouns in colours, modelled when they are first asked for."""

import json
import tempfile
from pathlib import Path

import numpy as np

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.parts import UPRIGHT, Model
from twinset_demo.kubric_grammar.grammar import SCALES, Phrase
from twinset_demo.procedural_assets.archive import archive


class Workshop:
    """A shelf that is empty at first: each asset is modelled and packed once a process, in 0.1 s.

    Drawing them all beforehand, 29 nouns in 12 colours, would cost a minute for what a build may not use.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="workshop-")
        folder = Path(self._folder.name)
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps({"name": "painted", "version": "1", "assets": {}}), "utf-8")
        self.shelf = AssetShelf(manifest, folder)

    def model(self, phrase: Phrase, size: str | None = None) -> Model:
        """A phrase's object as it stands in scenes. size: in place of the phrase's own."""
        asset = f"{phrase.colour}-{phrase.noun.names[0].replace(' ', '-')}"
        if asset not in self.shelf.entries:
            entry, packed = archive(asset, asset.replace("-", " "), "Painted", phrase.noun.model(phrase.colour))
            Path(self._folder.name, f"{asset}.tar.gz").write_bytes(packed)
            self.shelf.entries[asset] = entry
        vertices, faces = self.shelf.mesh(asset)
        points = vertices.astype(np.float64)
        longest = phrase.noun.extent * SCALES[phrase.size if size is None else size]
        scale = longest / float(np.ptp(points, axis=0).max())
        return Model(asset, scale, UPRIGHT["z"], points * scale, faces)
