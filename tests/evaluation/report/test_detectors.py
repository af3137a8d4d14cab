"""What detectors get right, beside BiVLC's Table 4 and by the categories that its Table 6 pools."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, matchings, released, save
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import measured_run

NAMES = ("text detector", "image detector", "i2t", "t2i", "group")


def probed(pairs: int, *shares: float) -> dict[str, object]:
    return {"pairs": pairs, "probes": {}, "detectors": dict(zip(NAMES, shares, strict=False))}


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    save(tmp_path, "bivlc", "m", matchings(500, 0, 0.1, ["test"]), SCHEMAS["matching"])
    rows = {"replace_obj": (300, 60.0, 100.0, 70.0, 20.0, 20.0), "replace_rel": (100, 40.0, 96.0, 50.0, 12.0, 8.0)}
    rows |= {"swap_att": (100, 52.0, 99.0, 60.0, 10.0, 10.0)}
    found = {
        "all": probed(500, 55.0, 98.0, 64.0, 17.0, 16.0),
        "by": {f"test / {k}": probed(*v) for k, v in rows.items()},
    }  # type: ignore[arg-type]
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "bivlc.json").write_text(json.dumps(found))
    with released(bivlc={"test": 500}):
        yield tmp_path


def values(cells: object) -> list[object]:
    return [cell.value if isinstance(cell, Figure) else cell for cell in cells]  # type: ignore[attr-defined]


def test_detection_of_a_part_stands_alone(out: Path) -> None:
    probes = json.loads((out / "probes/bivlc.json").read_text())
    probes["all"]["pairs"] = 499
    (out / "probes/bivlc.json").write_text(json.dumps(probes))
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert {row.cells[1] for row in table.rows} == {"ours"}


def test_detection_stands_beside_the_paper_and_by_category(out: Path) -> None:
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert table.heads == ["examples", "detectors", "n", "text detection", "image detection", "text", "image", "group"]
    rows = {(row.cells[0], row.cells[1]): values(row.cells[2:]) for row in table.rows}
    assert rows["all", "ours"] == [500, 55.0, 98.0, 64.0, 17.0, 16.0]
    assert rows["all", "CLIP Det"] == [None, 57.0, 100.0, 66.69, 19.64, 19.64]
    assert rows["replace", "ours"] == [400, 55.0, 99.0, 65.0, 18.0, 17.0]  # weighted by pairs
    assert rows["test / replace_rel", "ours"] == [100, 40.0, 96.0, 50.0, 12.0, 8.0]
    assert ("add", "ours") not in rows
    assert "what detectors get right" in write_report(out, resamples=0)[0].read_text()
    assert "Text det." in (out / "tables" / "bivlc-detectors-compact.md").read_text()


def test_probes_without_detectors_have_no_such_table(out: Path) -> None:
    path = out / "probes" / "bivlc.json"
    found = json.loads(path.read_text())
    for row in (found["all"], *found["by"].values()):
        del row["detectors"]
    path.write_text(json.dumps(found))
    assert not [one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if "detectors" in one.name]
    captions = {"text detector": 55.0}  # alone: of one image there is no detector
    path.write_text(json.dumps({**found, "all": {**found["all"], "detectors": captions}}))
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert table.heads[3:] == ["text detection"]
