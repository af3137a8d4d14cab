"""The flow ``build-eqben``: plans, has shards made here or in work pools, finalises and describes the dataset."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.building import build_subsets
from flows.runners import Runner
from manifests.recipe import load_recipe


@flow(name="build-eqben", persist_result=False)
def build_eqben(
    recipe: str,
    out: str,
    only: list[str] | None = None,
    settings: list[str] | None = None,
    workers: int = 0,
    runner: Runner | None = None,
    pools: bool = False,
    shards_a_run: int = 100,
) -> dict[str, Any]:
    """Build the subsets of a recipe; whatever is already done stays. Returns ``{"subsets": {NAME: counts}}``.

    recipe: name of a shipped recipe or path of a YAML file. out: folder or fsspec URL. only: subsets (default all).
    settings: ``KEY.PATH=VALUE`` overrides. workers: shards at a time (0: one a core, or as the pool's deployment says).
    runner: threads where not given. pools: whether shards go to the deployments ``build-shards/POOL`` of each subset's
    pool, ``shards_a_run`` shards a flow run, or are made here.
    Raises `WrongUse` before any work, `BuildFailed` after all that could be done was done.
    """
    loaded = load_recipe(recipe, settings or ()).only(only or ())
    return build_subsets(loaded, out, workers, runner, pools, shards_a_run)
