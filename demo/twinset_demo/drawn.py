"""Folders that the demo draws at first use: what recipes call ``miniature:…`` and ``procedural:…``."""

from collections.abc import Iterator
from pathlib import Path

from twinset.contracts.locations import DrawnFolder


def _paint(folder: Path) -> None:
    from twinset.models.device import check_opencv

    check_opencv("the demo's miniature")
    from twinset_demo.miniature import paint  # it draws with libraries that a plan does not need

    paint(folder)


def _build(folder: Path) -> None:
    from twinset.models.device import check_installed, check_opencv

    check_installed("the demo's assets", ("trimesh",), "render")
    check_opencv("the demo's assets")
    from twinset_demo.procedural_assets import build

    build(folder)


def _assets() -> Iterator[str]:
    from twinset_demo.procedural_assets import files

    yield from files()


#: Some fifteen seconds. The version is raised with every change of what is painted.
MINIATURE = DrawnFolder("miniature", 6, _paint, title="twinset-demo's drawn miniature")
#: Some ten seconds. The version is raised with every change of an asset.
PROCEDURAL = DrawnFolder("procedural-assets", 4, _build, "CC0-1.0", _assets)
