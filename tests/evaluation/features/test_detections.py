"""Galleries ranked by what a detector found in their images and in the reference."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluation.features.score_tables import scored
from tests.evaluation.features.small_benchmark import Shelf, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Query
from twinset.evaluation.features.detections import NO_ROW, Detections
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import check_model, open_model
from twinset.models.encoders.contract import NotApplicable, Running

#: Image 0 is the reference. 1 and 2 are alike in all but what is asked for; 5 was looked at, and nothing found.
FOUND = """image,category
shelf/0.jpg,dog
0.png,sky-other-merged
0.png,floor-wood
1.png,sky
1.png,wood floor
1.png,dog
2.png,sky-other-merged
2.png,floor-wood
3.png,dog
4.png,dog
4.png,sky
4.png,sky
5.png,
"""


def table(folder: Path, content: str = FOUND) -> str:
    (folder / "found.csv").write_text(content)
    return f"detections:{folder / 'found.csv'}"


def asked(text: str, gallery: tuple[int, ...] = (1, 2, 3, 4, 5), **more: Any) -> list[Query]:
    shelf = Shelf()
    about = {"image": shelf.picture(0), "text": text, "gallery": [shelf.picture(n) for n in gallery], **more}
    return [Query(key="q-0", subset="s", group="g", targets=frozenset({0}), **about)]


def test_images_without_the_condition_come_last_and_the_others_by_what_they_share(tmp_path: Path) -> None:
    found = open_model(table(tmp_path))
    assert isinstance(found, Detections)
    (query,) = asked("dog")
    # {dog, sky, wood floor} with the same, {dog}, {dog, sky}
    assert np.allclose(found.gallery(query), [1, -1, 1 / np.sqrt(3), 2 / np.sqrt(6), -1])
    (query,) = asked("wood floor")
    assert np.allclose(found.gallery(query), [1, 2 / np.sqrt(6), -1, -1, -1])
    (query,) = asked("zebra")  # which the detector never names: all tie, which is strictly wrong
    assert found.gallery(query).tolist() == [-1] * 5
    parquet = tmp_path / "found.parquet"
    rows = [line.split(",") for line in FOUND.splitlines()[1:]]
    pq.write_table(pa.table({"image": [row[0] for row in rows], "category": [row[1] for row in rows]}), parquet)
    other = open_model(f"detections:{parquet}")
    assert isinstance(other, Detections) and np.allclose(other.gallery(query), found.gallery(query))
    assert other.digest() != found.digest()


def test_images_without_a_row_are_left_out_and_other_questions_refused(tmp_path: Path) -> None:
    def similarities() -> Any:
        return similarities_of(open_model(table(tmp_path)), tmp_path / "cache", Running())

    rows = scored(lambda: asked("dog"), similarities(), tmp_path / "s.parquet").to_pylist()
    assert (rows[0]["higher"], rows[0]["entries"], rows[0]["top"]) == (0, 5, [0, 3, 2, 1, 4])
    with pytest.raises(WrongUse, match=f"not one example can be scored .1 {NO_ROW}"):
        scored(lambda: asked("dog", (1, 7)), similarities(), tmp_path / "s.parquet")
    for other in (asked("dog", image=None), [*matchings(Shelf(), 1)]):
        with pytest.raises(NotApplicable, match="asks something else; name a benchmark such as genecis"):
            scored(lambda other=other: other, similarities(), tmp_path / "s.parquet")


def test_tables_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no file"):
        check_model("detections:nowhere.csv")
    with pytest.raises(WrongUse, match="no column 'category'"):
        open_model(table(tmp_path, "image,score\na.jpg,1\n"))
    with pytest.raises(WrongUse, match="column image is empty"):
        open_model(table(tmp_path, "image,category\n,dog\n"))
