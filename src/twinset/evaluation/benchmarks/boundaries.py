"""GEB+ as boundary grounding: when does one caption become the other (EqBen, A.6; Wang et al., 2022)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from twinset.contracts.errors import WrongUse, naming
from twinset.evaluation.benchmarks.pictures import as_png
from twinset.evaluation.benchmarks.reader import Item, Reader
from twinset.evaluation.benchmarks.rows import Text, checked, read_values
from twinset.evaluation.examples import Grounding, LeftOut, Picture
from twinset.generators.image_files import UnusableImage
from twinset.generators.record_fields import OptionalText
from twinset.generators.video.frame_pairs import as_sentence
from twinset.generators.video.gebc import FLAGS, BoundaryRecord
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder

RATE = 5  # frames a second (A.6)
TOGETHER = 16  # frames that are decoded and held together: 100 MB of full HD
Frames = tuple[Sequence[Picture], NDArray[np.float64]]  # pictures and their times, (n,) s


class Boundary(BoundaryRecord):
    """What one annotator says of a moment. label: the kind of change."""

    boundary_id: Text
    subject: Text
    label: OptionalText = ""


BOUNDARIES = TypeAdapter(list[Boundary])


class Boundaries(Reader):
    """``{VIDEO: [{boundary_id, timestamp, subject, status_before, status_after, label}]}`` and the videos.

    Frames are those nearest to 0, 0.2, 0.4 … s, each with its own time; captions are the subject with either status.
    A caption of every annotator is asked. Boundaries at which a subject appears or goes say nothing of one side: the
    annotation has a flag there, and they are left out.
    """

    name, title = "gebc", "GEB+ boundary grounding (2022)"
    citation = "https://arxiv.org/abs/2204.00486"
    expects = "val.json or test.json of Kinetics-GEB+, and its videos (VIDEO.mp4) below"
    obtained = "The repository Yuxuan-W/GEB-Plus links filtered boundaries; videos are Kinetics-400's"
    files: ClassVar = {split: f"{split}.json" for split in ("val", "test")}
    folders = ("", "annotations", "datasets/annotations")

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`; a video's packets are listed when its first boundary comes."""
        for where, video, records in (value for path in self.paths(subset) for value in read_values(path)):
            boundaries, frames = checked(records, BOUNDARIES, where), self._sampled(video, where)
            for number, boundary in enumerate(boundaries):
                here = f"{where} boundary {number}"
                yield frames if isinstance(frames, LeftOut) else _example(subset, video, boundary, frames, here)

    def _sampled(self, video: str, where: str) -> Frames | LeftOut:
        """Frames of a video at `RATE`, and their times; or why there are none."""
        from twinset.generators.video.frames import frame_times
        from twinset.generators.video.video_file import BrokenMedia  # both import av

        with naming(where, EscapesRoot):
            stored = self._videos.find(video)
        if stored is None:
            return LeftOut(where, "missing video")
        try:
            times = sampled(np.asarray(frame_times(stored.path), np.float64))
        except BrokenMedia as error:
            return LeftOut(f"{where}: {error}", "broken video")
        if len(times) < 2:
            return LeftOut(f"{where}: {stored.path.name}", "video of one frame")
        read = partial(_frame, stored.path, tuple(times.tolist()))
        return [Picture(f"{stored.path}@{time:.6f}", partial(read, at)) for at, time in enumerate(times)], times

    @cached_property
    def _videos(self) -> MediaFolder:
        return MediaFolder(self.data)


def _frame(path: Path, times: tuple[float, ...], at: int) -> bytes:
    """A frame as PNG. times: of all frames that are asked for, in s; at: which of them."""
    first = at - at % TOGETHER
    with _LOCK:
        frame = _decoded(path, times[first : first + TOGETHER])[times[at]]
    if isinstance(frame, UnusableImage):
        raise WrongUse(frame.detail)
    return as_png(frame.pixels)


_LOCK = Lock()


@lru_cache(1)  # frames of a video are asked for in order
def _decoded(path: Path, times: tuple[float, ...]) -> Mapping[float, Any]:
    """A run of frames by time."""
    from twinset.generators.video.frames import read_frames
    from twinset.generators.video.video_file import BrokenMedia  # both import av

    with naming(str(path), BrokenMedia):
        return read_frames(path, list(times), "seconds")


def sampled(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The times nearest to 0, 1/5, 2/5 … s, the earlier of two as near, each once. times: (n,) s, ascending, n ≥ 1."""
    wanted = np.arange(0, np.floor(times[-1] * RATE + 1e-6) + 1) / RATE
    right = np.clip(np.searchsorted(times, wanted), 1, max(len(times) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(times) - 1)
    nearest = np.unique(np.where(times[right] - wanted < wanted - times[left], right, left))
    return np.asarray(times[nearest], np.float64)


def _example(subset: str, video: str, boundary: Boundary, frames: Frames, where: str) -> Grounding | LeftOut:
    before, after, here = boundary.status_before, boundary.status_after, f"{where} ({boundary.boundary_id})"
    # A flag in place of words; so the generator of EQ-GEBC has it too.
    if not all(status.strip() not in FLAGS and as_sentence(status) for status in (before, after)):
        return LeftOut(here, "no words for one side")
    pictures, times = frames
    if not times[0] <= boundary.timestamp <= times[-1]:
        return LeftOut(f"{here}: {boundary.timestamp:g} s of {times[-1]:g} s", "boundary outside the video")
    return Grounding(
        key=f"{subset}/{boundary.boundary_id}",
        subset=subset,
        group=video,
        category=boundary.label,
        frames=pictures,
        times=times,
        captions=(as_sentence(boundary.subject, before), as_sentence(boundary.subject, after)),
        boundary=boundary.timestamp,
    )
