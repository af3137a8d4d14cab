"""What a recipe needs on this machine, looked for before any work; what twinset draws itself is drawn."""

from __future__ import annotations

import os
from pathlib import Path

from manifests.errors import WrongUse
from manifests.filter_settings import DirectionalSimilarity
from manifests.genecis_settings import AttributeTemplates, Triplets
from manifests.locations import PROCEDURAL, is_miniature, model_name
from manifests.recipe import Recipe
from manifests.source_settings import Kubric, StableDiffusion

CLUSTERS = {"ray": "RAY_ADDRESS", "dask": "DASK_SCHEDULER_ADDRESS"}  # the address of each task runner's cluster


def check_inputs(recipe: Recipe, annotations: bool = True, media: bool = True, models: bool = True) -> None:
    """Fail before any work when an input of the recipe is absent; draws the miniature where the recipe asks for it.

    annotations: whether those are needed, as in a plan; media: whether the media folders are, as for shards. models:
    whether models are, as for shards, and for a plan that is written, which names their weights.
    """
    for name, subset in recipe.subsets.items():
        source = subset.source
        for number, chosen in enumerate(subset.filters):
            if isinstance(chosen, DirectionalSimilarity) and models:
                _check_clip(f"subsets.{name}.filters.{number}", chosen)
        if isinstance(source, Kubric):
            _check_assets(f"subsets.{name}.source", source)
            continue
        if isinstance(source, StableDiffusion):
            if models:
                _check_models(f"subsets.{name}.source", source)
            continue
        if isinstance(source, Triplets):
            _check_triplets(f"subsets.{name}.source", source, annotations, media)
            continue
        files = {"annotations": source.annotations}
        if isinstance(source, AttributeTemplates):
            files["taxonomy"] = source.taxonomy
        _ensure_miniature(*files.values(), source.media)
        for setting, file in files.items():
            if not file.is_file() and annotations:
                key = f"subsets.{name}.source.{setting}"
                raise WrongUse(f"{key}: there is no file {file}; name it with --set {key}=FILE")
        if media and not source.media.is_dir():
            key = f"subsets.{name}.source.media"
            raise WrongUse(f"{key}: there is no folder {source.media}; name it with --set {key}=FOLDER")


def check_devices(recipe: Recipe, runner: str) -> None:
    """Fail before any work when a build that makes its shards on this machine needs a GPU for a subset and finds none.

    runner: of `flows.runners`. Workers of a cluster say it themselves, and those of a work pool.
    """
    if os.environ.get(CLUSTERS.get(runner, "")):
        return
    for name, subset in recipe.subsets.items():
        if isinstance(subset.source, StableDiffusion) and subset.source.device == "gpu":
            try:
                from shards.models.device import check_gpu

                check_gpu()
            except WrongUse as error:
                raise WrongUse(f"subsets.{name}.{error}") from error
            except ImportError as error:
                raise WrongUse(f"subsets.{name}.source.device: {error}; install the extra `models`") from error


def _ensure_miniature(*places: Path) -> None:
    if any(is_miniature(place) for place in places):
        from generators.builtin import miniature  # it draws with libraries that a plan of other data does not need

        miniature.ensure()


def _check_assets(key: str, source: Kubric) -> None:
    if source.assets == PROCEDURAL:
        from generators.builtin import procedural_assets

        procedural_assets.ensure()
    elif source.media_root is not None and not Path(source.manifest).is_file():
        raise WrongUse(
            f"{key}.assets: there is no file {source.manifest}; name a manifest with --set {key}.assets=FILE"
        )
    if source.backgrounds is not None and not source.backgrounds.is_dir():
        raise WrongUse(f"{key}.backgrounds: there is no folder {source.backgrounds}; correct it or leave it out")


def _check_models(key: str, source: StableDiffusion) -> None:
    from generators.prompt_to_prompt.model_files import model_folder
    from shards.models.files import ModelMissing

    try:
        model_folder(model_name(source.model))
    except ModelMissing as error:
        raise WrongUse(f"{key}.model: {error}") from error


def _check_clip(key: str, chosen: DirectionalSimilarity) -> None:
    from filters.directional_similarity import clip_folder
    from shards.models.files import ModelMissing

    try:
        clip_folder(chosen.model)
    except ModelMissing as error:
        raise WrongUse(f"{key}.model: {error}") from error


def _check_triplets(key: str, source: Triplets, annotations: bool, media: bool) -> None:
    from generators.triplets.captions import check_captions, check_ratings

    _ensure_miniature(*source.captions, source.concreteness, *([source.images] if source.images is not None else []))
    if annotations:
        if not source.concreteness.is_file():
            raise WrongUse(
                f"{key}.concreteness: there is no file {source.concreteness}; name the ratings of Brysbaert et al. "
                f"(2014) with --set {key}.concreteness=FILE"
            )
        for setting, check in (("captions", check_captions), ("concreteness", check_ratings)):
            try:
                check(source)
            except WrongUse as error:
                raise WrongUse(f"{key}.{setting}: {error}") from error
    if media and source.images is not None and not source.images.is_dir():
        raise WrongUse(
            f"{key}.images: there is no folder {source.images}; name it with --set {key}.images=FOLDER, or make an "
            f"index alone with --set {key}.images=null"
        )
