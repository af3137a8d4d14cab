"""``twinset eval scores`` and ``twinset eval compare``: what they print, and their exit codes."""

import json
from pathlib import Path

import pytest

from twinset.cli.main import main

RELEASED = (
    '"caption","type","subtype","text_score_i0","text_score_i1","image_score_c0","image_score_c1"\n'
    '"a","add","obj","True","True","False","True"\n'
    '"b","add","att","True","True","True","True"\n'
    '"c","swap","obj","False","True","True","True"\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "BiVLC_model.csv"
    path.write_text(RELEASED)
    return path


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(file), "--by", "type", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    third = pytest.approx(100 / 3)
    assert {name: found["all"][name] for name in ("n", "text", "image", "group", "ties")} == {
        "n": 3,
        "text": pytest.approx(200 / 3),
        "image": pytest.approx(200 / 3),
        "group": third,
        "ties": None,
    }
    assert [*found["by"]] == ["add", "swap"] and found["by"]["add"]["group"] == 50
    low, high = found["all"]["interval"]["group"]
    assert 0 <= low <= 100 / 3 <= high <= 100
    assert any("own group" in note for note in found["notes"])


def test_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(file), "--by", "type,subtype", "--resamples", "0"]) == 0
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["all", "3", "group", "33.33", "?"] in lines and ["add", "/", "obj", "1", "tpos2i", "0.00", "?"] in lines
    assert "ties are not known" in said.err


def test_compare(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text(RELEASED.replace("False", "True"))
    options = ["eval", "compare", str(file), str(other), "--key", "caption,type"]
    assert main([*options, "--json", "--by", "type"]) == 0
    found = json.loads(capsys.readouterr().out)
    line = next(line for line in found["table"] if (line["rows"], line["figure"]) == ("all", "group"))
    assert (line["only_a"], line["only_b"], line["p"], found["only_in_a"]) == (0, 2, 0.5, 0)
    assert line["difference"] == pytest.approx(-200 / 3) and line["p_holm"] == 1
    assert main([*options, "--figures", "ineg2t"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].split()[:6] == ["all", "3", "ineg2t", "100.00", "100.00", "+0.00"]
    assert main(["eval", "compare", str(file), str(other), "--in-order"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "kind"], "no column 'kind' for --by; it has caption, type"),
        (["--group", "image"], "no column 'image' for --group"),
    ],
)
def test_wrong_use_names_the_remedy(
    file: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "scores", str(file), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--by", "a,,b"], ["--by", "a,a"], ["--seed", "-1"], ["--threshold", "nan"]])
def test_options_that_cannot_be(file: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "scores", str(file), *options])
    assert ended.value.code == 2 and "write" in capsys.readouterr().err


def test_values_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.csv"
    path.write_text('correct,type\n1,"\x1b[31mred"\n0,"two\nlines"\n', newline="")
    assert main(["eval", "scores", str(path), "--by", "type"]) == 0
    out = capsys.readouterr().out
    assert "\ufffd[31mred" in out and "two\ufffdlines" in out and "\x1b" not in out and len(out.splitlines()) == 4


@pytest.mark.parametrize("command", [["scores", "s.csv"], ["answers", "folder"]])
def test_more_resamples_than_fit_into_memory_are_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["eval", *command, "--resamples", "1000000000"])
    assert "write a number from 0 to 1,000,000" in capsys.readouterr().err
