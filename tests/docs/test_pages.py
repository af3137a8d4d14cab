"""Pages agree with the tree: links, names of files and modules, and docs/reference.md."""

import ast
import importlib.util
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)


def tracked() -> list[str]:
    """Markdown files of the checkout, new ones included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sorted(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page, of equal ones to the first."""
    headings = _HEADING.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken(page: Path, text: str) -> list[str]:
    """The links of a page that lead to no file, or to no heading of one."""
    wrong = []
    for link in _LINK.findall(_CODE.sub("", text)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        place, _, heading = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif heading and target.suffix == ".md":
            named = text if target == page else target.read_text("utf-8")
            if heading not in anchors(named):
                wrong.append(f"{link}: no such heading")
    return wrong


@pytest.mark.parametrize("name", tracked())
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    assert broken(page, page.read_text("utf-8")) == []


def test_pages_that_the_code_names_exist() -> None:
    """Messages and docstrings send people to ``docs/NAME.md``."""
    named = subprocess.run(
        ["git", "grep", "-ohE", r"docs/[a-z_/]+\.md", "--", "*.py", "*.yaml", "*.toml", "*.j2", "*.html"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sorted({page for page in named.stdout.split() if not (ROOT / page).is_file()}) == []


@pytest.mark.parametrize("name", tracked())
def test_files_of_this_tree_that_a_page_names_exist(name: str) -> None:
    rooms = "|".join(sorted(path.name for path in (ROOT / "src/twinset").iterdir() if path.is_dir()))
    named = re.findall(rf"`((?:{rooms}|demo|docker|tests)/[\w/.-]+)`", (ROOT / name).read_text("utf-8"))
    forms = {"docker/.env", "src/twinset/cards/templates/NAME.md.j2"}  # what the reader makes
    assert [path for path in named if path not in forms and not (ROOT / path).exists()] == []


SECTION = (
    (ROOT / "docs/extending.md").read_text("utf-8").split("## Modules that a part may import")[1].split("\n## ")[0]
)
NAMES = re.findall(r"[\w.*]+", "".join(re.findall(r"^    .*\n", SECTION, re.MULTILINE)))
MODULES = ["twinset", *(f"twinset.{name}" for name in NAMES)]
GROUPS = {name for line in re.findall(r"^- (.*?):", SECTION, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def imported(text: str) -> set[str]:
    """Modules of twinset that a file imports; in ``from twinset.a import b`` b may be a module too."""
    modules = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(node.module or "")
    return {name for name in modules if name.split(".")[0] == "twinset"}


def test_parts_from_outside_import_documented_modules_alone() -> None:
    places = ("demo/twinset_demo", "extras/twinset_extras", "tests/foreign")
    used = {path: imported(path.read_text("utf-8")) for place in places for path in ROOT.glob(f"{place}/**/*.py")}
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")):
        used[path] = {module for block in BLOCK.findall(path.read_text("utf-8")) for module in imported(block)}
    known = {module for modules in used.values() for module in modules}
    strange = {module for module in known if not any(fnmatch(module, form) for form in MODULES)}
    assert {path: modules & strange for path, modules in used.items() if modules & strange} == {}
    unused = {form for form in MODULES if not any(fnmatch(module, form) for module in known)}
    assert unused == {"twinset.generators.video.frame_pairs"}  # the text names it


def test_every_group_of_entry_points_is_documented() -> None:
    rooms = [*(ROOT / "src/twinset").glob("*/")]
    text = "".join(path.read_text("utf-8") for room in rooms for path in room.glob("**/*.py"))
    groups = {*re.findall(r'"twinset\.(\w+)"', text)}
    groups -= {"toml"}  # the user's file
    groups |= {"eval_commands", "train_commands"}  # of the two groups of commands
    assert "filters" in GROUPS and GROUPS - {"filters"} == groups - {room.name for room in rooms}


def test_the_reference_is_that_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs/reference.py")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(reference := importlib.util.module_from_spec(spec))
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run `make reference` and commit what it writes"
