"""Parts from outside import what docs/extending.md lists: the demo, the foreign package, the examples of the docs."""

import ast
import re
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "docs/extending.md").read_text("utf-8").split("## Modules that a part may import")[1].split("\n## ")[0]
)
NAMES = re.findall(r"[\w.*]+", "".join(re.findall(r"^    .*\n", SECTION, re.MULTILINE)))
MODULES = ["twinset", *(f"twinset.{name}" for name in NAMES)]
GROUPS = {name for line in re.findall(r"^- (.*?):", SECTION, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def imported(text: str) -> set[str]:
    """Modules of twinset that a file imports; in ``from twinset.a import b`` b may be a module too."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        found |= {name for name in names if name.split(".")[0] == "twinset"}
    return found


def test_parts_from_outside_import_documented_modules_alone() -> None:
    files = [*ROOT.glob("demo/twinset_demo/**/*.py"), *ROOT.glob("extras/twinset_extras/**/*.py")]
    files += [*ROOT.glob("tests/foreign/**/*.py")]
    found = {str(path.relative_to(ROOT)): imported(path.read_text("utf-8")) for path in files}
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")):
        found[path.name] = {one for block in BLOCK.findall(path.read_text("utf-8")) for one in imported(block)}
    others = {
        (path, module)
        for path, modules in found.items()
        for module in modules
        if not any(fnmatch(module, one) for one in MODULES)
    }
    assert not others
    unused = {one for one in MODULES if not any(fnmatch(module, one) for some in found.values() for module in some)}
    assert unused == {"twinset.generators.video.frame_pairs"}  # the text names it


@pytest.mark.parametrize("module", [one.removesuffix(".*") for one in MODULES])
def test_a_documented_module_is_there(module: str) -> None:
    import_module(module)


def test_every_group_of_entry_points_is_documented() -> None:
    rooms = {path.name: path for path in (ROOT / "src/twinset").glob("*/")}
    text = "".join(path.read_text("utf-8") for room in rooms.values() for path in room.glob("**/*.py"))
    groups = {*re.findall(r'"twinset\.(\w+)"', text)}
    groups -= {"toml"}  # the user's file
    groups |= {"eval_commands", "train_commands"}  # of the two groups of commands
    assert "filters" in GROUPS and GROUPS - {"filters"} == groups - rooms.keys()
