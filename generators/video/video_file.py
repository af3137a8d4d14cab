"""An open video file: its packets without decoding, entering it at a key frame, decoding (PyAV)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, cast

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


#: Formats whose reader, where a file is broken, goes on behind the break; and bytes that may lie between two packets.
RESUMED, BETWEEN = frozenset(("matroska,webm", "avi")), 128

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
        damaged, gaps = set[int](), set[int]()
        name = self.container.format.name
        listed = sum(entry.size > 0 for entry in self.stream.index_entries) if name == "avi" else 0
        before: av.Packet[Any] | None = None  # of any stream
        for packet in self._demuxed():
            if pts and name in RESUMED and before is not None and _are_apart(before, packet):
                gaps.add(len(pts) - 1)
            before = packet
            if packet.stream is self.stream and packet.size:
                if not pts:
                    self._head = [(0, packet)]
                pts.append(packet.pts)
                dts.append(packet.dts)
                durations.append(packet.duration or 0)
                keys.append(packet.is_keyframe)
                shown.append(not packet.is_discard)
                if packet.is_corrupt:
                    # In MPEG-TS, whose parts are counted: the parser, a packet ahead, may mean the next one.
                    damaged |= {len(pts) - 1, len(pts)}
        avi = name == "avi"  # whose header counts empty packets, too
        truncated = self._ends_early or bool(damaged) or (self.stream.frames > len(pts) and not avi)
        damaged -= {len(pts)}
        gaps -= {len(pts) - 1}
        if avi and len(pts) in (listed, self.stream.frames):
            gaps = set()  # all are there, empty packets between them
        damaged |= gaps
        if avi and gaps:
            # AVI counts packets instead of timing them: after a gap all times are wrong, and so are those of the
            # frames that a decoder holds back there.
            for column in (pts, dts, durations, keys, shown):
                del column[min(gaps) + 1 :]
            truncated = True
            damaged |= set(range(max(min(gaps) - HELD_BACK, 0), min(gaps)))
        if truncated or damaged:
            self.rewind()  # a demuxer may remember where it stumbled
        return PacketTable(pts, dts, durations, keys, shown, frozenset(damaged), truncated)

    def packets(self) -> Iterator[PlacedPacket]:
        """Packets from the start of the file (after `rewind`) to the end, or to where the file is broken."""
        yield from enumerate(filter(attrgetter("size"), self._demuxed(self.stream)))

    def _demuxed(self, *streams: VideoStream) -> Iterator[Any]:
        """Packets of some streams, or of all, as the file has them."""
        try:
            yield from self.container.demux(*streams)
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


def _are_apart(before: av.Packet[Any], packet: av.Packet[Any]) -> bool:
    """Whether so much lies between two packets of a file that others must have been there."""
    if before.pos is None or packet.pos is None:
        return False
    gap = packet.pos - before.pos - before.size
    return gap > BETWEEN and gap > BETWEEN + sum(data.buffer_size for data in before.iter_sidedata())


def _preference(stream: VideoStream) -> int:
    """How much ffmpeg's command line (4.2 to 5.1) prefers a video stream: default ones, then by size; covers last."""
    if stream.codec_context is None or Disposition.attached_pic in stream.disposition:
        return 0
    default = Disposition.default in stream.disposition
    return stream.codec_context.width * stream.codec_context.height + 5_000_000 * default
