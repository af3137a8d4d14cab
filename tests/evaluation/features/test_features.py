"""Galleries ranked by what a detector found in their images and in the reference.

Blocks of features: found again, torn, killed.
What'sUp's pair and set accuracy: by hand, as its released code counts, and with ties.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluation.features.killed_run import BATCH, EXAMPLES, IMAGES
from tests.evaluation.features.killed_run import main as score
from tests.evaluation.features.score_tables import scored
from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.waiting import wait_until
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, Query
from twinset.evaluation.features.detections import NO_ROW, ByDetections
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import (
    BLOCK_SECONDS,
    FeatureStore,
    image_name,
    pair_name,
    text_name,
)
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Floats, Matcher, NotApplicable, Running

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


def opened(folder: Path, model: str) -> ByDetections:
    detections = similarities_of(open_model(model), folder / "cache", Running())
    assert isinstance(detections, ByDetections)
    return detections


def test_images_without_the_condition_come_last_and_the_others_by_what_they_share(tmp_path: Path) -> None:
    found = opened(tmp_path, table(tmp_path))
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
    other = opened(tmp_path, f"detections:{parquet}")
    assert np.allclose(other.gallery(query), found.gallery(query))
    assert other.detections.digest() != found.detections.digest()


def test_images_without_a_row_are_left_out_and_other_questions_refused(tmp_path: Path) -> None:
    rows = scored(lambda: asked("dog"), opened(tmp_path, table(tmp_path)), tmp_path / "s.parquet").to_pylist()
    assert (rows[0]["higher"], rows[0]["entries"], rows[0]["top"]) == (0, 5, [0, 3, 2, 1, 4])
    with pytest.raises(WrongUse, match=f"not one example can be scored .1 {NO_ROW}"):
        scored(lambda: asked("dog", (1, 7)), opened(tmp_path, table(tmp_path)), tmp_path / "s.parquet")
    for other in (asked("dog", image=None), [*matchings(Shelf(), 1)]):
        with pytest.raises(NotApplicable, match="asks something else; name a benchmark such as genecis"):
            scored(lambda other=other: other, opened(tmp_path, table(tmp_path)), tmp_path / "s.parquet")


SCORES = MATCHING_SCORES.names[4:]


class Primed(Matcher):
    name = "primed"
    reasons = ("dazed", "silent")

    def digest(self) -> str:
        return "primed"

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        rows = [(np.nan, 1) if text == "frame 1" else (len(text), 0) for text in texts]
        return np.array(rows, np.float32)


def test_pairs_without_an_answer_are_counted_and_tie(tmp_path: Path) -> None:
    opened = ByPairs(Primed(), FeatureStore(tmp_path, "m"), 4)
    path = tmp_path / "m.parquet"
    write_scores(SmallBenchmark(lambda: matchings(Shelf(), 6)), opened, path, {})
    rows = {row["key"]: row for row in pq.read_table(path).to_pylist()}
    assert [rows["m-0"][name] for name in SCORES] == [0] * 4 and [rows["m-2"][name] for name in SCORES] == [7] * 4
    assert json.loads(pq.read_schema(path).metadata[b"twinset"])["unanswered"] == {"silent": 4}


CHECKOUT = Path(__file__).resolve().parents[3]


def test_a_run_that_is_killed_goes_on_where_it_was_and_gives_the_same_scores(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    out, cache = str(tmp_path / "s.parquet"), str(tmp_path / "cache")
    command = [sys.executable, "-m", "tests.evaluation.features.killed_run", out, cache, str(counts), "0.5"]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: counts.exists() and len(counts.read_text().split()) >= 3, process)
        process.send_signal(signal.SIGKILL)
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == []
    before = [int(number) for number in counts.read_text().split()]
    score(out, cache, str(counts), "0")
    after = [int(number) for number in counts.read_text().split()][len(before) :]
    # The last pass before the kill was not kept; all that came before it is not encoded again.
    assert sum(after) == IMAGES - BATCH * (len(before) - 1)
    score(str(tmp_path / "whole.parquet"), str(tmp_path / "other"), str(counts), "0")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet")) and len(pq.read_table(out)) == EXAMPLES


def names_of(words: str) -> list[bytes]:
    return [text_name(word) for word in words]


def test_features_are_found_by_what_they_are_of_by_all_processes(tmp_path: Path) -> None:
    first, second = FeatureStore(tmp_path / "cache", "m"), FeatureStore(tmp_path / "cache", "m")
    names = [image_name(b"a"), text_name("a"), pair_name(image_name(b"a"), text_name("a"))]
    assert len({*names, text_name("\ud800")}) == 4
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    first.keep(names, values, 3.0)
    first.flush()
    assert second.missing([image_name(b"b"), *names, image_name(b"b")]) == [image_name(b"b")]
    for store in (first, second, FeatureStore(tmp_path / "cache", "m")):
        found = store.find([*names, image_name(b"b")])
        assert [found[name].tolist() for name in names] == values.tolist() and len(found) == 3
    assert FeatureStore(tmp_path / "cache", "other").missing(names) == names


def test_seconds_count_each_feature_that_was_asked_for_once(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, "m")
    store.keep(names_of("abcd"), np.zeros((4, 1), np.float32), 8.0)
    store.find(names_of("ab"))
    store.find(names_of("bc"))
    assert store.counted() == {"texts": 3, "seconds": 6.0}
    store.used.clear()
    assert store.counted() == {"seconds": 0}


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "other bytes"])
def test_a_block_that_is_torn_or_damaged_is_encoded_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = FeatureStore(tmp_path, "m")
    values = np.random.default_rng(0).normal(size=(4, 2000)).astype(np.float32)
    for place, word in enumerate("abcd"):  # a block each
        store.keep(names_of(word), values[place : place + 1], BLOCK_SECONDS + 1)
    blocks = {path: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    (path,) = (path for path, data in blocks.items() if values[2].tobytes() in data)
    changed = blocks[path].replace(values[2].tobytes(), values[1].tobytes())
    others = {"cut": blocks[path][:-9], "empty": b"", "changed": changed, "other bytes": b"not Arrow"}
    path.write_bytes(others[damage])
    again = FeatureStore(tmp_path, "m")
    assert again.missing(names_of("abcd")) == names_of("c") and not path.exists()
    assert f"{path}: is damaged; what it held is encoded again" in caplog.text
    assert again.find(names_of("b"))[text_name("b")].tolist() == values[1].tolist()
    again.keep(names_of("c"), values[2:3], BLOCK_SECONDS + 1)
    assert path.read_bytes() == blocks[path]
