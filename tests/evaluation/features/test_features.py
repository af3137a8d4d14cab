"""Galleries ranked by what a detector found in their images and in the reference.

A prior of texts that is known: it is found on other groups, removed, and what was not answered stays a tie.
What'sUp's pair and set accuracy: by hand, as its released code counts, and with ties.
"""

import itertools
import json
import signal
import sqlite3
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
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, Query
from twinset.evaluation.features.detections import NO_ROW, Detections
from twinset.evaluation.features.pairs import PRIORS, ByPairs
from twinset.evaluation.features.prior import best_alpha, remove_prior
from twinset.evaluation.features.score_table import add_sets, columns_of, write_scores
from twinset.evaluation.features.store import FeatureStore, default_cache, image_name, pair_name, text_name
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import check_model, open_model
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


SCORES = MATCHING_SCORES.names[4:]


def save(path: Path, rows: int, groups: int, share: float, seed: int = 0) -> Path:
    """Scores that see the image, and have ``share`` of a prior that is much larger."""
    drawn = np.random.default_rng(seed)
    prior = drawn.normal(-20, 5, (rows, 2))
    sees = drawn.normal(0, 0.1, (rows, 2, 2)) + np.eye(2) * 1.0
    scores = sees + share * prior[:, None, :]
    made = [
        {"key": f"{n}", "subset": "s", "category": "", "group": f"g{n % groups}"}
        | dict(zip(SCORES, map(float, scores[n].ravel()), strict=True))
        | {"prior0": float(prior[n, 0]), "prior1": float(prior[n, 1])}
        for n in range(rows)
    ]
    made[0] |= dict.fromkeys(("prior0", "prior1"), None) | dict.fromkeys(SCORES, 0.0)
    pq.write_table(pa.Table.from_pylist(made, PRIORS.with_metadata({b"twinset": json.dumps({"model": "m"})})), path)
    return path


def test_it_is_found_on_other_groups_and_removed(tmp_path: Path) -> None:
    path = save(tmp_path / "m.parquet", 400, 100, 0.6)
    before = measure(path).all.figures["text"].value
    remove_prior(path)
    found = measure(path).all.figures
    assert before < 30 and found["text"].value == 100 * 399 / 400
    told = json.loads(pq.read_schema(path).metadata[b"twinset"])
    assert told["model"] == "m" and {told["alpha_0"], told["alpha_1"]} <= {0.55, 0.6, 0.65}
    assert pq.read_table(path).select(SCORES).slice(0, 1).to_pylist() == [dict.fromkeys(SCORES, 0)]


def test_the_groups_that_are_scored_do_not_choose(tmp_path: Path) -> None:
    """One half has a prior, the other has none: each gets what is best for the other one."""
    from twinset.evaluation.features.prior import _halves

    path = save(tmp_path / "m.parquet", 400, 100, 0.6)
    table = pq.read_table(path)
    half = np.concatenate([_halves(batch) for batch in table.to_batches()])
    rows = [
        row if half[n] else row | dict.fromkeys(("prior0", "prior1"), 0.0) for n, row in enumerate(table.to_pylist())
    ]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    remove_prior(path)
    told = json.loads(pq.read_schema(path).metadata[b"twinset"])
    assert told["alpha_1"] == 0 and told["alpha_0"] == pytest.approx(0.6, abs=0.051)


def test_of_one_image_too_and_the_least_of_equal_ones(tmp_path: Path) -> None:
    one = np.array([[0.0, 3], [1, 1], [np.nan, np.nan], [np.nan, np.nan], [-9, 0], [0, 0]], np.float32)
    assert best_alpha(one) == pytest.approx(0.15)
    assert best_alpha(np.zeros((6, 3), np.float32)) == 0
    with pytest.raises(WrongUse, match="too few groups"):
        remove_prior(save(tmp_path / "m.parquet", 5, 1, 0.5))


class Primed(Matcher):
    name = "primed"
    reasons = ("dazed", "silent")
    has_prior = True

    def digest(self) -> str:
        return "primed"

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        rows = [(np.nan, 1, -5) if text == "frame 1" else (len(text), 0, -len(text)) for text in texts]
        return np.array(rows, np.float32)


def test_pairs_without_an_answer_are_counted_and_tie_and_others_keep_their_prior(tmp_path: Path) -> None:
    shelf = Shelf()
    opened = ByPairs(Primed(), FeatureStore(tmp_path, "m"), 4)
    path = tmp_path / "m.parquet"
    write_scores(SmallBenchmark(lambda: matchings(shelf, 6)), opened, path, {})
    rows = {row["key"]: row for row in pq.read_table(path).to_pylist()}
    assert [rows["m-0"][name] for name in (*SCORES, "prior0")] == [0, 0, 0, 0, None]
    assert [rows["m-2"][name] for name in (*SCORES, "prior0", "prior1")] == [7, 7, 7, 7, -7, -7]
    assert json.loads(pq.read_schema(path).metadata[b"twinset"])["unanswered"] == {"silent": 4}
    query = Query(
        key="q", subset="s", group="g", image=shelf.picture(0), text=None, gallery=["a"], targets=frozenset([0])
    )
    with pytest.raises(NotApplicable, match="its prior is removed from two captions alone"):
        opened.prepare([query])
    opened.close()


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


SIDES = {"a": ("left", "right", "on", "under"), "b": ("left", "right", "front", "behind")}


def released(right: dict[tuple[str, str, str], bool], subset: str) -> tuple[float, float]:
    """Pair and set accuracy as the loop over dictionaries of right answers counts them."""
    objects = {group for one, group, _ in right if one == subset}
    left, other = SIDES[subset][:2], SIDES[subset][2:]
    pairs = sum(all(right[subset, one, name] for name in two) for one in objects for two in (left, other))
    sets = sum(all(right[subset, one, name] for name in SIDES[subset]) for one in objects)
    return 100 * pairs / (2 * len(objects)), 100 * sets / len(objects)


def test_pairs_and_sets_are_counted_as_the_released_code_counts_them(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    places = [(s, f"o{n}", side) for s, sides in SIDES.items() for n, side in itertools.product(range(30), sides)]
    places = [places[n] for n in drawn.permutation(len(places))]
    wrong = drawn.random(len(places)) < 0.3
    rows = [
        {
            "key": f"{n}",
            "subset": s,
            "group": g,
            "category": c,
            "higher": int(bad),
            "tied": 0,
            "entries": 4,
            "targets": 1,
        }
        for n, ((s, g, c), bad) in enumerate(zip(places, wrong, strict=True))
    ]
    rows.append(rows[0] | {"key": "coco", "subset": "coco-two"})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"twinset": '{"metrics": ["sets"]}'})
    pq.write_table(table, tmp_path / "s.parquet")
    add_sets(tmp_path / "s.parquet")
    found = measure(tmp_path / "s.parquet", ["subset"])
    right = {place: not bad for place, bad in zip(places, wrong, strict=True)}
    for subset in SIDES:
        figures = found.by[subset].figures
        pair, whole = released(right, subset)
        assert (figures["pair_accuracy"].value, figures["set_accuracy"].value) == pytest.approx((pair, whole))
        assert figures["set_accuracy"].expected == pytest.approx(whole) and figures["set_accuracy"].low < whole
    assert "pair_accuracy" not in found.by["coco-two"].figures and "recall@1" in found.by["coco-two"].figures


def test_ties_are_wrong_and_expected_is_the_chance_of_random_order() -> None:
    rows = [
        {"subset": "a", "group": "g", "category": side, "higher": 0, "tied": tied}
        for side, tied in zip(SIDES["a"], (0, 3, 0, 0), strict=True)
    ]
    found = columns_of(rows)
    assert [one["pair_right"] for one in found] == [0, 0, 1, 1] and found[0]["pair_chance"] == 0.25
    assert found[3]["set_right"] == 0 and found[3]["set_chance"] == 0.25
    assert columns_of(rows[:3])[2] == {}, "of a pair that lacks an image nothing is known"


def test_features_are_found_by_what_they_are_of_and_the_first_stays(tmp_path: Path) -> None:
    first, second = FeatureStore(tmp_path / "cache", "m"), FeatureStore(tmp_path / "cache", "m")
    names = [image_name(b"a"), text_name("a"), pair_name(image_name(b"a"), text_name("a"))]
    assert len({*names, text_name("\ud800")}) == 4
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    first.keep(names, values, 3.0)
    second.keep(names[:1], values[1:2], 1.0)
    found = second.find([*names, image_name(b"b")])
    assert [found[name].tolist() for name in names] == values.tolist() and len(found) == 3
    assert second.missing([image_name(b"b"), *names, image_name(b"b")]) == [image_name(b"b")]
    first.close()
    second.close()


def test_more_names_than_a_query_holds_are_found(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, "m")
    names = [text_name(str(n)) for n in range(2345)]
    store.keep(names, np.arange(2345, dtype=np.float32)[:, None], 1.0)
    found = store.find(names)
    assert [float(found[name][0]) for name in names] == list(range(2345))
    store.close()


def test_seconds_count_each_feature_that_was_asked_for_once(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, "m")
    names = [text_name(word) for word in "abcd"]
    store.keep(names, np.zeros((4, 1), np.float32), 8.0)
    store.find(names[:2])
    store.find(names[1:3])
    assert store.seconds() == pytest.approx(6.0)
    store.start_count()
    assert store.seconds() == 0
    store.close()


def test_a_file_that_is_not_a_store_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "m.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BuildFailed, match=r"m\.sqlite: not a file of features .*remove it"):
        FeatureStore(tmp_path, "m")


def test_damage_within_a_feature_is_noticed(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, "m")
    values = np.random.default_rng(0).normal(size=(4, 2000)).astype(np.float32)  # longer than a page of SQLite's
    names = [text_name(word) for word in "abcd"]
    store.keep(names, values, 1.0)
    store.close()
    path = tmp_path / "m.sqlite"
    damaged = bytearray(path.read_bytes())
    at = damaged.find(values[2].tobytes()[4000:4016])
    damaged[at : at + 400] = bytes(400)
    path.write_bytes(damaged)
    store = FeatureStore(tmp_path, "m")
    assert store.find(names[:2])[names[1]].tolist() == values[1].tolist()
    with pytest.raises(BuildFailed, match=r"m\.sqlite: a feature in it is damaged; remove it"):
        store.find(names)
    store._database.execute("UPDATE features SET value = 'text'")  # any type fits into any column
    with pytest.raises(BuildFailed, match=r"m\.sqlite: a feature in it is damaged; remove it"):
        store.find(names[:1])
    store.close()


def test_a_store_of_another_version_is_named_with_its_remedy(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "m.sqlite") as database:
        database.execute("CREATE TABLE features (name BLOB PRIMARY KEY, value BLOB)")
    with pytest.raises(BuildFailed, match=r"m\.sqlite: .*another version of twinset .*remove it"):
        FeatureStore(tmp_path, "m")


def test_the_cache_lies_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", "/here")
    assert default_cache() == Path("/here/features")
    monkeypatch.delenv("TWINSET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_cache() == Path("/caches/twinset/features")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache/twinset/features"
