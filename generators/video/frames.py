"""Exact frames of a video by time or by number, with as little decoding as possible.

Wanted frames are decoded, each only if no packet since its key frame is damaged or missing.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, cast

import av
import numpy as np
from av.buffer import Buffer
from av.video.frame import PictureType
from av.video.reformatter import Interpolation

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.timeline import MICROSECONDS, Timeline, best_effort
from twinset.generators.video.video_file import BrokenMedia, PlacedPacket, VideoFile, open_video
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder

# Decoders that leave out frames to which no other refers, packet by packet, without touching the rest.
SKIPS_NON_REFERENCE = frozenset({"h264", "hevc", "vp9"})
# Without these flags swscale takes shortcuts that differ with the CPU's instruction set (measured: the mean level of
# a frame by 0.5 between AVX2 and plain C). With them all paths agree bit for bit, and chroma is interpolated.
EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT | Interpolation.FULL_CHR_H_INT


@dataclass(eq=False, slots=True)
class VideoFrame:
    """One decoded frame.

    index: place among the video's frames in presentation order, from 0.
    pts: presentation time in seconds on the player's clock (`Timeline.origin`).
    pixels: (height, width, 3) uint8 RGB, upright.
    """

    index: int
    pts: float
    pixels: Pixels


Addressing = Literal["seconds", "numbers"]


class DecodedFrame(NamedTuple):
    """A decoded frame without its pixels. place: of its packet. pts, dts, duration: in ticks. key: whether it is one
    that needs no other.
    """

    place: int
    pts: int | None
    dts: int | None
    duration: int
    key: bool


def find_frames(
    folder: MediaFolder, video: str, addresses: Collection[float], addressing: Addressing
) -> dict[float, tuple[Frame, int] | UnusableImage]:
    """Frames of a video of a folder with their indices, as `read_frames`; each distinct one is one object.

    Raises OSError for trouble of the machine, such as a failing disk.
    """
    size = None
    try:
        stored = folder.find(video)
        if stored is None:
            problem = folder.absent(video, f"no file {video} in {folder.root.name}; add it and build again")
            return dict.fromkeys(addresses, UnusableImage("missing-media", problem, video))
        size = stored.size
        digest, size = sha256_of_file(stored.path)
        try:
            read = read_frames(stored.path, addresses, addressing)
        except BrokenMedia as error:
            # FFmpeg reports a failing disk as it reports a broken file. Plain reading tells: it raises here again.
            sha256_of_file(stored.path)
            return dict.fromkeys(addresses, UnusableImage("broken-media", str(error), video, size))
    except EscapesRoot as error:
        return dict.fromkeys(addresses, UnusableImage("unsafe-path", str(error)))
    except OSError as error:
        return dict.fromkeys(addresses, UnusableImage.refused(error, video, size))
    source = MediaFile(stored.name, size, digest)
    shared: dict[int, Frame] = {}
    found: dict[float, tuple[Frame, int] | UnusableImage] = {}
    for at, frame in read.items():
        if isinstance(frame, UnusableImage):
            found[at] = replace(frame, media=video, media_size=size)
        else:
            picture = Frame(f"{video}#{frame.index}", frame.pixels, frame.pts, source)
            found[at] = shared.setdefault(frame.index, picture), frame.index
    return found


def read_frames(
    path: Path, addresses: Collection[float], addressing: Addressing
) -> dict[float, VideoFrame | UnusableImage]:
    """Decode the wanted frames of a video, each once; addresses that mean the same frame share one object.

    addressing ``seconds``: the frame nearest by pts, on the player's clock (`Timeline.nearest`); ``numbers``: the frame
    that ``ffmpeg -i VIDEO %06d.png`` writes under that number (`Timeline.numbered`).

    An address beyond the end (``beyond-end``) or where the video is damaged (``broken-media``) gives no frame.

    A frame's bytes do not depend on what else is asked for: every frame equals that of a sequential decode. One thread
    a video, since shards are the parallelism (and frame threads would decode beyond what is wanted). Raises
    `BrokenMedia` when the file as a whole cannot be used.
    """
    with open_video(path) as file:
        timeline, places, holes = _timeline(file)
        find = timeline.nearest if addressing == "seconds" else timeline.numbered
        meant = {at: find(at) for at in addresses}
        count = len(timeline.ticks)

        def is_sure(index: int, at: float) -> bool:
            """Of an intact file the nearest frame counts, however far it is. Else the one meant may be missing."""
            doubtful = holes or (file.cut_off and index == count - 1)
            return not doubtful or timeline.is_within_a_frame(index, at, addressing)

        wanted = {n: places[n] for at, n in meant.items() if n is not None and is_sure(n, at)}
        pixels = _take(file, set(wanted.values()))
    frames = {n: VideoFrame(n, timeline.seconds(n), pixels[place]) for n, place in wanted.items() if place in pixels}
    last = f"the last of {count} frames is at {timeline.seconds(count - 1):.3f} s"
    result: dict[float, VideoFrame | UnusableImage] = {}
    for at, index in meant.items():
        if index in frames and is_sure(index, at):
            result[at] = frames[index]
        elif index is None and not file.cut_off:
            result[at] = UnusableImage("beyond-end", f"{path.name}: nothing at {at:g}; {last}")
        else:
            problem = f"cut off before {at:g} ({last})" if index is None else f"the frame at {at:g} is damaged"
            result[at] = UnusableImage("broken-media", f"{path.name}: {problem}; get the file anew")
    return result


def frame_times(path: Path) -> list[float]:
    """Presentation times (s, player's clock) of a video's frames, ascending; decodes only where packets do not tell.

    Raises `BrokenMedia` as `read_frames`.
    """
    with open_video(path) as file:
        timeline, _, _ = _timeline(file)
        return [timeline.seconds(index) for index in range(len(timeline.ticks))]


def _timeline(file: VideoFile) -> tuple[Timeline, list[int], bool]:
    """When the frames of a video are shown, the places of their packets, and whether some are damaged or missing.

    Raises `BrokenMedia` where there is no frame.
    """
    holes = bool(file.damaged)
    if file.tells_frames:
        # MP4 gives durations in decoding order: where frames are reordered they say nothing about the shown frame, and
        # ffmpeg up to 5.1 takes none from there.
        reordered = "mp4" in file.format and any(packet.pts != packet.dts for packet in file.listed)
        shown = sorted((packet.pts or 0, n) for n, packet in enumerate(file.listed) if packet.shown)
        ticks, places = [tick for tick, _ in shown], [n for _, n in shown]
        durations = [0 if reordered else file.listed[n].duration for n in places]
    else:
        frames, _, intact = _decode_from_start(file)
        holes = holes or any(frame.place not in intact for frame in frames)
        places, durations = [frame.place for frame in frames], [frame.duration for frame in frames]
        ticks = best_effort([(frame.pts, frame.dts) for frame in frames])
    if not ticks:
        raise BrokenMedia(f"{file.path.name}: no frame can be decoded; get the file anew")
    time_base = file.stream.time_base or Fraction(1, MICROSECONDS)
    first = ticks[0] * time_base
    origin = min(first, Fraction(file.container.start_time or 0, MICROSECONDS))
    if first - origin <= Fraction(1, MICROSECONDS):
        origin = first  # the container rounds to microseconds
    rate, lone = file.stream.guessed_rate or Fraction(25), len(file.container.streams) == 1
    return Timeline(ticks, durations, time_base, origin, rate, lone), places, holes


def _take(file: VideoFile, places: set[int]) -> dict[int, Pixels]:
    """Pixels of the frames of some packets, by place, the same whatever else is wanted; none of what is not intact."""
    found: dict[int, Pixels] = {}
    if file.tells_frames:
        runs = defaultdict[int, set[int]](set)
        for place in places:
            runs[file.entrance(place)].add(place)
        for entrance, wanted in sorted(runs.items()):
            found |= _run(file, entrance, wanted)
    # Also where a key frame is not a true entrance (gradual refresh, wrong labels): rare and slow.
    if left := places - found.keys():
        _, pixels, intact = _decode_from_start(file, left)
        found |= {place: pixels[place] for place in pixels.keys() & intact}
    return found


def _run(file: VideoFile, entrance: int, places: Collection[int]) -> dict[int, Pixels]:
    """Frames by place, decoded from one key frame on; none where the decoder cannot start at it."""
    wanted = set(places)
    while True:
        frames, pixels, damaged = _decode(file, _feed(file, entrance, wanted), wanted)
        if entrance and not any(frame.place == entrance and frame.key for frame in frames):
            return {}
        # What is shown before the key frame refers to frames that were not decoded, and no wanted frame refers to it.
        start = file.listed[entrance].pts or 0
        counted = (n for n in damaged if n >= entrance and (file.listed[n].pts or 0) >= start)
        first = min(counted, default=math.inf)
        if first not in wanted or file.codec not in SKIPS_NON_REFERENCE:
            return {place: picture for place, picture in pixels.items() if place < first}
        wanted.discard(int(first))  # perhaps no frame refers to it: then it is left out now, and the others are intact


def _feed(file: VideoFile, entrance: int, wanted: Collection[int]) -> Iterator[PlacedPacket]:
    """Packets from a key frame to the last wanted one; the decoder leaves out others that no frame refers to."""
    needed = {entrance, *wanted}
    for place, packet in file.packets_from(entrance):
        skips = file.codec in SKIPS_NON_REFERENCE and place not in needed
        file.stream.codec_context.skip_frame = "NONREF" if skips else "DEFAULT"
        yield place, packet
        if place >= max(needed):
            return


def _decode_from_start(
    file: VideoFile, wanted: Collection[int] = ()
) -> tuple[list[DecodedFrame], dict[int, Pixels], set[int]]:
    """As `_decode`, the whole or up to the last wanted place, with the places of intact frames."""
    last = max(wanted, default=len(file.listed) - 1)
    frames, pixels, damaged = _decode(file, islice(file.packets(), last + 1), wanted)
    intact, before = set[int](), set[int]()
    first = min(damaged, default=math.inf)
    for frame in frames:
        if frame.key and frame.place not in damaged:
            # What is decoded after a key frame but shown before it may refer to what came earlier; nothing else may.
            first = min((n for n in damaged if n > frame.place and n not in before), default=math.inf)
        if frame.place < first:
            intact.add(frame.place)
        before.add(frame.place)
    return frames, pixels, intact


def _decode(
    file: VideoFile, packets: Iterable[PlacedPacket], wanted: Collection[int]
) -> tuple[list[DecodedFrame], dict[int, Pixels], set[int]]:
    """The frames of some packets in presentation order, the pixels of the wanted places, and the places of damage."""
    frames, pixels, damaged = [], {}, set(file.damaged)
    for place, frame in file.decode(packets, damaged):
        if place in wanted:
            pixels[place] = upright_rgb(frame)
        key = frame.key_frame and frame.pict_type == PictureType.I
        frames.append(DecodedFrame(place, frame.pts, frame.dts, frame.duration or 0, key))
    return frames, pixels, damaged


def upright_rgb(frame: av.VideoFrame) -> Pixels:
    """(height, width, 3) uint8 RGB, full range, turned as the frame's display matrix says.

    Matrix and range are the stream's own; as in ffmpeg, BT.601 where it names none. Raises `av.FFmpegError` for
    pixel formats that swscale cannot read.
    """
    pixels: Pixels = np.asarray(frame.to_ndarray(format="rgb24", interpolation=EXACT, threads=1), dtype=np.uint8)
    # PyAV's annotation knows of motion vectors only.
    matrix = cast(Mapping[str, Buffer], frame.side_data).get("DISPLAYMATRIX")
    if matrix is None:
        return pixels
    # 3 × 3 in libavutil's layout: x' = m00 x + m10 y, y' = m01 x + m11 y. Quarter turns and mirrors, which is all that
    # cameras write; any other angle goes to the nearest of these.
    (across, b), (c, down) = np.frombuffer(bytes(matrix), np.int32).reshape(3, 3)[:2, :2].tolist()
    if abs(b) + abs(c) > abs(across) + abs(down):
        pixels = pixels.transpose(1, 0, 2)
        across, down = c, b
    return np.ascontiguousarray(pixels[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
