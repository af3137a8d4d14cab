"""Parts for twinset that the papers of EqBen, BiVLC and GeneCIS do not need."""

from pathlib import Path

#: The folder of the recipes.
RECIPES = Path(__file__).with_name("recipes")
