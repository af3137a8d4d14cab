"""Changes of any file: its bytes, its place on the disk; and of text: its lines, words and encoding."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

Change = Callable[[Path, Random], str]

#: Values that readers meet in other people's files where they expect something else.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, -0.0, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -1e-320),
    *(float("nan"), float("inf"), "", " ", "x", "0", "-1", "1e5", "NaN", "null", "true", "a\0b", "\ufeff", "\u2028"),
    *(
        "\u202eabc",
        "é" * 300,
        "x" * 70_000,
        "a/b",
        "../../x",
        "/etc/passwd",
        "http://127.0.0.1/x",
        "C:\\x",
        "\n",
        "%s{0}",
    ),
    *("2020-01-01", "None", [], {}, [[]], [None], {"": ""}, {"a": {"b": [1]}}, ["x", 1], b"\xff\x00", (1, 2)),
)


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# Bytes, of any file.


def _span(size: int, random: Random) -> tuple[int, int]:
    """Start and end of a piece, mostly a short one, anywhere or within the header."""
    start = random.randrange(min(size, random.choice((64, 512, size + 1))) + 1)
    return start, min(size, start + random.choice((1, 1, 2, 4, 8, 64, 1024)))


def flip(path: Path, random: Random) -> str:
    data = bytearray(path.read_bytes() or b"\0")
    places = [
        random.randrange(min(len(data), random.choice((256, len(data))))) for _ in range(random.choice((1, 1, 4, 32)))
    ]
    for place in places:
        data[place] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return f"bits flipped at {places[:4]}"


def overwrite(path: Path, random: Random) -> str:
    data = bytearray(path.read_bytes())
    start, end = _span(len(data), random)
    fill = random.choice((b"\0", b"\xff", b"A", b"\x80", b"", b"\n", b"9"))
    data[start:end] = fill * (end - start) if fill else random.randbytes(end - start)
    path.write_bytes(data)
    return f"bytes {start} to {end} overwritten with {fill!r}"


def cut_out(path: Path, random: Random) -> str:
    data = path.read_bytes()
    start, end = _span(len(data), random)
    path.write_bytes(data[:start] + data[end:])
    return f"bytes {start} to {end} cut out"


def put_in(path: Path, random: Random) -> str:
    data = path.read_bytes()
    start, end = _span(len(data), random)
    piece = random.choice(
        (data[start:end], random.randbytes(8), b"\0" * 16, b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"}", b"\r")
    )
    path.write_bytes(data[:start] + piece + data[start:])
    return f"{piece[:16]!r} put in at {start}"


def cut_off(path: Path, random: Random) -> str:
    data = path.read_bytes()
    size = random.choice((0, 1, len(data) // 2, max(0, len(data) - 1), random.randrange(len(data) + 1)))
    path.write_bytes(data[:size])
    return f"cut off after {size} of {len(data)} bytes"


def append(path: Path, random: Random) -> str:
    data = path.read_bytes()
    more = random.choice((data, b"\0" * 1024, b"\n\n", b"x", random.randbytes(100), data[: len(data) // 2]))
    path.write_bytes(data + more)
    return f"{len(more)} bytes appended"


def swap_pieces(path: Path, random: Random) -> str:
    data = path.read_bytes()
    first, second = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    path.write_bytes(data[second:] + data[first:second] + data[:first])
    return f"pieces swapped at {first} and {second}"


def big_number(path: Path, random: Random) -> str:
    """Sizes and counts in binary headers are 4 or 8 bytes."""
    data = bytearray(path.read_bytes())
    size = random.choice((2, 4, 8))
    start = random.randrange(max(1, min(len(data), random.choice((64, 1024, len(data) + 1))) - size))
    value = random.choice((0, 1, 0x7F << 8 * (size - 1), (1 << 8 * size) - 1, 1 << 4 * size))
    data[start : start + size] = value.to_bytes(size, random.choice(("little", "big")))
    path.write_bytes(data)
    return f"{size} bytes at {start} say {value}"


BYTES: tuple[Change, ...] = (flip, overwrite, cut_out, put_in, cut_off, append, swap_pieces, big_number)

# The file as a whole.


def remove(path: Path, _: Random) -> str:
    path.unlink()
    return "removed"


def as_folder(path: Path, _: Random) -> str:
    path.unlink()
    path.mkdir()
    return "a folder in its place"


def link_to_itself(path: Path, random: Random) -> str:
    path.unlink()
    aim = random.choice((path.name, "gone", "."))
    path.symlink_to(aim)
    return f"a link to {aim}"


def other_content(path: Path, random: Random) -> str:
    others = sorted(one for one in path.parent.iterdir() if one.is_file() and one != path)
    content = random.choice(others).read_bytes() if others else b"PAR1" * 3
    path.write_bytes(content)
    return f"content of another file ({content[:8]!r}…)"


def compressed(path: Path, _: Random) -> str:
    path.write_bytes(zlib.compress(path.read_bytes()))
    return "compressed"


WHOLE: tuple[Change, ...] = (remove, as_folder, link_to_itself, other_content, compressed)

# Lines and encodings, of text.


def change_lines(path: Path, random: Random) -> str:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    what = random.choice(("removed", "doubled", "swapped", "many times", "joined", "cut", "quoted", "emptied"))
    if what == "removed":
        del lines[at]
    elif what == "doubled":
        lines.insert(other, lines[at])
    elif what == "swapped":
        lines[at], lines[other] = lines[other], lines[at]
    elif what == "many times":
        lines[at:at] = [lines[at]] * 500
    elif what == "joined":
        lines[at] = lines[at].rstrip(b"\r\n")
    elif what == "cut":
        lines[at] = lines[at][: random.randrange(len(lines[at]) + 1)]
    elif what == "quoted":
        lines[at] = b'"' + lines[at]
    else:
        lines[at] = b"\n"
    path.write_bytes(b"".join(lines))
    return f"line {at + 1} {what}"


def encode(path: Path, random: Random) -> str:
    text = path.read_bytes().decode("utf-8", "replace") + random.choice(("", "é", "\U0001f600"))
    form = random.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7"))
    path.write_bytes(text.encode(form, "replace"))
    return f"encoded as {form}"


def change_ends(path: Path, random: Random) -> str:
    end = random.choice((b"\r\n", b"\r", b"\0", b"\x0b", b" ", "\u2028".encode(), b"\t", b"\n\n"))
    path.write_bytes(path.read_bytes().replace(b"\n", end))
    return f"lines end with {end!r}"


def change_word(path: Path, random: Random) -> str:
    text = path.read_bytes().decode("utf-8", "replace")
    words = sorted({*text.replace(",", " ").replace("\t", " ").split()}) or ["x"]
    word, new = random.choice(words), str(random.choice(ODD))
    path.write_text(text.replace(word, new, random.choice((1, -1))), "utf-8", "surrogatepass")
    return f"{word[:40]!r} is {new[:40]!r}"


LINES: tuple[Change, ...] = (change_lines, encode, change_ends, change_word, change_word, change_lines)
