"""Attack: annotations are a stranger's pickle, which runs no code, fills no memory and takes no time."""

import os
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.video.safe_pickle import load

PLAIN: dict[str, Any] = {
    "text": "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "numbers": (1, -2.5, 10**30, True, None),
    "nested": {"a": [{"b": ()}], "box": (1, 2), "triple": (1, 2, 3), "lone": ("x",), "again": "x"},
    "long": list(range(3000)),
}
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Code(str):
    """What an attacker puts into a pickle: a command."""

    def __reduce__(self) -> Any:
        return os.system, (str(self),)


def saved(folder: Path, value: Any, protocol: int = 4) -> Path:
    path = folder / "annotation.pkl"
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_data_is_read_as_the_standard_library_reads_it(tmp_path: Path, protocol: int) -> None:
    shared = ["shared"]
    read = load(saved(tmp_path, {**PLAIN, "one": shared, "other": shared}, protocol))
    assert read == {**PLAIN, "one": shared, "other": shared}
    assert read["one"] is read["other"]
    assert [type(number) for number in read["numbers"]] == [int, float, int, bool, type(None)]
    load(saved(tmp_path, b"\x80\x02]" + b"(" * 1000 + b"t" * 1000 + b"a."))  # depth is harmless where nothing is hashed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_code_in_a_pickle_does_not_run(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data: .*fetch"):
        load(saved(tmp_path, {"a.mp4/000001.png": [Code(f"touch '{mark}'")]}, protocol))
    assert not mark.exists()


def doubled(depth: int, end: bytes) -> bytes:
    """A tuple of twice a tuple of twice ..., each recalled from the memo, and what is done with it."""
    return b"\x80\x02}" + b")" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(depth)) + end


NOT_DATA: dict[str, Any] = {
    "a class": Path,
    "a set": {1, 2},
    "an object of a class": b"(cos\nsystem\n(S'true'\nto.",
    "a key of doubled tuples, whose hash takes for ever": doubled(40, b"Ns."),
    "such a key of a dictionary from a mark": b"(" + doubled(40, b"Nd.")[3:],
    "a deep key, whose hash overflows the stack": b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.",
    "a number as key": b"\x80\x02}K\x01Ns.",
}


@pytest.mark.parametrize("name", NOT_DATA)
def test_anything_but_data_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data"):
        load(saved(tmp_path, NOT_DATA[name]))


BROKEN = {
    "claimed text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b".",
    "text that is not UTF-8": b"\x80\x04X" + struct.pack("<I", 100_000) + b"\xff" * 100_000 + b".",
    "no list": b"\x80\x02(K\x01e.",
    "nothing remembered": b"\x80\x02h\x01.",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pickle_is_a_short_message_and_fills_no_memory(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, BROKEN[name])
    tracemalloc.start()
    try:
        with pytest.raises(WrongUse, match=r"annotation\.pkl: broken pickle") as refused:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000 and len(str(refused.value)) < 1000
    finally:
        tracemalloc.stop()


def test_parts_that_are_referred_to_again_and_again_are_refused(tmp_path: Path) -> None:
    frames = [list(range(3000))] * 3000  # nine million parts in a file of 20 kB
    with pytest.raises(WrongUse, match="referred to again and again"):
        load(saved(tmp_path, frames))
