"""Where a container's chain of elements is broken: packets are missing there, about which libavformat says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

HEAD = 16  # bytes that tell an element's name and size, in any of these formats
CHUNK = 1 << 20  # bytes searched at a time
# Matroska and WebM (RFC 9559). Every other element that may lie beside or inside a cluster: EBML header, SeekHead,
# Info, Tracks, Cues, Attachments, Chapters, Tags; Timestamp, SimpleBlock, BlockGroup, Position, PrevSize, SilentTracks,
# EncryptedBlock; Void, CRC-32.
SEGMENT, CLUSTER = bytes.fromhex("18538067"), bytes.fromhex("1f43b675")
OTHERS = "1a45dfa3 114d9b74 1549a966 1654ae6b 1c53bb6b 1941a469 1043a770 1254c367 e7 a3 a0 a7 ab 5854 af ec bf"
KNOWN = frozenset(map(bytes.fromhex, OTHERS.split()))
TS_PACKET, TS_SYNC = 188, b"G"  # MPEG-TS (ISO/IEC 13818-1)


def broken_places(path: Path, container: str) -> list[int]:
    """Byte positions at which one element ends and no other starts.

    Args:
        container: libavformat's name of the format; nothing is said of formats other than Matroska, AVI and MPEG-TS.
    """
    if container not in CHAINS:
        return []
    length, marker = CHAINS[container]
    found, place, end = [], 0, path.stat().st_size
    with path.open("rb") as file:
        while 0 <= place < end:
            file.seek(place)
            step = length(file.read(HEAD))
            if step is not None and place + step <= end:
                place += step
            else:
                found.append(place)
                place = _find(file, marker, place + 1)
    return found


def _matroska_length(head: bytes) -> int | None:
    # The number of leading zero bits tells how many bytes a name has, and a size, whose leading one bit does not count.
    width = 9 - head[0].bit_length()
    start = width + 9 - int.from_bytes(head[width : width + 1]).bit_length()
    name = head[:width]
    if name in (SEGMENT, CLUSTER):
        return start  # what it holds comes next
    size = int.from_bytes(head[width:start]) & ((1 << 7 * (start - width)) - 1)
    return start + size if name in KNOWN and start - width < 9 else None


def _avi_length(head: bytes) -> int | None:
    name = head[:4]
    if name in (b"RIFF", b"LIST"):
        return 12  # what it holds comes next
    size = int.from_bytes(head[4:8], "little")
    return 8 + size + size % 2 if name.isascii() and name.decode("ascii").isprintable() else None


def _ts_length(head: bytes) -> int | None:
    return TS_PACKET if head[:1] == TS_SYNC else None


# How long an element is, from its first bytes (None: it is none), and what to look for after a break (nothing: stop).
CHAINS: dict[str, tuple[Callable[[bytes], int | None], bytes]] = {
    "matroska,webm": (_matroska_length, CLUSTER),
    "avi": (_avi_length, b""),
    "mpegts": (_ts_length, TS_SYNC),
}


def _find(file: BinaryIO, marker: bytes, place: int) -> int:
    """Where a marker comes next, -1 if it does not."""
    while marker:
        file.seek(place)
        chunk = file.read(CHUNK)
        if (offset := chunk.find(marker)) >= 0:
            return place + offset
        if len(chunk) < CHUNK:
            break
        place += CHUNK - len(marker) + 1
    return -1
