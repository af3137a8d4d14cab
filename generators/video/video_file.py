"""An open video file: its packets without decoding, entering it at a key frame, decoding (PyAV)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import av
from av.codec.context import Flags
from av.stream import Disposition
from av.video.stream import VideoStream

from twinset.generators.video.timeline import MICROSECONDS

# What a video file may be. A file is opened by what it holds, not by its name: a playlist called VIDEO.mp4 must not
# make libavformat open other files or addresses.
DEMUXERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg"
OPEN_OPTIONS = {"format_whitelist": DEMUXERS, "protocol_whitelist": "file"}
# Titles need not be UTF-8. PyAV 19 has no such argument: it never fails by them.
_METADATA: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
MAX_PIXELS = 1 << 26  # a frame: 8,192 x 8,192
MATROSKA = "matroska,webm"
BETWEEN = 128  # bytes that may lie between two packets of a Matroska file: heads of clusters and blocks
#: Formats whose header says how long the file lasts, counted from 0.
TIMED = (MATROSKA, "avi", "flv", "asf")
# Codecs whose every packet is one shown frame with the packet's own pts, so that demuxing tells all there is to know.
# Others hide or pack frames (VP8, MPEG-4), and AVI has no pts: there frames are decoded from the start, twice (to list
# them, then to take the wanted ones).
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "vp9", "av1"})


class BrokenMedia(Exception):
    """A file that is no video, or is damaged; the message names the file and what is wrong."""


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
    """The video stream of a file that ffmpeg would choose. listed: its packets in decoding order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()
        self.format = self.container.format.name
        self.listed: list[ListedPacket] = []
        self._list()

    @cached_property
    def tells_frames(self) -> bool:
        """Whether sorting packets by pts gives the frames: each has one of its own, and the first is shown first."""
        known = [packet.pts for packet in self.listed if packet.pts is not None]
        if not known or not len(set(known)) == len(known) == len(self.listed) or known[0] != min(known):
            return False
        codec = self.stream.codec_context.codec.canonical_name
        return self.listed[0].key and codec in ONE_FRAME_A_PACKET and self.format != "avi"

    @cached_property
    def keys(self) -> dict[int, int]:
        """The tick to seek for each key frame, by its pts.

        It is the dts, since some readers enter behind the frame where sought by pts. MP4's takes it for a pts.
        """
        ticks = [(packet.pts, packet.dts) for packet in self.listed if packet.key]
        return {pts: pts if dts is None else min(pts, dts) for pts, dts in ticks if pts is not None}

    def packets(self) -> Iterator["av.Packet[VideoStream]"]:
        """All packets, for a fresh decoder."""
        self.container.close()
        self._open()
        yield from self._demuxed()

    def packets_from(self, start: int, wanted: Collection[int]) -> Iterator["av.Packet[VideoStream]"]:
        """Packets from the key frame at ``start`` to the last of the wanted frames.

        The decoder leaves out other frames to which none refers.
        """
        codec = self.stream.codec_context
        codec.flush_buffers()
        self.container.seek(self.keys[start], stream=self.stream)
        left, started = {start, *wanted}, False
        for packet in self._demuxed():
            started = started or packet.pts == start
            if started:
                codec.skip_frame = "DEFAULT" if packet.pts in left else "NONREF"
                left.discard(packet.pts)
                yield packet
            if not left:
                return

    def decode(self, packets: Iterable[Any], start: int | None = None) -> Iterator[av.VideoFrame]:
        """Frames in presentation order.

        start: when the key frame is shown at which the packets begin; what is shown earlier refers to others, and is
        left out. Raises `BrokenMedia` or `av.FFmpegError` where a frame is damaged.
        """
        for packet in chain(packets, (None,)):
            for frame in self.stream.codec_context.decode(packet):
                if start is not None and frame.pts < start:
                    continue
                if frame.is_corrupt:
                    raise self.broken("a frame is damaged")
                yield frame

    def broken(self, problem: str) -> BrokenMedia:
        return BrokenMedia(f"{self.path.name}: {problem}; get the file anew")

    def _open(self) -> None:
        self.container = av.open(str(self.path), options=OPEN_OPTIONS, **_METADATA)
        stream = max(self.container.streams.video, key=_preference, default=None)
        if stream is None or stream.codec_context is None:
            raise self.broken("holds no video that can be decoded")
        self.stream, codec = stream, stream.codec_context
        codec.thread_count = 1
        codec.flags |= Flags.bitexact  # MPEG-4's inverse transform otherwise differs with the CPU
        if codec.width * codec.height > MAX_PIXELS:
            raise BrokenMedia(f"{self.path.name}: {codec.width} x {codec.height} pixels are no sane video")

    def _demuxed(self) -> Iterator["av.Packet[VideoStream]"]:
        return (packet for packet in self.container.demux(self.stream) if packet.size)

    def _list(self) -> None:
        """List the packets without decoding: milliseconds for a minute of video.

        Raises `BrokenMedia` where some are damaged or missing, as far as the format tells.
        """
        sizes = Counter[int]()  # of what lies at each place in a Matroska file
        ends = Counter[int]()  # of each stream, in its ticks
        for packet in self.container.demux():
            if not packet.size:
                continue
            if self.format == MATROSKA and packet.pos is not None:
                sizes[packet.pos] += packet.size + sum(data.buffer_size for data in packet.iter_sidedata())
            tick = packet.dts if packet.pts is None else packet.pts  # AVI has no pts
            if tick is not None:
                ends[packet.stream.index] = max(ends[packet.stream.index], tick + (packet.duration or 0))
            if packet.stream is self.stream:
                if packet.is_corrupt:
                    raise self.broken("a packet is damaged")
                if not self.listed:
                    # A decoder learns things from the first frame that later key frames do not repeat: of x264's
                    # version, whose 4:4:4 pictures were once coded wrongly, and without it decodes other pixels.
                    self.stream.codec_context.decode(packet)
                times = packet.pts, packet.dts, packet.duration or 0
                self.listed.append(ListedPacket(*times, packet.is_keyframe, not packet.is_discard))
        gaps = (later - at - sizes[at] for at, later in pairwise(sorted(sizes)))
        if max(gaps, default=0) > BETWEEN:
            raise self.broken("packets are missing")
        reached = max((end * (self.container.streams[n].time_base or 0) for n, end in ends.items()), default=0)
        # The index of other formats holds key frames only, or gives no sizes.
        fewer = len(self.listed) < sum(entry.size > 0 for entry in self.stream.index_entries)
        if fewer or (self.format in TIMED and reached + 1 < (self.container.duration or 0) / MICROSECONDS):
            raise self.broken("is cut off")


def _preference(stream: VideoStream) -> int:
    """How much ffmpeg's command line (4.2 to 5.1) prefers a video stream: default ones, then by size; covers last."""
    if stream.codec_context is None or Disposition.attached_pic in stream.disposition:
        return 0
    default = Disposition.default in stream.disposition
    return stream.codec_context.width * stream.codec_context.height + 5_000_000 * default
