"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

from twinset.contracts.recipe.loading import InvalidRecipe, load_recipe, parse_recipe, recipe_from_json, shipped_recipes
from twinset.contracts.recipe.models import STAGES, SUBSET_NAME, Encoding, Recipe, Subset, content_of

__all__ = [
    "STAGES",
    "SUBSET_NAME",
    "Encoding",
    "InvalidRecipe",
    "Recipe",
    "Subset",
    "content_of",
    "load_recipe",
    "parse_recipe",
    "recipe_from_json",
    "shipped_recipes",
]
