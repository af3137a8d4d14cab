"""Everything that twinset's demo makes itself: pictures, videos, assets, and small models."""

from pathlib import Path

#: Folder of the recipes that the entry points name.
RECIPES = Path(__file__).parent / "recipes"
