"""An open video file: its packets without decoding, entering it at a key frame, decoding (PyAV)."""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import av
from av.codec.context import Flags
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream


@dataclass
class PacketTable:
    """The packets of a video stream in decoding order, without their data: one entry a packet in every column.

    pts, dts, durations: in ticks of the stream.
    keys: whether it holds a key frame. shown: False for what an edit list hides.
    damaged: places (0-based) of packets that are cut short, or after which packets are missing.
    truncated: whether the file ends before it should.
    """

    pts: Sequence[int | None] = ()
    dts: Sequence[int | None] = ()
    durations: Sequence[int] = ()
    keys: Sequence[bool] = ()
    shown: Sequence[bool] = ()
    damaged: frozenset[int] = frozenset()
    truncated: bool = False

    @cached_property
    def place(self) -> dict[int | None, int]:
        """Place of each pts."""
        return {pts: n for n, pts in enumerate(self.pts)}

    @property
    def tells_frames(self) -> bool:
        """Whether sorting by pts gives the frames: every pts is there, once, and the first packet is shown first."""
        known = [pts for pts in self.pts if pts is not None]
        once = bool(known) and len(self.place) == len(known) == len(self.pts)
        return once and self.keys[0] and known[0] == min(known)

    def entrance(self, place: int) -> int:
        """Place of the last key frame that is decoded before a frame, or with it, and shown no later than it.

        A frame that follows an open GOP's key frame in the file but is shown before it needs the key frame before.
        """
        tick = self.pts[place]
        for n in range(place, -1, -1):
            pts = self.pts[n]
            if self.keys[n] and pts is not None and tick is not None and pts <= tick:
                return n
        return 0


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


# With its place: how many packets of the stream lie before it in the file.
PlacedPacket: TypeAlias = "tuple[int, av.Packet[VideoStream]]"

# What a video file may be. A file is opened by what it holds, not by its name: a playlist called VIDEO.mp4 must not
# make libavformat open other files or addresses.
DEMUXERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg"
OPEN_OPTIONS = {"format_whitelist": DEMUXERS, "protocol_whitelist": "file"}
# Titles need not be UTF-8. PyAV 19 has no such argument: it never fails by them.
_METADATA: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
MICROSECONDS = 1_000_000  # libavformat's clock of a whole file
MAX_PIXELS = 1 << 26  # a frame: 8,192 x 8,192
HELD_BACK = 16  # frames that wait for earlier ones to be shown, at most (H.264)

log = logging.getLogger(__name__)


class BrokenMedia(Exception):
    """A file that is no video, or of which nothing can be decoded; the message names the file and what is wrong."""


class VideoFile:
    """The video stream of a file that ffmpeg would choose. Raises `av.FFmpegError` or `BrokenMedia` on opening."""

    container: InputContainer
    stream: VideoStream
    _fresh: bool

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head: list[PlacedPacket] = []
        self._ends_early = False
        self._open()

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(self, *raised: object) -> None:
        self.container.close()

    @property
    def codec_name(self) -> str:
        """Name of the coding format, whichever decoder reads it."""
        return self.stream.codec_context.codec.canonical_name

    def scan(self) -> PacketTable:
        """List the packets of a file just opened, without decoding: milliseconds for a minute of video."""
        pts: list[int | None] = []
        dts: list[int | None] = []
        durations: list[int] = []
        keys: list[bool] = []
        shown: list[bool] = []
        positions: list[int] = []
        damaged = set()
        for place, packet in self.packets():  # column by column: a tuple a packet takes a tenth of the whole reading
            if not place:
                self._head = [(place, packet)]
            pts.append(packet.pts)
            dts.append(packet.dts)
            durations.append(packet.duration or 0)
            keys.append(packet.is_keyframe)
            shown.append(not packet.is_discard)
            positions.append(packet.pos or 0)
            if packet.is_corrupt:
                damaged.add(place)
        avi = self.container.format.name == "avi"  # whose header counts empty packets, too
        truncated = self._ends_early or bool(damaged) or (self.stream.frames > len(pts) and not avi)
        if gaps := self._before_gaps(positions):
            damaged |= gaps
            if avi:
                # AVI counts packets instead of timing them: after a gap all times are wrong, and so are those of the
                # frames that a decoder holds back there.
                for column in (pts, dts, durations, keys, shown):
                    del column[min(gaps) + 1 :]
                truncated = True
                damaged |= set(range(max(min(gaps) - HELD_BACK, 0), min(gaps)))
        if truncated or damaged:
            self.rewind()  # a demuxer may remember where it stumbled
        return PacketTable(pts, dts, durations, keys, shown, frozenset(damaged), truncated)

    def _before_gaps(self, positions: Sequence[int]) -> set[int]:
        """Places of packets after which some are missing, from all packets' positions in the file."""
        container = self.container.format.name
        if container == "avi" and self.stream.frames <= len(positions):
            return set()  # all are there, however they are laid out
        found = {bisect(positions, broken) - 1 for broken in broken_places(self.path, container)}
        return {place for place in found if 0 <= place < len(positions) - 1}

    def packets(self) -> Iterator[PlacedPacket]:
        """Packets from the start of the file (after `rewind`) to the end, or to where the file is broken."""
        try:
            yield from enumerate(filter(attrgetter("size"), self.container.demux(self.stream)))
        except av.error.MemoryError:
            raise
        except av.FFmpegError as error:
            log.info("%s: ends early: %s", self.path.name, error)
            self._ends_early = True

    def packets_from(self, table: PacketTable, entrance: int) -> Iterator[PlacedPacket]:
        """Packets from the place ``entrance`` on, wherever the container's own index leads to."""
        # libavformat's MP4 reader takes the tick for a pts: sought by dts, it enters at the key frame before.
        ticks = [tick for tick in (table.pts[entrance], table.dts[entrance]) if tick is not None]
        moves: list[Callable[[], None]] = [*(partial(self._seek, tick) for tick in ticks), self.rewind]
        for move in moves:
            move()
            started = False
            for _, packet in self.packets():
                place = table.place.get(packet.pts, -1)
                if not started and place > entrance:
                    break  # the index led too far: read from the start
                started = started or place == entrance
                if started:
                    yield place, packet
            if started:
                return

    def decode(
        self, packets: Iterable[PlacedPacket], damaged: set[int] | None = None
    ) -> Iterator[tuple[int, av.VideoFrame]]:
        """Frames in presentation order, each with the place of its packet; what the decoder refuses is left out.

        damaged: is given the places of packets that the decoder refuses, or of which it can decode a part only.
        """
        damaged = set() if damaged is None else damaged
        for place, packet in chain(packets, ((-1, None),)):
            if packet is not None:
                packet.opaque = [place]  # handed on to the frame; a list, since PyAV knows opaque objects by their id
            try:
                frames = self.stream.codec_context.decode(packet)
            except av.error.MemoryError:
                raise
            except av.FFmpegError as error:
                log.info("%s: %s", self.path.name, error)
                damaged.add(place)
                continue
            for frame in frames:
                (source,) = cast("list[int] | None", frame.opaque) or [place]
                if frame.is_corrupt:
                    damaged.add(source)
                yield source, frame

    def falls_short(self) -> bool:
        """Whether every stream ends more than a second before the file's header says: a download that was cut off."""
        self.rewind()
        said = self.container.duration or 0
        if "matroska" not in self.container.format.name:  # whose duration counts from 0, not from the first packet
            said += self.container.start_time or 0
        reached = 0.0
        try:
            for packet in self.container.demux():
                tick = packet.dts if packet.pts is None else packet.pts  # AVI has no pts
                if tick is not None:
                    reached = max(reached, float((tick + (packet.duration or 0)) * packet.time_base))
        except av.error.MemoryError:
            raise
        except av.FFmpegError:
            return True
        return reached + 1 < said / MICROSECONDS

    def rewind(self) -> None:
        """Start anew at the first packet, with a fresh decoder."""
        self.container.close()
        self._open()

    def _seek(self, tick: int) -> None:
        if self._fresh:
            # A decoder learns things from the first frame that later key frames do not repeat: of x264's version, whose
            # 4:4:4 pictures were once coded wrongly, and without it decodes other pixels.
            for _ in self.decode(self._head):
                pass
            self._fresh = False
        self.stream.codec_context.flush_buffers()
        try:
            self.container.seek(tick, stream=self.stream)
        except av.FFmpegError:
            self.rewind()

    def _open(self) -> None:
        self.container = av.open(str(self.path), options=OPEN_OPTIONS, **_METADATA)
        stream = max(self.container.streams.video, key=_preference, default=None)
        if stream is None or stream.codec_context is None:
            self.container.close()
            raise BrokenMedia(f"{self.path.name}: holds no video that can be decoded; get the file anew")
        self.stream, codec = stream, stream.codec_context
        self._fresh = True
        codec.thread_count = 1
        codec.copy_opaque = True
        codec.flags |= Flags.bitexact  # MPEG-4's inverse transform otherwise differs with the CPU
        if codec.width * codec.height > MAX_PIXELS:
            self.container.close()
            raise BrokenMedia(f"{self.path.name}: {codec.width} x {codec.height} pixels are no sane video")


def _preference(stream: VideoStream) -> int:
    """How much ffmpeg's command line (4.2 to 5.1) prefers a video stream: default ones, then by size; covers last."""
    if stream.codec_context is None or Disposition.attached_pic in stream.disposition:
        return 0
    default = Disposition.default in stream.disposition
    return stream.codec_context.width * stream.codec_context.height + 5_000_000 * default
