"""`twinset` as a notebook uses it: paths and single names as they come, and errors that are instructions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.made_datasets import MadeDataset


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
        (lambda at: twinset.build("demo", at / "new", runner="slurm"), "runner 'slurm'"),
        (lambda at: twinset.status(at / "absent"), "holds no dataset"),
        (lambda at: twinset.verify(at / "absent"), "holds no dataset"),
        (lambda at: twinset.look(at / "absent"), "holds no dataset"),
        (lambda at: next(twinset.load(at / "absent", "x")), "holds no dataset"),
        (lambda at: twinset.export(at / "absent", "openclip", at / "new"), "holds no dataset"),
        (lambda at: twinset.evaluate("sugarcrepe", "clip:absent", at / "new"), "name the folder too"),
        (lambda at: twinset.evaluate({"sugarcrepe": at / "absent"}, "clip:absent", at / "new"), "no such folder"),
        (lambda at: twinset.evaluate({}, "clip:absent", at / "new", device="cuda"), "neither cpu nor gpu"),
        (lambda at: twinset.evaluate({}, "clip:absent", at / "new", batch=0), "batch 0"),
        (lambda at: twinset.scores(at / "absent.csv"), "no such file"),
        (lambda at: twinset.compare(at / "absent.csv", at / "absent.csv"), "no such file"),
        (lambda at: twinset.train(at / "absent", at / "new"), "not a dataset"),
        (lambda at: twinset.train(at / "absent", at / "new", task="clipp"), "did you mean 'clip'?"),
        (lambda at: twinset.train(at / "absent", at / "new", task="fusion"), "model: Field required"),
    ],
)
def test_wrong_use_is_one_kind_of_error(call: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(twinset.WrongUse, match=words.replace("?", r"\?")):
        call(tmp_path)
    assert not any(tmp_path.iterdir())
