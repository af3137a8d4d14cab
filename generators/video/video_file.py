"""An open video file: its packets without decoding, entering it at a key frame, decoding (PyAV)."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import av
from av.codec.context import Flags
from av.stream import Disposition
from av.video.stream import VideoStream

from twinset.generators.video.timeline import MICROSECONDS

# With its place: how many packets of the stream lie before it in the file.
PlacedPacket: TypeAlias = "tuple[int, av.Packet[VideoStream]]"

# What a video file may be. A file is opened by what it holds, not by its name: a playlist called VIDEO.mp4 must not
# make libavformat open other files or addresses.
DEMUXERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg"
OPEN_OPTIONS = {"format_whitelist": DEMUXERS, "protocol_whitelist": "file"}
# Titles need not be UTF-8. PyAV 19 has no such argument: it never fails by them.
_METADATA: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
MAX_PIXELS = 1 << 26  # a frame: 8,192 x 8,192
#: Formats whose reader, where a file is broken, goes on behind the break; and bytes that may lie between two packets.
RESUMED, BETWEEN = frozenset(("matroska,webm", "avi")), 128
# Codecs whose every packet is one shown frame with the packet's own pts, so that demuxing tells all there is to know.
# Others hide or pack frames (VP8, MPEG-4), and AVI has no pts: there frames are decoded from the start, twice (to list
# them, then to take the wanted ones).
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "vp9", "av1"})
HELD_BACK = 16  # frames that wait for earlier ones to be shown, at most (H.264)

log = logging.getLogger(__name__)


class BrokenMedia(Exception):
    """A file that is no video, or of which nothing can be decoded; the message names the file and what is wrong."""


class ListedPacket(NamedTuple):
    """A packet without its data: times in ticks; whether it is a key frame; False where an edit list hides it."""

    pts: int | None
    dts: int | None
    duration: int
    key: bool
    shown: bool


@contextmanager
def open_video(path: Path) -> Iterator["VideoFile"]:
    """An open video; raises `BrokenMedia` where it is none, and for what libav raises meanwhile."""
    try:
        file = VideoFile(path)
        try:
            yield file
        finally:
            file.container.close()
    except av.FFmpegError as error:  # also for more memory than any video needs
        raise BrokenMedia(f"{path.name}: {error.strerror or error}; get the file anew") from error


class VideoFile:
    """The video stream of a file that ffmpeg would choose.

    listed: its packets in decoding order. places: place in this list of each pts.
    damaged: places of packets that are cut short, or after which packets are missing.
    cut_off: whether the file ends before it should.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()
        self.format = self.container.format.name
        self.codec = self.stream.codec_context.codec.canonical_name
        self.listed: list[ListedPacket] = []
        self.damaged: set[int] = set()
        self.cut_off = False
        self._head: list[PlacedPacket] = []
        self._list()
        self.places = {packet.pts: n for n, packet in enumerate(self.listed)}

    @cached_property
    def tells_frames(self) -> bool:
        """Whether sorting packets by pts gives the frames: each has one of its own, and the first is shown first."""
        known = [packet.pts for packet in self.listed if packet.pts is not None]
        if not known or not len(self.places) == len(known) == len(self.listed) or known[0] != min(known):
            return False
        return self.listed[0].key and self.codec in ONE_FRAME_A_PACKET and self.format != "avi"

    def entrance(self, place: int) -> int:
        """Place of the last key frame that is decoded before a frame, or with it, and shown no later than it.

        A frame that follows an open GOP's key frame in the file but is shown before it needs the key frame before.
        """
        tick = self.listed[place].pts or 0
        before = range(place, 0, -1)
        return next((n for n in before if self.listed[n].key and (self.listed[n].pts or 0) <= tick), 0)

    def packets(self) -> Iterator[PlacedPacket]:
        """Packets from the start of the file to the end, or to where it is broken; for a fresh decoder."""
        self._reopen()
        yield from self._placed()

    def packets_from(self, entrance: int) -> Iterator[PlacedPacket]:
        """Packets from the place ``entrance`` on, wherever the container's own index leads to."""
        # libavformat's MP4 reader takes the tick for a pts: sought by dts, it enters at the key frame before. None
        # stands for reading from the start.
        for tick in (self.listed[entrance].pts, self.listed[entrance].dts, None):
            self._seek(tick)
            started = False
            for _, packet in self._placed():
                place = self.places.get(packet.pts, -1)
                if not started and place > entrance:
                    break  # the index led too far
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
            except av.FFmpegError as error:
                log.info("%s: %s", self.path.name, error)
                damaged.add(place)
                continue
            for frame in frames:
                (source,) = cast("list[int] | None", frame.opaque) or [place]
                if frame.is_corrupt:
                    damaged.add(source)
                yield source, frame

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

    def _reopen(self) -> None:
        self.container.close()
        self._open()

    def _seek(self, tick: int | None) -> None:
        """Go to the key frame that the container's index has for a tick; without one, to the start."""
        if tick is None:
            self._reopen()
            return
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
            self._reopen()

    def _placed(self) -> Iterator[PlacedPacket]:
        yield from enumerate(packet for packet in self._demuxed(self.stream) if packet.size)

    def _demuxed(self, *streams: VideoStream) -> Iterator[Any]:
        """Packets of some streams, or of all, as the file has them."""
        try:
            yield from self.container.demux(*streams)
        except av.FFmpegError as error:
            log.info("%s: ends early: %s", self.path.name, error)
            self.cut_off = True

    def _list(self) -> None:
        """List the packets without decoding: milliseconds for a minute of video."""
        gaps = set[int]()
        ends = Counter[int]()  # of each stream, in its ticks
        before = None  # the last packet of any stream
        for packet in self._demuxed():
            place = len(self.listed)
            if place and self.format in RESUMED and _are_apart(before, packet):
                gaps.add(place - 1)
            before = packet
            tick = packet.dts if packet.pts is None else packet.pts  # AVI has no pts
            if tick is not None:
                ends[packet.stream.index] = max(ends[packet.stream.index], tick + (packet.duration or 0))
            if packet.stream is self.stream and packet.size:
                self._head = self._head or [(0, packet)]
                if packet.is_corrupt:
                    # In MPEG-TS, whose parts are counted: the parser, a packet ahead, may mean the next one.
                    self.damaged |= {place, place + 1}
                times = packet.pts, packet.dts, packet.duration or 0
                self.listed.append(ListedPacket(*times, packet.is_keyframe, not packet.is_discard))
        count, avi = len(self.listed), self.format == "avi"
        if avi and count in (self.stream.frames, sum(entry.size > 0 for entry in self.stream.index_entries)):
            gaps = set()  # all are there, empty packets between them
        gaps -= {count - 1}
        fewer = self.stream.frames > count and not avi  # whose header counts empty packets, too
        self.cut_off |= bool(self.damaged) or fewer or self._falls_short(ends)
        self.damaged = (self.damaged - {count}) | gaps
        if avi and gaps:
            # AVI counts packets instead of timing them: after a gap all times are wrong, and so are those of the
            # frames that a decoder holds back there.
            del self.listed[min(gaps) + 1 :]
            self.damaged |= set(range(max(min(gaps) - HELD_BACK, 0), min(gaps)))
            self.cut_off = True
        if self.cut_off or self.damaged:
            self._reopen()  # a demuxer may remember where it stumbled

    def _falls_short(self, ends: Counter[int]) -> bool:
        """Whether every stream ends more than a second before the file's header says: a download that was cut off."""
        said = self.container.duration or 0
        if self.format != "matroska,webm":  # whose duration counts from 0, not from the first packet
            said += self.container.start_time or 0
        reached = max((end * (self.container.streams[n].time_base or 0) for n, end in ends.items()), default=0)
        return float(reached) + 1 < said / MICROSECONDS


def _are_apart(before: Any, packet: Any) -> bool:
    """Whether so much lies between two packets of a file that others must have been there."""
    if before.pos is None or packet.pos is None:
        return False
    gap = packet.pos - before.pos - before.size
    return bool(gap > BETWEEN and gap > BETWEEN + sum(data.buffer_size for data in before.iter_sidedata()))


def _preference(stream: VideoStream) -> int:
    """How much ffmpeg's command line (4.2 to 5.1) prefers a video stream: default ones, then by size; covers last."""
    if stream.codec_context is None or Disposition.attached_pic in stream.disposition:
        return 0
    default = Disposition.default in stream.disposition
    return stream.codec_context.width * stream.codec_context.height + 5_000_000 * default
