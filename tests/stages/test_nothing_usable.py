"""Annotations of which nothing can be used stop the plan, whatever source reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.errors import WrongUse

VIDEO = {"duration": 8, "annotations": [{"segment": [0, 4], "id": 0}, {"segment": [4, 8], "id": 1}]}
BOUNDARY = {"boundary_id": "v_0", "timestamp": 1.0, "subject": "A dog", "status_before": "sits", "status_after": "/0"}
ONE_FRAME = {"frame": "A.mp4/000001.png", "objects": []}
FILES: dict[str, tuple[str, str]] = {
    "youcook2": (
        json.dumps({"database": {"v": VIDEO}}),
        r"2 left out, such as .*: segments whose sentence has no words",
    ),
    "gebc": (json.dumps({"v": [BOUNDARY]}), r"0 left out"),
    "action-genome": (json.dumps(ONE_FRAME), r"0 left out"),
    "image-pairs": (json.dumps([1]), r"1 left out, such as some\.json record 1: "),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_which_nothing_can_be_used_is_refused(tmp_path: Path, kind: str) -> None:
    content, problem = FILES[kind]
    (tmp_path / "some.json").write_text(content)
    (tmp_path / "media").mkdir()
    source = {
        "kind": kind,
        "annotations": str(tmp_path / "some.json"),
        "media": str(tmp_path / "media"),
        "licence": "MIT",
    }
    recipe = recipe_of({"eq-x": {"source": source}})
    for out in (None, str(tmp_path / "out")):
        with pytest.raises(WrongUse, match=rf"some\.json: nothing in it can be used \({problem}.*the source of eq-x"):
            twinset.plan(recipe, out)


def test_a_file_of_malformed_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.jsonl").write_text('{"frame": 3}\n')
    source = {"kind": "action-genome", "annotations": str(tmp_path / "some.jsonl"), "media": str(tmp_path)}
    with pytest.raises(
        WrongUse, match=r"1 left out, such as some\.jsonl line 1: records that are not the name of a frame"
    ):
        twinset.plan(recipe_of({"eq-x": {"source": source}}))


def test_drawn_annotations_alone_count(greys: Any, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"nothing in it can be used \(2 left out, such as scene 0: .*; correct it, or"):
        twinset.plan(recipe_of({"eq-x": greys("eq-x", [[1], [2]], 3)}))
    none_asked = {**greys("eq-x", [["a", 0, 100]], 3), "count": 1}
    assert twinset.plan(recipe_of({"eq-x": none_asked}))["subsets"]["eq-x"]["planned"] == 1
