"""Changes of any file's bytes; and of text: its lines, words and encoding."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Change = Callable[[bytes, Random], bytes]

#: Values that readers meet in other people's files where they expect something else.
NUMBERS = (0, 1, -1, 0.5, -0.0, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -1e-320, float("nan"), float("inf"))
WORDS = ("", " ", "x", "0", "-1", "1e5", "NaN", "None", "null", "true", "2020-01-01", "é" * 300, "x" * 70_000, "\n")
MARKS = (
    "a\0b",
    "\ufeff",
    "\u2028",
    "\u202eabc",
    "%s{0}",
    "a/b",
    "../../x",
    "/etc/passwd",
    "http://127.0.0.1/x",
    "C:\\x",
)
NESTED: tuple[Any, ...] = ([], {}, [[]], [None], {"": ""}, {"a": {"b": [1]}}, ["x", 1], (1, 2))
ODD: tuple[Any, ...] = (None, True, False, *NUMBERS, *WORDS, *MARKS, *NESTED, b"\xff\x00")

PIECES = (b"\0" * 16, b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"}", b"\r")
ENDS = (b"\r\n", b"\r", b"\0", b"\x0b", b" ", "\u2028".encode(), b"\t", b"\n\n")
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7")


def flipped(data: bytes, random: Random) -> bytes:
    """Bits are other ones."""
    changed = bytearray(data or b"\0")
    for _ in range(random.choice((1, 1, 4, 32))):
        place = random.randrange(min(len(changed), random.choice((256, len(changed)))))
        changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def spliced(data: bytes, random: Random) -> bytes:
    """A piece, mostly a short one, anywhere or within the header, is removed, overwritten, doubled or inserted."""
    start = random.randrange(min(len(data), random.choice((64, 512, len(data) + 1))) + 1)
    piece = data[start : start + random.choice((1, 1, 2, 4, 8, 64, 1024))]
    new = random.choice(
        (
            b"",
            random.choice((b"\0", b"\xff", b"A", b"\x80", b"\n", b"9")) * len(piece),
            random.randbytes(len(piece)),
            2 * piece,
            random.choice(PIECES) + piece,
            random.randbytes(8) + piece,
        )
    )
    return data[:start] + new + data[start + len(piece) :]


def numbered(data: bytes, random: Random) -> bytes:
    """Sizes and counts in binary headers are 2, 4 or 8 bytes."""
    size = random.choice((2, 4, 8))
    start = random.randrange(max(1, min(len(data), random.choice((64, 1024, len(data) + 1))) - size))
    value = random.choice((0, 1, 0x7F << 8 * (size - 1), (1 << 8 * size) - 1, 1 << 4 * size))
    return data[:start] + value.to_bytes(size, random.choice(("little", "big"))) + data[start + size :]


def resized(data: bytes, random: Random) -> bytes:
    """It ends early, or goes on."""
    if random.random() < 0.5:
        return data[: random.choice((0, 1, len(data) // 2, max(0, len(data) - 1), random.randrange(len(data) + 1)))]
    return data + random.choice((data, data[: len(data) // 2], b"\0" * 1024, b"\n\n", b"x", random.randbytes(100)))


def swapped(data: bytes, random: Random) -> bytes:
    """Pieces stand in another order."""
    first, second = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    return data[second:] + data[first:second] + data[:first]


BYTES: tuple[Change, ...] = (flipped, spliced, spliced, spliced, numbered, resized, resized, swapped)


def other_lines(data: bytes, random: Random) -> bytes:
    """A line is removed, doubled, moved, joined, cut, quoted or emptied."""
    lines = data.splitlines(keepends=True) or [b""]
    at, place = random.randrange(len(lines)), random.randrange(len(lines))
    line = lines[at]
    new = random.choice(([], [line] * 500, [line.rstrip(b"\r\n")], [line[: len(line) // 2]], [b'"' + line], [b"\n"]))
    if random.random() < 0.25:
        lines[at], lines[place] = lines[place], line
    elif random.random() < 0.25:
        lines.insert(place, line)
    else:
        lines[at : at + 1] = new
    return b"".join(lines)


def encoded(data: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "replace") + random.choice(("", "é", "\U0001f600"))
    return text.encode(random.choice(ENCODINGS), "replace")


def other_ends(data: bytes, random: Random) -> bytes:
    """Lines end with something else."""
    return data.replace(b"\n", random.choice(ENDS))


def other_word(data: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    words = sorted({*text.replace(",", " ").replace("\t", " ").split()}) or ["x"]
    changed = text.replace(random.choice(words), str(random.choice(ODD)), random.choice((1, -1)))
    return changed.encode("utf-8", "surrogatepass")


LINES: tuple[Change, ...] = (other_lines, encoded, other_ends, other_word, other_word, other_lines)
