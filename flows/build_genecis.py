"""The flow ``build-genecis``: scene graphs of captions, triplets mined from them, templates; and then their shards."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.building import build_subsets
from flows.runners import Runner
from manifests.recipe import load_recipe


@flow(name="build-genecis", persist_result=False)
def build_genecis(
    recipe: str,
    out: str,
    only: list[str] | None = None,
    settings: list[str] | None = None,
    workers: int = 0,
    runner: Runner | None = None,
    pools: bool = False,
    shards_a_run: int = 100,
) -> dict[str, Any]:
    """Build the subsets of a recipe; parameters, result and errors are those of `flows.build_eqben.build_eqben`.

    workers: also of the processes that parse captions, which is done in this run, before the plan.
    """
    loaded = load_recipe(recipe, settings or ()).only(only or ())
    return build_subsets(loaded, out, workers, runner, pools, shards_a_run)
