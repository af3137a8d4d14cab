"""Galleries ranked by what a detector found in their images and in the reference; features on disk: torn, stopped."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, by_features, matchings, scored
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Query
from twinset.evaluation.features import store
from twinset.evaluation.features.detections import NO_ROW, ByDetections
from twinset.evaluation.features.store import BLOCK_SECONDS, FeatureStore, image_name, pair_name, text_name
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Running

#: Image 0 is the reference. 1 and 2 are alike in all but what is asked for; 5 was looked at, and nothing found.
FOUND = {
    "shelf/0.jpg": ["dog"],
    "0.png": ["sky-other-merged", "floor-wood"],
    "1.png": ["sky", "wood floor", "dog"],
    "2.png": ["sky-other-merged", "floor-wood"],
    "3.png": ["dog"],
    "4.png": ["dog", "sky", "sky"],
    "5.png": [""],
}


@pytest.fixture
def detections(tmp_path: Path) -> ByDetections:
    lines = [f"{image},{category}\n" for image, categories in FOUND.items() for category in categories]
    (tmp_path / "found.csv").write_text("image,category\n" + "".join(lines))
    similarities = similarities_of(open_model(f"detections:{tmp_path / 'found.csv'}"), tmp_path / "cache", Running())
    assert isinstance(similarities, ByDetections)
    return similarities


def asked(text: str, gallery: tuple[int, ...] = (1, 2, 3, 4, 5), **more: Any) -> Query:
    shelf = Shelf()
    about = {"image": shelf.picture(0), "text": text, "gallery": [shelf.picture(n) for n in gallery], **more}
    return Query(key="q-0", subset="s", group="g", targets=frozenset({0}), **about)


def test_images_without_the_condition_come_last_and_the_others_by_what_they_share(
    tmp_path: Path, detections: ByDetections
) -> None:
    # {dog, sky, wood floor} with the same, {dog}, {dog, sky}
    assert np.allclose(detections.gallery(asked("dog")), [1, -1, 1 / np.sqrt(3), 2 / np.sqrt(6), -1])
    assert np.allclose(detections.gallery(asked("wood floor")), [1, 2 / np.sqrt(6), -1, -1, -1])
    # Which the detector never names: all tie, which is strictly wrong.
    assert detections.gallery(asked("zebra")).tolist() == [-1] * 5
    rows = scored(lambda: [asked("dog")], detections, tmp_path / "s.parquet").to_pylist()
    assert (rows[0]["higher"], rows[0]["entries"], rows[0]["top"]) == (0, 5, [0, 3, 2, 1, 4])
    for example, message in (
        (asked("dog", (1, 7)), f"not one example can be scored .1 {NO_ROW}"),
        (asked("dog", image=None), "asks something else; name a benchmark such as genecis"),
        (matchings(Shelf(), 1)[0], "asks something else; name a benchmark such as genecis"),
    ):
        with pytest.raises(WrongUse, match=message):
            scored(lambda example=example: [example], detections, tmp_path / "s.parquet")


def test_a_run_that_stops_goes_on_where_it_was_and_gives_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BLOCK_SECONDS", 0.0)  # a pass is a block
    stopped: Any = PlainEncoder()
    give, after = stopped.image_features, PlainEncoder()
    stopped.image_features = lambda prepared: give(prepared) if stopped.images < 12 else sys.exit(1)
    examples = matchings(Shelf(), 60, 20)
    with pytest.raises(SystemExit):
        scored(lambda: examples, by_features(tmp_path, stopped), tmp_path / "s.parquet")
    assert not (tmp_path / "s.parquet").exists()
    table = scored(lambda: examples, by_features(tmp_path, after), tmp_path / "s.parquet")
    assert after.images == 20 - 12 and after.texts == 0, "all that came before is not encoded again"
    assert table.equals(scored(lambda: examples, by_features(tmp_path / "other"), tmp_path / "whole.parquet"))


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
    for opened in (first, second, FeatureStore(tmp_path / "cache", "m")):
        found = opened.find([*names, image_name(b"b")])
        assert [found[name].tolist() for name in names] == values.tolist() and len(found) == 3
    assert FeatureStore(tmp_path / "cache", "other").missing(names) == names


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "other bytes"])
def test_a_block_that_is_torn_or_damaged_is_encoded_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = FeatureStore(tmp_path, "m")
    values = np.random.default_rng(0).normal(size=(4, 2000)).astype(np.float32)
    for place, word in enumerate("abcd"):  # a block each
        kept.keep(names_of(word), values[place : place + 1], BLOCK_SECONDS + 1)
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
