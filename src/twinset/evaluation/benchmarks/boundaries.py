"""GEB+ as boundary grounding: when does one caption become the other (EqBen, A.6; Wang et al., 2022)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Pixels
from twinset.evaluation.benchmarks.json_items import json_items, text_of
from twinset.evaluation.benchmarks.pictures import as_png
from twinset.evaluation.benchmarks.reader import FileReader, Item
from twinset.evaluation.examples import Grounding, LeftOut, Picture
from twinset.generators.annotation_files import seconds
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.frame_pairs import as_sentence
from twinset.generators.video.gebc import FLAGS
from twinset.shards.media.media_folder import VIDEO_SUFFIXES, EscapesRoot, MediaFolder
from twinset.shards.storage.path_ends import walk

RATE = 5  # frames a second (A.6)
TOGETHER = 16  # frames that are decoded and held together: 100 MB of full HD
Frames = tuple[Sequence[Picture], NDArray[np.float64]]  # pictures and their times, (n,) s

KINETICS = re.compile(r"(?P<video>.{11})_\d{6}_\d{6}")  # a clip's name in Kinetics-400: video, start, end in seconds


class Boundaries(FileReader):
    """``{VIDEO: [{boundary_id, timestamp, subject, status_before, status_after, label}]}`` and the videos.

    Frames are those nearest to 0, 0.2, 0.4 … s, each with its own time; captions are the subject with either status.
    A caption of every annotator is asked. Boundaries at which a subject appears or goes say nothing of one side: the
    annotation has a flag there, and they are left out.
    """

    name = "gebc"
    title = "GEB+ boundary grounding (2022)"
    citation = "https://arxiv.org/abs/2204.00486"
    expects = "val.json or test.json of Kinetics-GEB+, and its videos (VIDEO.mp4, or VIDEO_000010_000020.mp4) below"
    obtained = "The repository Yuxuan-W/GEB-Plus links filtered boundaries; videos are Kinetics-400's"

    every = ("val", "test")
    folders = ("", "annotations", "datasets/annotations")

    def file_name(self, subset: str) -> str:
        return f"{subset}.json"

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`; a video's packets are listed when its first boundary comes."""
        path, decoder = self.file(subset), _Decoder()
        for video, boundaries in json_items(path):
            where = f"{path} video {video!r}"
            if not isinstance(boundaries, list):
                raise WrongUse(f"{where}: not a list of boundaries; fetch the file again")
            found = self._sampled(video, where, decoder)
            for number, record in enumerate(boundaries):
                here = f"{where} boundary {number}"
                yield found if isinstance(found, LeftOut) else _example(subset, video, record, found, here)

    def _sampled(self, video: str, where: str, decoder: _Decoder) -> Frames | LeftOut:
        """Frames of a video at `RATE`, and their times; or why there are none."""
        from twinset.generators.video.frames import frame_times
        from twinset.generators.video.video_file import BrokenMedia  # both import av

        with naming(where, EscapesRoot):
            path = self._found(video)
        if path is None:
            return LeftOut(f"{where}", "missing video")
        try:
            times = sampled(np.asarray(frame_times(path), np.float64))
        except BrokenMedia as error:
            return LeftOut(f"{where}: {error}", "broken video")
        if len(times) < 2:
            return LeftOut(f"{where}: {path.name}", "video of one frame")
        read = partial(decoder.read, path, times)
        return [Picture(f"{path}@{time:.6f}", partial(read, at)) for at, time in enumerate(times)], times

    def _found(self, video: str) -> Path | None:
        stored = self._videos.find(video)
        return self._clips.get(video) if stored is None else stored.path

    @cached_property
    def _videos(self) -> MediaFolder:
        return MediaFolder(self.data)

    @cached_property
    def _clips(self) -> Mapping[str, Path]:
        """Videos that are called as Kinetics calls its clips, by the video they are from."""
        found: dict[str, Path] = {}
        for folder, file in walk(self.data):
            path = self.data / folder / file
            if path.suffix.lower() in VIDEO_SUFFIXES and (named := KINETICS.fullmatch(path.stem)):
                found.setdefault(named["video"], path)
        return found


def sampled(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The times nearest to 0, 1/5, 2/5 … s, the earlier of two as near, each once. times: (n,) s, ascending, n ≥ 1."""
    wanted = np.arange(0, np.floor(times[-1] * RATE + 1e-6) + 1) / RATE
    right = np.clip(np.searchsorted(times, wanted), 1, max(len(times) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(times) - 1)
    nearest = np.unique(np.where(times[right] - wanted < wanted - times[left], right, left))
    return np.asarray(times[nearest], np.float64)


class _Decoder:
    """Decodes frames in runs, and holds the last run: frames of a video are asked for in order."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._run: tuple[Path, int] | None = None
        self._held: dict[float, Pixels | str] = {}

    def read(self, path: Path, times: NDArray[np.float64], at: int) -> bytes:
        """A frame as PNG. times: of all frames that are asked for, (n,) s; at: which of them."""
        with self._lock:
            if self._run != (path, at // TOGETHER):
                self._decode(path, times, at // TOGETHER)
            held = self._held[float(times[at])]
        if isinstance(held, str):
            raise WrongUse(held)
        return as_png(held)

    def _decode(self, path: Path, times: NDArray[np.float64], run: int) -> None:
        from twinset.generators.video.frames import read_frames
        from twinset.generators.video.video_file import BrokenMedia  # both import av

        self._run, self._held = None, {}
        with naming(str(path), BrokenMedia):
            frames = read_frames(path, times[run * TOGETHER : (run + 1) * TOGETHER].tolist(), "seconds")
        self._held = {
            time: frame.detail if isinstance(frame, UnusableImage) else frame.pixels for time, frame in frames.items()
        }
        self._run = (path, run)


def _example(subset: str, video: str, record: Any, frames: Frames, where: str) -> Grounding | LeftOut:
    name = text_of(record, "boundary_id", where)
    boundary = seconds(record.get("timestamp"))
    if boundary is None:
        raise WrongUse(f"{where}: no time in the field 'timestamp'; fetch the file again")
    said = [record.get(field) for field in ("status_before", "status_after")]
    # A flag in place of words; so the generator of EQ-GEBC has it too.
    if not all(isinstance(one, str) and one.strip() not in FLAGS and as_sentence(one) for one in said):
        return LeftOut(f"{where} ({name})", "no words for one side")
    pictures, times = frames
    if not times[0] <= boundary <= times[-1]:
        return LeftOut(f"{where} ({name}): {boundary:g} s of {times[-1]:g} s", "boundary outside the video")
    subject = text_of(record, "subject", where)
    return Grounding(
        key=f"{subset}/{name}",
        subset=subset,
        group=video,
        category=str(record.get("label") or ""),
        frames=pictures,
        times=times,
        captions=(as_sentence(subject, said[0]), as_sentence(subject, said[1])),
        boundary=boundary,
    )
