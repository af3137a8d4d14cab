import sqlite3
from pathlib import Path

import numpy as np
import pytest

from twinset.contracts.errors import BuildFailed
from twinset.evaluation.features.store import FeatureStore, default_cache, image_name, pair_name, text_name


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
