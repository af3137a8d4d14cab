"""The rooms of the house: which imports which, and that Prefect stays in one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
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
VAGUE = {"utils", "util", "common", "helpers", "helper", "core", "misc"}
#: Libraries that take a noticeable part of a second to import, and Prefect.
HEAVY = {
    "av",
    "bpy",
    "cv2",
    "diffusers",
    "dlib",
    "face_recognition",
    "matplotlib",
    "pandas",
    "prefect",
    "pybullet",
    "spacy",
    "torch",
    "transformers",
}


def imported(source: str) -> Iterator[str]:
    """Full names of the modules that Python source imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the full name of the module"
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (one.value for one in node.args[:1] if isinstance(one, ast.Constant))


def against_the_arrows(room: str, source: str) -> list[str]:
    """What a module of a room imports from rooms that do not lie below it."""
    names = [(name, room_named(name)) for name in imported(source)]
    return [name for name, other in names if other in LEVEL and other != room and LEVEL[other] >= LEVEL[room]]


def room_named(module: str) -> str:
    """The room of a module by its name: ``twinset`` for what the package itself offers."""
    first, _, rest = module.partition(".")
    second = rest.partition(".")[0]
    return "" if first != "twinset" else second if second in LEVEL else "twinset"


def room_of(path: Path) -> str:
    return "twinset" if path.parent == PACKAGE else path.relative_to(PACKAGE).parts[0]


def is_prefect(module: str) -> bool:
    return module.partition(".")[0] in ("prefect", "prefect_ray", "prefect_dask")


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("room", sorted({room_of(path) for path in MODULES}))
def test_imports_point_one_way(room: str) -> None:
    sources = {named(path): path.read_text("utf-8") for path in MODULES if room_of(path) == room}
    assert {path: wrong for path, source in sources.items() if (wrong := against_the_arrows(room, source))} == {}


def test_only_flows_imports_prefect() -> None:
    outside = [path for path in MODULES if room_of(path) != "flows"]
    assert {named(path) for path in outside if any(map(is_prefect, imported(path.read_text("utf-8"))))} == set()
    assert any(is_prefect(name) for name in imported((CHECKOUT / "flows" / "build.py").read_text("utf-8")))


def test_an_import_against_the_arrows_is_found_wherever_it_stands() -> None:
    lazily = "def work():\n    from twinset.stages.build import build\n"
    assert against_the_arrows("shards", lazily) == ["twinset.stages.build.build"]
    assert against_the_arrows("generators", "import twinset.filters.faces") == ["twinset.filters.faces"]
    assert against_the_arrows("cards", "importlib.import_module('twinset.flows.build')") == ["twinset.flows.build"]
    assert against_the_arrows("cli", lazily) == []
    assert [*map(is_prefect, imported("if True:\n    import prefect.client as client"))] == [True]


def circles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Modules that reach each other by imports: strongly connected components of more than one, sorted.

    imports: by module, names that it imports; a name that is no module is of the longest module that it begins with.
    """

    def module(name: str) -> str:
        while name and name not in imports:
            name = name.rpartition(".")[0]
        return name

    def reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            new = edges[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    forward = {one: {module(name) for name in names} - {one, ""} for one, names in imports.items()}
    backward: dict[str, set[str]] = {one: set() for one in imports}
    for one, others in forward.items():
        for other in others:
            backward[other].add(one)
    loops = {tuple(sorted(reached(one, forward) & reached(one, backward))) for one in imports}
    return [list(loop) for loop in sorted(loops) if loop]


def test_no_two_files_import_each_other() -> None:
    product = {
        ".".join(("twinset", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in MODULES
        if room_of(path) != "twinset"
    }
    assert circles({name: [*imported(path.read_text("utf-8"))] for name, path in product.items()}) == []


def test_a_circle_of_imports_is_found_wherever_they_stand() -> None:
    lazily = [*imported("def open():\n    if TYPE_CHECKING:\n        from house.worker import Worker\n")]
    imports = {"house": [], "house.settings": lazily, "house.worker": ["house.words.said"], "house.cellar": ["os"]}
    assert circles({**imports, "house.words": []}) == []
    assert circles({**imports, "house.words": ["house.settings.Settings"]}) == [
        ["house.settings", "house.words", "house.worker"]
    ]


def test_names_of_modules_say_what_is_in_them() -> None:
    names = [path.relative_to(PACKAGE) for path in MODULES]
    assert [name.as_posix() for name in names if VAGUE & {*name.with_suffix("").parts}] == []


def test_every_package_is_a_room_and_four_folders_stand_at_the_top() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == {*LEVEL} - {"twinset"}
    links = {path.name: path.readlink().as_posix() for path in PACKAGE.iterdir() if path.is_symlink()}
    assert links == {room: f"../../{room}" for room in ("flows", "generators", "filters", "manifests")}
    assert not [*(CHECKOUT / "manifests").rglob("*.py")]
    assert not (CHECKOUT / "docker" / "__init__.py").exists(), "it would hide the Docker SDK that Prefect imports"


def test_no_room_is_imported_without_its_first_name() -> None:
    """``import generators`` from the checkout's folder would load every class a second time."""
    places = (
        path
        for folder in ("src", "flows", "generators", "filters", "demo", "extras", "tests", "docker")
        for path in (CHECKOUT / folder).rglob("*.py")
    )
    bare = {*LEVEL} - {"twinset"}
    wrong = {
        str(path): found
        for path in places
        if (found := [name for name in imported(path.read_text("utf-8")) if name.partition(".")[0] in bare])
    }
    assert wrong == {}


@pytest.mark.parametrize("recipe", ["demo", "eqben", "genecis"])
def test_loading_a_recipe_imports_no_heavy_library(recipe: str) -> None:
    code = f"import json, sys, twinset; twinset.load_recipe({recipe!r}); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in json.loads(done.stdout)} & HEAVY == set()


def test_every_kind_of_source_and_filter_can_be_looked_up_without_a_heavy_library() -> None:
    code = """
import json, sys
from twinset.contracts.parts import FILTERS
from twinset.contracts.source import SOURCES
found = [registry.find(kind).__name__ for registry in (SOURCES, FILTERS) for kind in registry.kinds()]
print(json.dumps([len(found), sorted(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    kinds, modules = json.loads(done.stdout)
    assert kinds > 10
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()


def test_the_product_does_not_know_the_demo_or_the_extras() -> None:
    known = {"twinset_demo", "twinset_extras"}
    names = {named(path): [*imported(path.read_text("utf-8"))] for path in MODULES}
    assert {path: found for path, found in names.items() if {one.partition(".")[0] for one in found} & known} == {}
