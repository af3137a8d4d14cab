"""The packets of an MP4 file as its index lists them, without reading the file through (ISO/IEC 14496-12)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from av.video.stream import VideoStream
from numpy.typing import NDArray

from generators.video.container.packets import PacketTable

TRACK_ID = {0: 12, 1: 20}  # offset in a track header ('tkhd', section 8.3.2) by the box's version


def indexed_packets(path: Path, stream: VideoStream, first_pts: int) -> PacketTable | None:
    """The table that demuxing the whole stream gives, or None where the index alone does not tell it.

    libavformat lists the samples with decoding times on its own clock, but not how much later each is shown; the file's
    composition offsets say that. first_pts: of the first packet, which ties the two clocks together. None for what is
    not in one such index (fragments, several sample descriptions), for files that are cut off, for edit lists that hide
    or move samples and for frames shown in decoding order, where each packet's duration counts.
    """
    entries = [(e.timestamp, e.pos, e.size, e.is_keyframe, e.is_discard) for e in stream.index_entries]
    if not entries or len(entries) != stream.frames or any(hidden for *_, hidden in entries):
        return None
    offsets = composition_offsets(path, stream.id, len(entries))
    if offsets is None:
        return None
    dts, place, size = np.array([entry[:3] for entry in entries], np.int64).T
    pts = dts + offsets + (first_pts - dts[0] - offsets[0])
    whole = (size > 0).all() and (place + size <= path.stat().st_size).all()
    # Samples that an edit list moves or repeats step back in the file or in time.
    in_order = (np.diff(dts) > 0).all() and (np.diff(place) > 0).all() and (pts >= dts).all()
    if not (whole and in_order) or (pts == dts).all():
        return None
    durations = np.diff(dts, append=dts[-1])
    keys = [entry[3] for entry in entries]
    return PacketTable(pts.tolist(), dts.tolist(), durations.tolist(), keys, [True] * len(keys))


def composition_offsets(path: Path, track: int, count: int) -> NDArray[np.int64] | None:
    """(count,) ticks by which each sample of a track is shown after its decoding time ('ctts', section 8.6.1.3).

    None where the file has no such list of this length.
    """
    with path.open("rb") as file:
        for moov in _boxes(file, b"moov", (0, path.stat().st_size)):
            for trak in _boxes(file, b"trak", moov):
                for start, end in _boxes(file, b"tkhd", trak):
                    header = _read(file, start, min(end, start + 24))
                    place = TRACK_ID.get(header[0], 24) if header else 24
                    if header[place : place + 4] == struct.pack(">I", track):
                        return _offsets(file, trak, count)
    return None


def _offsets(file: BinaryIO, trak: tuple[int, int], count: int) -> NDArray[np.int64] | None:
    boxes = [trak]
    for kind in (b"mdia", b"minf", b"stbl", b"ctts"):
        boxes = [inner for box in boxes for inner in _boxes(file, kind, box)]
    if len(boxes) != 1:
        return None
    (start, end), head = boxes[0], 8  # version, flags and the number of runs
    data = _read(file, start + head, end)
    runs = np.frombuffer(data[: len(data) // 8 * 8], np.dtype([("samples", ">u4"), ("offset", ">i4")]))
    samples = runs["samples"].astype(np.int64)
    return np.repeat(runs["offset"].astype(np.int64), samples) if samples.sum() == count else None


def _boxes(file: BinaryIO, kind: bytes, within: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Where the contents of the boxes of one kind start and end, among those that follow one another in a range."""
    place, end = within
    while place + 8 <= end:
        size, name, large = struct.unpack(">I4sQ", _read(file, place, place + 16).ljust(16, b"\0"))
        head = 16 if size == 1 else 8
        size = large if size == 1 else size or end - place
        if size < head or place + size > end:
            return
        if name == kind:
            yield place + head, place + size
        place += size


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)
