"""The rooms of the house: which imports which, and that Prefect stays in one."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
#: From the ground up: a room imports itself and what lies on lower levels.
LEVELS = (
    ("contracts",),
    ("shards",),
    ("models",),
    ("generators", "filters"),
    ("cards",),
    ("stages", "evaluation"),
    ("training", "review"),
    ("twinset",),
    ("flows",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
PACKAGE = CHECKOUT / "src/twinset"
MODULES = [*sorted(path for room in LEVEL for path in (PACKAGE / room).rglob("*.py")), PACKAGE / "__init__.py"]
#: Libraries that take a noticeable part of a second to import, and Prefect.
HEAVY = {
    *("av", "bpy", "cv2", "diffusers", "dlib", "face_recognition", "matplotlib"),
    *("pandas", "prefect", "pybullet", "spacy", "torch", "transformers"),
}


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Full names of the modules that a file imports, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} line {node.lineno}: write the full name of the module"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names += [str(argument.value) for argument in node.args[:1] if isinstance(argument, ast.Constant)]
    return tuple(names)


def room_named(module: str) -> str:
    """The room of a module by its name: ``twinset`` for what the package itself offers."""
    first, _, rest = module.partition(".")
    second = rest.partition(".")[0]
    return "" if first != "twinset" else second if second in LEVEL else "twinset"


def room_of(path: Path) -> str:
    return "twinset" if path.parent == PACKAGE else path.relative_to(PACKAGE).parts[0]


def is_prefect(module: str) -> bool:
    return module.partition(".")[0] in ("prefect", "prefect_ray", "prefect_dask")


@pytest.mark.parametrize("room", LEVEL)
def test_imports_point_one_way(room: str) -> None:
    above = {name for name in LEVEL if name != room and LEVEL[name] >= LEVEL[room]}
    for path in MODULES:
        if room_of(path) == room:
            assert {name for name in imported(path) if room_named(name) in above} == set(), path


def test_only_flows_imports_prefect() -> None:
    importing = {room_of(path) for path in MODULES if any(map(is_prefect, imported(path)))}
    assert importing == {"flows"}


def test_no_two_files_import_each_other() -> None:
    """... nor by others: names that a file imports lead to the longest module that they begin with."""
    imports = {
        ".".join(("twinset", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): imported(
            path
        )
        for path in MODULES
        if room_of(path) != "twinset"
    }

    def module(name: str) -> str:
        while name and name not in imports:
            name = name.rpartition(".")[0]
        return name

    graph = {importer: {*map(module, names)} - {importer, ""} for importer, names in imports.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def test_every_package_is_a_room_and_four_folders_stand_at_the_top() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == {*LEVEL} - {"twinset"}
    links = {path.name: path.readlink().as_posix() for path in PACKAGE.iterdir() if path.is_symlink()}
    assert links == {room: f"../../{room}" for room in ("flows", "generators", "filters", "manifests")}
    assert not [*(CHECKOUT / "manifests").rglob("*.py")]
    assert not (CHECKOUT / "docker" / "__init__.py").exists(), "it would hide the Docker SDK that Prefect imports"


def test_no_room_is_imported_without_its_first_name() -> None:
    """``import generators`` from the checkout's folder would load every class a second time."""
    rooms = "|".join({*LEVEL} - {"twinset"})
    bare = re.compile(rf"^\s*(?:import|from) (?:{rooms})\b", re.MULTILINE)
    folders = ("src", "flows", "generators", "filters", "demo", "extras", "tests", "docker")
    paths = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    assert [path for path in paths if bare.search(path.read_text("utf-8"))] == []


LOAD = """
import json, sys, twinset
from twinset.contracts.parts import FILTERS
from twinset.contracts.source import SOURCES

for name in ("demo", "eqben", "genecis"):
    twinset.load_recipe(name)
assert len([registry.find(kind) for registry in (SOURCES, FILTERS) for kind in registry.kinds()]) > 10
print(json.dumps(sorted(sys.modules)))
"""


def test_loading_recipes_and_kinds_imports_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in json.loads(done.stdout)} & HEAVY == set()


def test_the_product_does_not_know_the_demo_or_the_extras() -> None:
    known = {"twinset_demo", "twinset_extras"}
    assert [path for path in MODULES if {name.partition(".")[0] for name in imported(path)} & known] == []
