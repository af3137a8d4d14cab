"""Attack: the annotations are a pickle of a stranger, which runs no code, fills no memory and takes no time."""

import collections
import datetime
import os
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.video.safe_pickle import load

PLAIN = {
    "text": "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "numbers": (1, -2.5, 10**30, True, None),
    "bytes": [b"", b"\x00\xff"],
    "nested": {"a": [{"b": ()}], (1, 2): 3},
}
ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
    "empty": np.zeros((0, 4), np.float32),
    "text": np.array(["ab", "c"]),
    "zero-dimensional": np.array(4.0),
    "bools": np.array([True, False]),
}
SCALARS = [np.float32(3.5), np.int64(7), np.bool_(True), np.str_("hi")]


class Code:
    """What an attacker puts into a pickle."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.mark}'",)


class Plain:
    def __repr__(self) -> str:
        return "Plain()"  # part of a test's name, which pytest-xdist wants the same in every process


def saved(folder: Path, value: Any, protocol: int = 4) -> Path:
    path = folder / "annotation.pkl"
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_data_is_read_as_the_standard_library_reads_it(tmp_path: Path, protocol: int) -> None:
    value = {"plain": PLAIN, "arrays": ARRAYS, "again": ARRAYS["floats"], "scalars": SCALARS}
    path = saved(tmp_path, value, protocol)
    read, expected = load(path), pickle.loads(path.read_bytes())
    assert read["plain"] == PLAIN
    for name, array in expected["arrays"].items():
        assert isinstance(read["arrays"][name], np.ndarray)
        assert read["arrays"][name].dtype == array.dtype
        np.testing.assert_array_equal(read["arrays"][name], array)
    assert read["again"] is read["arrays"]["floats"]
    assert read["scalars"] == SCALARS
    assert [type(scalar) for scalar in read["scalars"]] == [type(scalar) for scalar in SCALARS]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_file_that_is_all_array_is_within_bounds(tmp_path: Path, protocol: int) -> None:
    boxes = np.zeros((20_000, 4), np.float32)
    np.testing.assert_array_equal(load(saved(tmp_path, boxes, protocol)), boxes)


def test_text_that_is_not_utf8_is_a_short_message(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.pkl: broken pickle .*can't decode byte 0xff") as raised:
        load(saved(tmp_path, b"\x80\x04X" + struct.pack("<I", 100_000) + b"\xff" * 100_000 + b"."))
    assert len(str(raised.value)) < 1000


def test_sets_of_plain_values_are_read(tmp_path: Path) -> None:
    assert load(saved(tmp_path, [{1, "a"}, frozenset([2])])) == [{1, "a"}, frozenset([2])]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_named_and_does_not_run(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(WrongUse, match=r"annotation\.pkl: .*the global posix\.system, whose code would run; .*fetch"):
        load(saved(tmp_path, {"a.mp4/000001.png": [Code(str(mark))]}, protocol))
    assert not mark.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value",
    [
        Plain(),
        Plain,
        datetime.date(2020, 1, 1),
        collections.OrderedDict(a=1),
        collections.defaultdict(list),
        np.array([1, {}], dtype=object),
        np.zeros(2, dtype=[("a", "i4")]),
        np.datetime64("2020-01-01"),
        slice(1),
    ],
    ids=repr,
)
def test_anything_but_data_is_refused(tmp_path: Path, value: Any, protocol: int) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data"):
        load(saved(tmp_path, value, protocol))


FORBIDDEN = {
    "old-style instance": b"(ios\nsystem\n.",
    "object of a class": b"(cos\nsystem\n(S'true'\nto.",
    "call of data": b"S'b'\n(S'a'\ntR.",
    "builtin eval": b"cbuiltins\neval\n(S'1'\ntR.",
    "state for a list": b"]}b.",
    "persistent id": b"Pabc\n.",
    "extension": b"\x82\x01.",
    "other codec": b"c_codecs\nencode\n(S'a'\nS'zip'\ntR.",
    "dtype of a list": b"cnumpy\ndtype\n((ltR.",
    "array called": b"cnumpy\nndarray\n((I9\nttR.",
    "state for a function": b"c_codecs\nencode\n}b.",
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN)
def test_crafted_operations_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.pkl: (this pickle holds more than plain data|broken pickle)"):
        load(saved(tmp_path, FORBIDDEN[name]))


BOMBS = {
    "claimed bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b".",
    "claimed bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
    "claimed frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b".",
    "claimed memo": b"\x80\x02Nr\xff\xff\xff\x7f0",
    "claimed shape": pickle.dumps(np.zeros(3), 2).replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"),
    "one text copied": b"\x80\x02c_codecs\nencode\nq\x00X" + struct.pack("<I", 200_000) + b"x" * 200_000
    + b"q\x010(" + b"h\x00h\x01\x85R" * 1000 + b"l.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_cannot_fill_the_memory(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, BOMBS[name])
    tracemalloc.start()
    try:
        with pytest.raises(WrongUse, match=r"annotation\.pkl: broken pickle"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_pickle_cut_short_anywhere_is_broken(tmp_path: Path) -> None:
    whole = pickle.dumps({"plain": PLAIN, "arrays": ARRAYS}, protocol=4)
    for end in range(0, len(whole), 7):
        with pytest.raises(WrongUse, match=r"annotation\.pkl: "):
            load(saved(tmp_path, whole[:end]))


def test_random_damage_is_read_as_data_or_refused(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    whole = np.frombuffer(pickle.dumps({"plain": PLAIN, "arrays": ARRAYS, "scalars": SCALARS}, protocol=2), np.uint8)
    refused = 0
    for _ in range(500):
        damaged = whole.copy()
        damaged[draw.integers(len(whole), size=3)] = draw.integers(256, size=3)
        try:
            load(saved(tmp_path, damaged.tobytes()))
        except WrongUse:
            refused += 1
    assert refused > 100


def doubled(depth: int, end: bytes) -> bytes:
    """A tuple of twice a tuple of twice ..., each recalled from the memo, and what is done with it."""
    return b"\x80\x02}" + b")" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(depth)) + end


FLAT = b"(" + b"K\x01" * 17 + b"t"
COSTLY_KEYS = {
    "doubled tuples as a key": doubled(40, b"Ns."),
    "doubled tuples as keys at once": b"\x80\x02}(" + doubled(40, b"Nu.")[3:],
    "a dictionary from a mark": b"(" + doubled(40, b"Nd.")[3:],
    "in a set": b"\x80\x04\x8f(" + doubled(40, b"\x90.")[3:],
    "in a frozen set": b"\x80\x04(" + doubled(40, b"\x91.")[3:],
    "recalled": b"\x80\x02}" + doubled(40, b"q\x640h\x64Ns.")[3:],
    "duplicated": doubled(40, b"2Ns."),
    "deep": b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.",
    "long": b"\x80\x02}" + FLAT + b"Ns.",
    "equal hashes": b"\x80\x02}\x8a\x09" + ((1 << 61) - 1 << 8).to_bytes(9, "little") + b"Ns.",
    "equal hashes of floats": b"\x80\x02}G" + struct.pack(">d", 2.5) + b"Ns.",
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY_KEYS)
def test_keys_that_are_costly_to_hash_are_refused(tmp_path: Path, name: str) -> None:
    """Attack: 55 bytes whose hash takes for ever, or a megabyte that overflows the machine's stack."""
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data: a key or a member"):
        load(saved(tmp_path, COSTLY_KEYS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("end", [b".", b"0."])
def test_depth_and_recalled_values_are_harmless_where_nothing_is_hashed(tmp_path: Path, end: bytes) -> None:
    load(saved(tmp_path, doubled(200, end)))
    load(saved(tmp_path, b"\x80\x02})" + b"\x85" * 1_000_000 + end))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_keys_of_plain_data_are_read(tmp_path: Path, protocol: int) -> None:
    value: Any = {"a.mp4/000001.png": [{"bbox": (1.5, [2.5])}], ("a", 1, None, True): {7: {}}, 1: 2}
    value["again"] = value["a.mp4/000001.png"]
    if protocol > 3:  # older ones hold a set as a call
        value["set"] = {("a", 1), 2}
    assert load(saved(tmp_path, value, protocol)) == value
