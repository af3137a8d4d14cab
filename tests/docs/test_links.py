"""Links between the pages of this repository lead somewhere."""

import re
import subprocess
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
    """The names that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for heading in _HEADING.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(next(one for n in range(len(found) + 1) if (one := f"{name}-{n}" if n else name) not in found))
    return found


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
    assert sorted({one for one in named.stdout.split() if not (ROOT / one).is_file()}) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `name`, and more\n## A name and more\n", "utf-8")
    good = "[a](there.md) [b](there.md#a-name-and-more-1) [c](https://example.org/x.md) `[d](no.md)`"
    assert broken(tmp_path / "page.md", good) == []
    assert broken(tmp_path / "page.md", "[a](no.md) [b](there.md#other)") == [
        "no.md: no such file",
        "there.md#other: no such heading",
    ]


@pytest.mark.parametrize("name", tracked())
def test_files_of_this_tree_that_a_page_names_exist(name: str) -> None:
    rooms = "|".join(sorted(one.name for one in (ROOT / "src/twinset").iterdir() if one.is_dir()))
    named = re.findall(rf"`((?:{rooms}|demo|docker|tests)/[\w/.-]+)`", (ROOT / name).read_text("utf-8"))
    forms = {"docker/.env", "src/twinset/cards/templates/NAME.md.j2"}  # what the reader makes
    assert [one for one in named if one not in forms and not (ROOT / one).exists()] == []
