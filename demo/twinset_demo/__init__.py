"""Sample data, small models and the recipe with which twinset shows and tests itself."""

from pathlib import Path

HERE = Path(__file__).parent
#: Folder of the recipes that the entry points name.
RECIPES = HERE / "recipes"
#: Folders that recipes name ``miniature:…`` and ``procedural:…``.
MINIATURE = HERE / "samples" / "miniature"
PROCEDURAL = HERE / "samples" / "procedural"
