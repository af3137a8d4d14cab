"""What a recipe needs on this machine, looked for before any work; what twinset draws itself is drawn."""

from __future__ import annotations

from pathlib import Path

from manifests.errors import WrongUse
from manifests.locations import PROCEDURAL, is_miniature, model_name
from manifests.recipe import Recipe
from manifests.source_settings import Kubric, StableDiffusion


def check_inputs(recipe: Recipe, annotations: bool = True, media: bool = True) -> None:
    """Fail before any work when an input of the recipe is absent; draws the miniature where the recipe asks for it.

    annotations: whether those are needed, as in a plan; media: whether the media folders are, as for shards.
    """
    for name, subset in recipe.subsets.items():
        source = subset.source
        if isinstance(source, Kubric):
            _check_assets(f"subsets.{name}.source", source)
            continue
        if isinstance(source, StableDiffusion):
            if media:
                _check_models(f"subsets.{name}.source", source)
            continue
        if is_miniature(source.annotations) or is_miniature(source.media):
            from generators import miniature  # it draws with libraries that a plan of other data does not need

            miniature.ensure()
        if not source.annotations.is_file() and annotations:
            key = f"subsets.{name}.source.annotations"
            raise WrongUse(f"{key}: there is no file {source.annotations}; name it with --set {key}=FILE")
        if media and not source.media.is_dir():
            key = f"subsets.{name}.source.media"
            raise WrongUse(f"{key}: there is no folder {source.media}; name it with --set {key}=FOLDER")


def _check_assets(key: str, source: Kubric) -> None:
    if source.assets == PROCEDURAL:
        from generators import procedural_assets

        procedural_assets.ensure()
    elif source.media_root is not None and not Path(source.manifest).is_file():
        raise WrongUse(
            f"{key}.assets: there is no file {source.manifest}; name a manifest with --set {key}.assets=FILE"
        )
    if source.backgrounds is not None and not source.backgrounds.is_dir():
        raise WrongUse(f"{key}.backgrounds: there is no folder {source.backgrounds}; correct it or leave it out")


def _check_models(key: str, source: StableDiffusion) -> None:
    from generators.edited_pairs.scorer_files import scorer_folder
    from generators.prompt_to_prompt.model_files import ModelMissing, model_folder

    for name, find in (("model", model_folder), ("scorer", scorer_folder)):
        model = getattr(source, name)
        try:
            if model is not None:
                find(model_name(model))
        except ModelMissing as error:
            raise WrongUse(f"{key}.{name}: {error}") from error
