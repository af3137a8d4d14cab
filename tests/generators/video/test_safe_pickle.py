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
def test_data_is_read_as_the_standard_library_reads_it_and_code_does_not_run(tmp_path: Path, protocol: int) -> None:
    plain: dict[str, Any] = {
        "text": "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "numbers": (1, -2.5, 10**30, True, None),
        "nested": {"a": [{"b": ()}], "box": (1, 2), "triple": (1, 2, 3), "lone": ("x",), "again": "x"},
        "long": list(range(3000)),
    }
    plain["one"] = plain["other"] = ["shared"]
    read = load(saved(tmp_path, plain, protocol))
    assert read == plain and read["one"] is read["other"]
    assert [type(number) for number in read["numbers"]] == [int, float, int, bool, type(None)]
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data: .*fetch"):
        load(saved(tmp_path, {"a.mp4/000001.png": [Code(f"touch '{tmp_path}/ran'")]}, protocol))
    assert not (tmp_path / "ran").exists()
    load(saved(tmp_path, b"\x80\x02]" + b"(" * 1000 + b"t" * 1000 + b"a."))  # depth is harmless where nothing is hashed


def doubled(depth: int, end: bytes) -> bytes:
    """A tuple of twice a tuple of twice ..., each recalled from the memo, and what is done with it."""
    return b"\x80\x02}" + b")" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(depth)) + end


NOT_DATA, BROKEN = "this pickle holds more than plain data", "broken pickle"
REFUSED: dict[str, tuple[str, Any]] = {
    "a class": (NOT_DATA, Path),
    "a set": (NOT_DATA, {1, 2}),
    "an object of a class": (NOT_DATA, b"(cos\nsystem\n(S'true'\nto."),
    "a key of doubled tuples, whose hash takes for ever": (NOT_DATA, doubled(40, b"Ns.")),
    "such a key of a dictionary from a mark": (NOT_DATA, b"(" + doubled(40, b"Nd.")[3:]),
    "a deep key, whose hash overflows the stack": (NOT_DATA, b"\x80\x02})" + b"\x85" * 300_000 + b"Ns."),
    "a number as key": (NOT_DATA, b"\x80\x02}K\x01Ns."),
    "claimed text": (BROKEN, b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"."),
    "text that is not UTF-8": (BROKEN, b"\x80\x04X" + struct.pack("<I", 100_000) + b"\xff" * 100_000 + b"."),
    "no list": (BROKEN, b"\x80\x02(K\x01e."),
    "nothing remembered": (BROKEN, b"\x80\x02h\x01."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_but_data_is_refused_by_a_short_message_and_fills_no_memory(name: str, tmp_path: Path) -> None:
    problem, value = REFUSED[name]
    path = saved(tmp_path, value)
    tracemalloc.start()
    try:
        with pytest.raises(WrongUse, match=rf"annotation\.pkl: {problem}") as refused:
            load(path)
        assert problem is NOT_DATA or tracemalloc.get_traced_memory()[1] < 4_000_000
        assert len(str(refused.value)) < 1000
    finally:
        tracemalloc.stop()
