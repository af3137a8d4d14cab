"""``twinset eval blind``, by its command line."""

import json
from pathlib import Path

import pytest

from tests.evaluation.blind_probes.made_benchmark import sentences
from twinset.cli.main import main
from twinset.evaluation.report.model_answers import probes_of


@pytest.fixture
def crepe(tmp_path: Path) -> Path:
    """SugarCrepe's layout without any image: additions that length solves, and swaps that nothing does."""
    for kind, extra in (("add_obj", " And a kite."), ("swap_obj", "")):
        records = {
            str(number): {"filename": f"{number // 2:012d}.jpg", "caption": first, "negative_caption": second + extra}
            for number, (first, second) in enumerate(sentences(60, len(kind)))
        }
        (tmp_path / f"{kind}.json").write_text(json.dumps(records), "utf-8")
    return tmp_path


def test_the_table_flags_what_is_solved_without_any_image(crepe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "blind", f"sugarcrepe={crepe}"]) == 0
    shown = capsys.readouterr()
    first, *rows = shown.out.splitlines()
    assert first == "SugarCrepe (2023): 120 pairs of 30 groups, chance 50 %"
    subset, flagged = "", set[tuple[str, str]]()
    for row in rows:
        subset = next((name for name in ("all", "swap_obj", "add_obj") if row.startswith(name)), subset)
        flagged |= {(subset, said) for said in ("shorter", "text classifier") if said in row and row.endswith("SOLVED")}
    assert {("add_obj", "shorter"), ("add_obj", "text classifier")} <= flagged
    assert not any(subset == "swap_obj" for subset, _ in flagged) and "above 55 %" in rows[-2]
    assert "sugarcrepe: images: not asked for" in shown.err


def test_json_has_all_and_every_subset(crepe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "blind", f"sugarcrepe={crepe}", "--only", "add_obj", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["all"]["pairs"] == 60 and found["by"] == {} and found["rule"]["margin"] == 5
    assert [one["row"] for one in found["solved"]] == ["all"] and found["all"]["probes"]["characters"]["solves"]


def test_the_report_of_a_run_reads_what_is_written(crepe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["eval", "blind", f"sugarcrepe={crepe}", "--out", str(out)]) == 0
    probes = probes_of(out, "sugarcrepe")
    assert probes is not None and "add_obj: characters, shorter" in probes.solved
    assert [path.name for path in (out / "probes").iterdir()] == ["sugarcrepe.json"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["sugarcrepe"], "write NAME=DIR"),
        (["sugarcrepe=a", "sugarcrepe=b", "--out", "run"], "sugarcrepe: is named twice"),
        (["sugarcrep=."], "did you mean 'sugarcrepe'"),
        (["sugarcrepe={crepe}", "--only", "add_ob"], "did you mean 'add_obj'?"),
        (["sugarcrepe={crepe}", "--images"], "all 60 examples are left out"),
        (["sugarcrepe={crepe}", "--language-model", "no/such/folder"], "no/such/folder"),
        (["sugarcrepe={crepe}", "--model", "random"], "--model random"),
    ],
)
def test_wrong_use_is_told_with_exit_code_2(
    crepe: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (crepe / "swap_obj.json").unlink()
    try:
        code = main(["eval", "blind", *(one.format(crepe=crepe) for one in arguments)])
    except SystemExit as ended:  # argparse
        code = int(ended.code or 0)
    assert code == 2 and said in capsys.readouterr().err
