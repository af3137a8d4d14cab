import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studies.science.findings import best_arm, find
from studies.science.gate import check_gate
from studies.science.runs import BASE, DETECTORS, PROBES, Done, Run, Study
from studies.science.study import write_report
from tests.studies.science.conftest import MadeStudy
from tests.studies.science.made_scores import write_matchings
from twinset.contracts.errors import BuildFailed, WrongUse


def test_report_plots_and_numbers_are_written_from_score_files(study: Study, tmp_path: Path) -> None:
    found = find(study)
    path = write_report(found, tmp_path / "report")
    text = path.read_text("utf-8")
    assert study.design.digest in text and str(tmp_path) not in text
    for name, claim in study.design.claims.items():
        assert f"| {name}. {claim.says} |" in text
    assert "weight-0 ends with the bytes of ft: yes" in text
    # What can be detected comes first.
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads[:3] == ["## What can be detected", "## Result", "## Verdicts"]
    [row] = [line for line in text.splitlines() if line.startswith("| A4 | v2-close − v2-all | group | ")][:1]
    assert row.endswith("| 0.58 | **no** |") and "| C3 | combiner − combiner-shuffled | recall@1 |" in text
    assert "at most 90 minutes of 2 cores" in text and "a power of 80 %" in text
    assert "| eqsim | 0.500 | 0.1250 | 40% |" in text and "| ft | 0.500" not in text
    assert "words: 55.0 (from 51.0)" in text
    detected = "51.2 (48.0 to 54.5) | " * 5
    assert "on 60 pairs of arms" in text and "| chance | 50 | 50 | 12.5 | 12.5 | 6.25 |" in text
    for row in ("Calibration", "In-world test", "Held-out combinations", "swap_att"):
        assert f"| {row} | {detected.strip()}\n" in text
    numbers = json.loads((path.parent / "results.json").read_text())
    c1 = next(one for one in numbers["comparisons"] if one["claim"] == "C1" and one["than"] == "text-only")
    assert f"{c1['difference']:+.1f}" in text and c1["test"] == "galleries"
    assert numbers["verdicts"]["in-world"]["B5"] == "supported"
    pictures = [*path.parent.glob("*.png")]
    assert len(pictures) == 2 and sum(one.stat().st_size for one in pictures) < 300_000
    for one in pictures:
        with Image.open(one) as picture:
            assert len(picture.convert("L").getcolors()) > 20  # type: ignore[arg-type]
    assert "### In-world test: group by kind of change" in text and "| replace_rel |" in text
    first = path.read_bytes()
    assert write_report(find(study), tmp_path / "again").read_bytes() == first
    assert best_arm(found).arm == "negative-images"


def test_what_cannot_be_detected_is_not_tested_rather_than_undecided(study: Study) -> None:
    found = find(study)
    small = {(one.claim, one.better, one.than) for one in found.powers if one.too_large}
    assert {one.claim for one in found.powers} == {*study.design.claims}
    for one in (each for compared in found.judged.values() for each in compared):
        assert one.verdict != ("undecided" if (one.claim, one.better, one.than) in small else "not tested")
    assert {one.verdict for one in found.judged["in-world"]} >= {"supported", "not tested"}


def test_calibration_seeds_are_scored_on_nothing_that_decides(study: Study) -> None:
    deciding = {name for name, one in study.design.tests.items() if not one.tuning}
    for run in (*study.calibration(), *study.bases()[:2]):
        assert study.wanted(run) and not {*study.wanted(run)} & deciding
    arms = [run.arm for run in study.calibration() if run.seed == study.design.calibration_seeds[1]]
    assert "weight-0" not in arms and {*arms} == {run.arm for run in study.after_base() if run.seed == 1} - {
        PROBES, DETECTORS
    }  # fmt: skip


def test_the_base_must_be_neither_too_weak_nor_too_good(study: Study) -> None:
    run = Run(BASE, study.design.calibration_seeds[0])
    assert 20 <= check_gate(study).by_kind["swaps"] <= 70
    write_matchings(study.scores(run, "calibration"), np.random.default_rng(0), 0.95)
    with pytest.raises(BuildFailed, match=r"gate: group score of the base of seed 0 on calibration: swaps \d"):
        check_gate(study)


def test_a_run_is_done_while_what_decides_it_is_the_same(study: Study) -> None:
    base, arm = Run(BASE, 1), Run("ft", 1)
    assert study.done(base) and study.done(arm)
    other = study.design.model_copy(update={"training": {**study.design.training, "steps": 1}})
    changed = MadeStudy(other, study.out, study.data)
    assert changed.done(base) and not changed.done(arm) and changed.done(Run("combiner", 1))
    # Another base: all of its arms are stale, those of other seeds are not.
    done = study.trained(base)
    assert done is not None
    study.record(base, Done(done.digest, "other weights", 1.0, {}, done.scored))
    assert not study.done(arm) and study.done(Run("ft", 2))
    # Detectors read the base's features of what arms are trained on.
    detectors = Run(DETECTORS, 1)
    assert not study.done(detectors)
    study.record(base, done)
    assert study.done(detectors) and {*study.wanted(detectors)} == {"calibration", "in-world", "held-out"}
    rate = study.design.model_copy(update={"detectors": {**study.design.detectors, "rate": 1.0}})
    assert not MadeStudy(rate, study.out, study.data).done(detectors)
    # Another test set: trained, and not scored on it yet.
    tests = {**study.design.tests, "more": study.design.tests["in-world"]}
    more = MadeStudy(study.design.model_copy(update={"tests": tests}), study.out, study.data)
    assert more.trained(Run("ft", 2)) and not more.done(Run("ft", 2))


def test_a_study_can_be_moved_and_scores_that_are_lost_are_missing(study: Study, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (study.out / "runs").rename(tmp_path / "elsewhere" / "runs")
    moved = MadeStudy(study.design, tmp_path / "elsewhere", study.data)
    assert all(moved.done(run) for run in moved.runs())
    moved.scores(Run("ft", 1), "in-world").unlink()
    done = moved.trained(Run("ft", 1))
    assert done is not None and moved.missing(Run("ft", 1), done) == ["in-world"]


def test_a_study_that_is_not_finished_reports_what_is(study: Study, tmp_path: Path) -> None:
    for arm in ("negative-images", PROBES, DETECTORS):
        (study.folder(Run(arm, 1)) / "done.json").unlink()
    found = find(study)
    text = write_report(found, tmp_path / "report").read_text("utf-8")
    assert "**not finished**: B3, B4, B5" in text and "left out: negative-images." in text
    assert found.probes == {} == found.detected and "what a caption or an image alone tells\n\nNot finished." in text
    assert {one.claim for one in found.judged["in-world"]} >= {"A1", "B1"}
    (study.folder(Run("ft", study.design.calibration_seeds[0])) / "done.json").unlink()
    text = write_report(find(study), tmp_path / "report").read_text("utf-8")
    assert "The arms of the calibration seeds are not finished." in text
    (study.folder(Run(BASE, 2)) / "done.json").unlink()
    with pytest.raises(WrongUse, match="no arm is finished for all of 2 seeds"):
        find(study)
