"""Where everything lies below OUT. Tars stand alone in a split's folder, so that ``load_dataset`` finds only them.

``subset`` is the home of a stage: the name of a published one, ``_stages/NAME`` of another.
"""

import re

META = "_meta"
RECIPE = "log/recipe.json"


def meta(subset: str, name: str) -> str:
    """A file about a subset, such as ``stage.json``."""
    return f"{subset}/{META}/{name}"


def recipe(subset: str) -> str:
    """The recipe that a stage was last built with, with paths of that machine: beside the data, never published."""
    return meta(subset, RECIPE)


def plan(subset: str, name: str) -> str:
    """A file of a subset's plan."""
    return meta(subset, f"plan/{name}")


def tar_name(split: str, shard: int) -> str:
    """The tar of a shard as indices name it, relative to the subset."""
    return f"{split}/{shard:05d}.tar"


def tar(subset: str, split: str, shard: int) -> str:
    """The samples of a shard; absent when nothing was kept."""
    return f"{subset}/{tar_name(split, shard)}"


def rows(subset: str, shard: int) -> str:
    """The verdicts on a shard's candidates."""
    return meta(subset, f"rows/{shard:05d}.parquet")


def receipt(subset: str, shard: int) -> str:
    """The file whose presence says that a shard is done."""
    return meta(subset, f"receipts/{shard:05d}.json")


def log(subset: str, shard: int) -> str:
    """Host, process and times of a shard's making: beside the data, never part of what must be equal."""
    return meta(subset, f"log/{shard:05d}.json")


def shard_number(name: str, suffix: str) -> int:
    """The number in the name that twinset gives to a shard's file, ``NNNNN.SUFFIX``; -1 of other names."""
    return int(name.removesuffix(f".{suffix}")) if re.fullmatch(rf"\d{{5,}}\.{suffix}", name) else -1
