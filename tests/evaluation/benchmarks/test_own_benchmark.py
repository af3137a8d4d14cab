"""A benchmark of one's own, as docs/extending.md has it."""

import re
from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_files import picture, put
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import Pairs
from twinset.evaluation.examples import LeftOut, Matching

DOCS = Path(__file__).parents[3] / "docs/extending.md"
HEADER = "id,photo,caption,foil,kind"


@pytest.fixture
def cups() -> type[Pairs]:
    section = DOCS.read_text("utf-8").partition("## A benchmark of your own")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    assert len(re.findall(r"^    \S", code, re.MULTILINE)) <= 15
    names: dict[str, type[Pairs]] = {}
    exec(code, names)
    return names["Cups"]


def written(folder: Path, *rows: str) -> Path:
    put(folder / "images" / "a.jpg", picture(1))
    put(folder / "test.csv", "\n".join([HEADER, *rows, ""]))
    return folder


def test_it_is_read_by_its_declaration(cups: type[Pairs], tmp_path: Path) -> None:
    rows = ("x,a.jpg,a red cup,a blue cup,colour", "y,gone.jpg,a,b,", "z,a.jpg,a cup,a cup,", "w,a.jpg,a cup,a jug,")
    first, absent, same, last = cups(written(tmp_path, *rows)).examples()
    assert isinstance(first, Matching) and first.images[0].read() == picture(1)
    assert (first.key, first.category, first.group) == ("test/x", "colour", "a")
    assert first.captions == ("a red cup", "a blue cup")
    assert isinstance(absent, LeftOut) and (absent.where, absent.reason) == (
        f"{tmp_path}/test.csv line 3: gone.jpg", "missing image",
    )  # fmt: skip
    assert isinstance(same, LeftOut) and same.reason == "both captions are the same"
    assert isinstance(last, Matching) and last.category == "test"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,a.jpg,a red cup,,colour", r"test\.csv line 3, field 'foil': .*; fetch the file again"),
        ("x,,a red cup,a jug,colour", r"test\.csv line 3, field 'photo': .*; fetch the file again"),
        ("x,../../a.jpg,a red cup,a jug,colour", r"test\.csv line 3: '\.\./\.\./a\.jpg' leaves the folder"),
        ("x,a.jpg,a red cup", r"test\.csv line 3: wrong-columns; fetch the file again"),
        ("v,a.jpg,a red cup,a jug,", "two examples of Cups .* have the key 'test/v'; remove one"),
    ],
)
def test_an_odd_row_is_refused_with_its_place(cups: type[Pairs], tmp_path: Path, row: str, words: str) -> None:
    benchmark = cups(written(tmp_path, "v,a.jpg,a cup,a jug,", row))
    with pytest.raises(WrongUse, match=words):
        list(benchmark.examples())
