"""Questions for a model that runs elsewhere, and its scores: of questions, or a table of one row an example."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.evaluation.benchmarks.made_layouts import flickr30k, picture, put, sugarcrepe, winoground
from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.evaluation.scorers.test_prompted import matching
from tests.tiny_encoders import open_clip_config, save_transformers
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import OwnQuestion
from twinset.evaluation.from_python import evaluate, put_scores
from twinset.evaluation.questions.answered import score_answers
from twinset.evaluation.questions.asked import write_questions
from twinset.evaluation.report import page

PAGE = Path(__file__).parents[3] / "docs" / "scores.md"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Questions of two benchmarks."""
    winoground(tmp_path / "winoground")
    flickr30k(tmp_path / "flickr30k")
    places = [(name, str(tmp_path / name)) for name in ("winoground", "flickr30k")]
    assert write_questions(places, [], tmp_path / "Q") == {"images": 8, "texts": 13, "pairs": 34, "left_out": {}}
    return tmp_path / "Q"


@pytest.fixture(autouse=True)
def without_report(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes most of the time, and has tests of its own."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(page, "write_report", lambda out, *_, **__: [out / "report.html"])


def scored(asked: Path, change: Callable[[pd.DataFrame], Any] = lambda pairs: pairs) -> Path:
    pairs = pd.read_parquet(asked / "pairs.parquet")
    pairs["score"] = (pairs.image * 7 + pairs.text * 3) % 11 / 10
    change(pairs).to_csv(asked.parent / "mine.csv", index=False)
    return asked.parent / "mine.csv"


@pytest.mark.slow
def test_ten_lines_of_the_docs_give_the_scores_of_the_same_model_here(
    tmp_path: Path, asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """... for CLIP as transformers runs it: figures are equal, and scores to 1e-6."""
    save_transformers(tmp_path / "clip", "clip")
    lines = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert lines is not None
    (tmp_path / "foreign.py").write_text(lines[1].replace('"openai/clip-vit-base-patch32"', '"clip"'))
    subprocess.run([sys.executable, "foreign.py"], cwd=tmp_path, check=True)
    out = tmp_path / "run"
    asks = ["--questions", str(asked), "--model", "mine", "--out", str(out)]
    assert main(["eval", "scores", str(tmp_path / "mine.parquet"), *asks, "--json"]) == 0
    mine = json.loads(capsys.readouterr().out)["scores"]
    ours = evaluate(
        [(name, tmp_path / name) for name in ("winoground", "flickr30k")], f"clip:{tmp_path}/clip", out,
        cache=tmp_path / "cache",
    )["scores"]  # fmt: skip
    for table, expected in zip(mine, ours, strict=True):
        assert (table["benchmark"], table["rows"]) == (expected["benchmark"], expected["rows"])
        numbers = [pd.read_parquet(scores["path"]).select_dtypes("number").fillna(0) for scores in (table, expected)]
        assert (numbers[0] - numbers[1]).abs().max().max() < 1e-6
    assert "mine" in (out / "report.html").read_text("utf-8")


def test_images_that_cannot_be_read_are_asked_of_nobody_and_left_out_of_both(tmp_path: Path) -> None:
    winoground(tmp_path / "winoground")
    put(tmp_path / "winoground/images/ex_1_img_0.png", picture(2, "PNG")[:60])
    asked = write_questions([("winoground", str(tmp_path / "winoground"))], [], tmp_path / "Q")
    assert (asked["images"], asked["pairs"], asked["left_out"]) == (5, 10, {"undecodable image": 1})
    (scores,) = put_scores(scored(tmp_path / "Q"), "mine", tmp_path / "run", {}, tmp_path / "Q", None)["scores"]
    assert (scores["rows"], scores["left_out"]) == (2, {"undecodable image": 1})


def test_scores_that_are_not_those_of_all_pairs_are_refused(tmp_path: Path, asked: Path) -> None:
    changes: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
        "1 of 34 pairs have no score, first image 0, text 0": lambda pairs: pairs[1:],
        "rows 4 and 35 have the same image, text, '1 / 1'": lambda pairs: pd.concat([pairs, pairs[3:4]]),
        "Q does not ask this pair": lambda pairs: pairs.assign(image=pairs.image + 1),
    }
    for message, change in changes.items():
        with pytest.raises(WrongUse, match=message):
            put_scores(scored(asked, change), "mine", tmp_path / "run", {}, asked, None)


def test_a_benchmark_that_moved_is_named_and_one_that_changed_is_refused(tmp_path: Path, asked: Path) -> None:
    file = scored(asked)
    (tmp_path / "winoground").rename(tmp_path / "moved")
    moved = {"winoground": str(tmp_path / "moved")}
    assert len(put_scores(file, "mine", tmp_path / "run", moved, asked, None)["scores"]) == 2
    lines = (tmp_path / "moved/examples.jsonl").read_text()
    (tmp_path / "moved/examples.jsonl").write_text(lines.replace("red", "blue"))
    with pytest.raises(WrongUse, match="a benchmark is not as it was; ask it again"):
        put_scores(file, "mine", tmp_path / "run", moved, asked, None)


def test_a_benchmarks_own_question_is_asked_once_for_each_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (OwnQuestion("no caption", "Is it red?"), OwnQuestion("no caption", "Is it red?", right=1))
    benchmark = SmallBenchmark(lambda: [matching("k", own)])
    for module in ("asked", "answered"):
        monkeypatch.setattr(f"twinset.evaluation.questions.{module}.open_benchmarks", lambda *_: [benchmark])
    assert write_questions([("small", str(tmp_path))], [], tmp_path / "Q")["pairs"] == 4
    texts = pd.read_parquet(tmp_path / "Q" / "texts.parquet")
    assert texts[["question", "answer"]].values.tolist() == [["Is it red?", "yes"], ["Is it red?", "no"]]
    pairs = pd.read_parquet(tmp_path / "Q" / "pairs.parquet")
    pairs["score"] = [1e9 + 0.9, 1e9 + 0.1, 0.2, 0.8]  # image 0 is red; float32 would not tell the first two apart
    pairs.to_csv(tmp_path / "mine.csv")
    ((written,), _) = score_answers(tmp_path / "mine.csv", tmp_path / "Q", "mine", tmp_path / "run", {}, 0.5)
    (row,) = pd.read_parquet(written.path).to_dict("records")
    assert [row[name] for name in ("s00", "s01", "s10", "s11")] == [1e9 + 0.9, 1e9 + 0.1, 0.2, 0.8]


def put_text(folder: Path, benchmark: str, columns: str, threshold: float | None = None) -> dict[str, Any]:
    (folder / "mine.csv").write_text(columns)
    places = {benchmark: str(folder / benchmark)}
    return dict(put_scores(folder / "mine.csv", "mine", folder / "run", places, None, threshold)["scores"][0])


@pytest.mark.parametrize("benchmark", ["winoground", "flickr30k"])
def test_a_csv_becomes_the_score_file_that_a_run_writes(tmp_path: Path, benchmark: str) -> None:
    {"winoground": winoground, "flickr30k": flickr30k}[benchmark](tmp_path / benchmark)
    places, model = {benchmark: tmp_path / benchmark}, f"random:{open_clip_config(tmp_path)}"
    (ours,) = evaluate(places, model, tmp_path / "ours", cache=tmp_path / "cache")["scores"]
    table = pd.read_parquet(ours["path"]).drop(columns=["top", "best_wrong"], errors="ignore")
    shuffled = table.sample(frac=1, random_state=1).drop(columns=["subset", "category", "group"])
    scores = put_text(tmp_path, benchmark, shuffled.to_csv(index=False))
    assert (scores["rows"], scores["left_out"], scores["figures"]) == (len(table), {}, ours["figures"])
    pd.testing.assert_frame_equal(pd.read_parquet(scores["path"]), table)


def test_examples_without_a_row_are_counted_and_strange_rows_refused(tmp_path: Path) -> None:
    winoground(tmp_path / "winoground")
    header, row = "key,s00,s01,s10,s11\n", "test/0,1,0,0,1\n"
    assert put_text(tmp_path, "winoground", header + row)["left_out"] == {"no row": 2}
    for wrong, message in (
        (header + row.replace("test/0", "strange"), "the key 'strange' is not of winoground"),
        ((header + row).replace("key", "name"), "no column 'key'"),
    ):
        with pytest.raises(WrongUse, match=message):
            put_text(tmp_path, "winoground", wrong)


def test_what_is_measured_of_one_image_is_put_beside_a_benchmark_too(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "sugarcrepe")
    tables = {"s00,s01": ("1000.00002,1000.00001", "0,0.5"), "correct": ("True", "no"), "ipos2t": ("1", "0.5")}
    for header, (right, wrong) in tables.items():
        rows = [f"{kind}/{n},{right if n == 0 else wrong}" for kind in ("swap_obj", "add_att") for n in range(3)]
        scores = put_text(tmp_path, "sugarcrepe", "\n".join([f"key,{header}", *rows]))
        assert scores["rows"] == 6 and scores["figures"]["accuracy"] == pytest.approx(100 / 3)
