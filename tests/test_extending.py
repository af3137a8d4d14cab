"""The worked example of docs/extending.md: its files are taken from the document, installed, and built with.

Attack: a text of others that takes minutes, since a pattern tries all its beginnings with all its ends.

Every pattern and parser of captions, answers and names is fed the worst text of two lengths: eight times
the text may take thirty times as long, and not the 64 times of the square.
`twinset` as a notebook uses it: paths and single names as they come, and errors that are instructions.
"""

import gc
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import twinset
from tests.made_datasets import MadeDataset
from tests.made_recipe import ROOT, install, run_python
from twinset.cards.sheet import mark_difference, words_of
from twinset.contracts.receipt import IndexRecord
from twinset.evaluation.answers.parser import LONGEST, parse
from twinset.filters.captions import MotionWords
from twinset.generators.markdown import cell, plain, short
from twinset.generators.negative_captions.wording import edited
from twinset.generators.video.action_genome import FRAME
from twinset.generators.video.frame_pairs import as_sentence

FILE = re.compile(r"^`([\w./-]+)`[^`]*?:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files of the example, photos for its list, and the package installed into ``installed``."""
    folder = tmp_path_factory.mktemp("before-after")
    text = (ROOT / "docs/extending.md").read_text("utf-8").split("## What a source keeps to")[0]
    for name, content in FILE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    photos = folder / "data/photos"
    photos.mkdir()
    for number, line in enumerate((folder / "data/changes.tsv").read_text().splitlines()[1:]):
        place, change, *_ = line.split("\t")
        # The photo before is the place's own, whatever changes later.
        for name, seed, brighter in ((place, sum(place.encode()), 0), (f"{place}-{change}", number, 60)):
            level = 5 if name == "cellar" else 80
            pixels = np.random.default_rng(seed).integers(level - 5, level + 5, (48, 64, 3), dtype=np.uint8)
            pixels[:, :32] += brighter
            Image.fromarray(pixels).save(photos / f"{name}.png")
    install(folder, ".")
    return folder


def test_it_passes_its_own_test(package: Path) -> None:
    assert "1 passed" in run_python(package, "-m", "pytest", "-q", "--import-mode=importlib", "test_before_after.py")


@pytest.mark.slow
def test_it_is_built_with_in_other_processes(package: Path) -> None:
    build = ["-m", "twinset.cli.main", "build", "recipe.yaml", "--out", "out", "--runner", "processes"]
    run_python(package, *build)
    record = IndexRecord.model_validate_json((package / "out/before-after/_meta/index.json").read_bytes())
    assert (record.planned, record.kept) == (4, 3)
    index = pq.read_table(package / "out/before-after/_meta/index.parquet")
    assert index["group"].to_pylist() == ["bridge", "bridge", "park"]
    (rejected,) = pq.read_table(package / "out/before-after/_meta/rejections.parquet").to_pylist()
    assert (rejected["reason"], rejected["identity"]) == ("dark", '["cellar","lamp"]')
    card = (package / "out/before-after/README.md").read_text()
    assert "Before and After" in card and "@misc{before" in card
    assert "* `before-after 0.1.0`, for source before-after, filter dark\n" in card
    assert "an image is too dark" in card and "lines of a table with another number of columns" in card


MEGABYTE = 1 << 20
CAPTIONS = ("a dog on a mat", "a cat on a mat")


motion = MotionWords(kind="motion-words", words=["pick up", "a"]).open()._motion
#: What reads, and its worst texts: what comes first, what is repeated and what comes last.
READERS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "answers": (
        lambda text: parse(text[:LONGEST], CAPTIONS),
        ["~(1) ~", "~1~)", "~both ~", "~neither ~x", "~caption ~", "~!~x", "1~ ~x", "~not a ~", "~a dog on a mat~",
         "~\n ~", "~the answer is: ~", "~1. a dog on a mat ,~", "~<think>~", "~n't~", "~(1) or ~", "~.,;~"],
    ),
    "sentence": (as_sentence, ["a~)~", "a~'~(", "a ~]}~", "a~ ,~", "~ ~a"]),
    "difference": (lambda text: mark_difference(text, text[::-1] + "a"), ["a~!~a", "~a ~", "~a b c ~", "~!~"]),
    "words": (words_of, ["~a-~", "~-~a", "~a~-"]),
    "articles": (lambda text: edited(text, ()), ["~a ~", "a~ ~b", "a ~b-~", "~an~ "]),
    "motion words": (motion.search, ["pick~ ~x", "~pick ~", "~pick  ~"]),
    "frames": (FRAME.fullmatch, ["a/~0~.pn", "a~/0~.pn", "a~/1~.pn", "a~/~"]),
    "Markdown": (
        lambda text: (cell(text), plain(text), short(text)),
        ["~[~", "~http://~", "~www.~", "~a@~", "~&~", "~ ~a", "~](~", "a~@a.~", "~#1 ~"],
    ),
}  # fmt: skip
WORST = [(name, text) for name, (_, texts) in READERS.items() for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), WORST)
def test_the_worst_megabyte_takes_no_more_than_its_length(name: str, text: str) -> None:
    read, _ = READERS[name]
    first, piece, last = text.split("~")

    def seconds(size: int) -> float:
        """Of the processor; collecting the garbage of a large process is no work of the reader."""
        whole = first + piece * (size // len(piece)) + last
        gc.disable()
        began = time.process_time()
        read(whole)
        gc.enable()
        return time.process_time() - began

    small, large = seconds(MEGABYTE // 8), seconds(MEGABYTE)
    assert large < 30 * small + 1.0, f"{small:.3f} s for 128 kB, {large:.3f} s for 1 MB"  # 64 times, if quadratic


def test_paths_and_single_names_are_taken_as_they_are(
    made_pairs: MadeDataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(made_pairs.root)
    subset = min(place.parent.name for place in out.glob("*/_meta"))
    assert [Path(path).is_file() for path in twinset.look(out, subset, 2)] == [True, True]
    assert next(twinset.load(out, subset, limit=1)).key.startswith(subset)
    assert twinset.export(out, "openclip", tmp_path / "export", subset) > 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda at: twinset.plan("deom"), "no recipe 'deom'"),
        (lambda at: twinset.build("demo", at / "new", workers=-1), "workers -1"),
        (lambda at: next(twinset.load(at / "absent", "x")), "holds no dataset"),
        (lambda at: twinset.evaluate("sugarcrepe", "clip:absent", at / "new"), "name the folder too"),
        (lambda at: twinset.evaluate({}, "clip:absent", at / "new", device="cuda"), "must be cpu or gpu"),
        (lambda at: twinset.scores(at / "absent.csv"), "no such file"),
        (lambda at: twinset.train(at / "absent", at / "new", task="fusion"), "model: Field required"),
    ],
)
def test_wrong_use_is_one_kind_of_error(call: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(twinset.WrongUse, match=words):
        call(tmp_path)
    assert not any(tmp_path.iterdir())
