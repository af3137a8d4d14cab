"""Makes planned pairs of frames: each video is opened once, each frame decoded once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from generators.video.container.video_file import BrokenMedia
from generators.video.frame_dump import UnreadablePicture, read_picture
from generators.video.frame_pairs import Addressing, FramePairCandidate
from generators.video.frames import Unavailable, read_frames
from manifests.canonical import sha256_of_file
from shards.kinds.pair import Pair
from shards.kinds.samples import Frame, Rejected, Source
from shards.media.media_folder import FILE_ERRORS, EscapesRoot, MediaFolder


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why an address gave no frame; the fields of `Rejected`."""

    reason: str
    detail: str
    media: str | None
    media_size: int | None


@dataclass(frozen=True, slots=True)
class _Found:
    """A frame and its index in the video (0-based, presentation order), -1 for a dumped one."""

    frame: Frame
    index: int


_Outcomes = Mapping[float, _Found | _Problem]


def make_pairs(
    candidates: Sequence[FramePairCandidate], media: MediaFolder, addressing: Addressing
) -> Iterator[Pair | Rejected]:
    """One result a candidate, in order.

    addressing: ``seconds`` and ``numbers`` as in `generators.video.frames.read_frames`; ``dump`` reads frame ``n`` of a
    video from the picture ``VIDEO/%06d.png``.

    Candidates of one video must follow each other: its file is hashed and opened once, each distinct frame is decoded
    once and shared, and only one video's frames are held at a time. Provenance gains ``index0`` and ``index1``, the
    indices of the frames in the video (0-based; -1 in a dump, which does not tell).

    Rejections: `generators.video.frame_pairs.FRAME_REASONS`. Raises OSError for trouble of the machine, such as a
    failing disk.
    """
    for video, group in groupby(candidates, key=lambda candidate: candidate.video):
        planned = list(group)
        addresses = sorted({at for candidate in planned for at in (candidate.at0, candidate.at1)})
        outcomes = _look_up(video, addresses, media, addressing)
        for candidate in planned:
            yield _pair(candidate, outcomes[candidate.at0], outcomes[candidate.at1])


def _pair(candidate: FramePairCandidate, first: _Found | _Problem, second: _Found | _Problem) -> Pair | Rejected:
    for outcome in (first, second):
        if isinstance(outcome, _Problem):
            return Rejected(candidate.key, outcome.reason, outcome.detail, outcome.media, outcome.media_size)
    assert isinstance(first, _Found) and isinstance(second, _Found)
    if first.frame is second.frame:
        detail = f"{candidate.video}: {candidate.at0:g} and {candidate.at1:g} are one frame"
        return Rejected(candidate.key, "same-frame", detail)
    return Pair(
        key=candidate.key,
        group=candidate.group,
        split=candidate.split,
        change=candidate.change,
        image0=first.frame,
        image1=second.frame,
        captions0=candidate.captions0,
        captions1=candidate.captions1,
        provenance={**json.loads(candidate.provenance), "index0": first.index, "index1": second.index},
    )


def _look_up(video: str, addresses: Collection[float], media: MediaFolder, addressing: Addressing) -> _Outcomes:
    if addressing == "dump":
        return {at: _from_dump(video, at, media) for at in addresses}
    found = _find(video, media)
    if isinstance(found, _Problem):
        return dict.fromkeys(addresses, found)
    size = None
    try:
        size = found.stat().st_size
        digest, size = sha256_of_file(found)
        source = Source(media.relative(found), size, digest)
        try:
            read = read_frames(found, addresses, addressing)
        except BrokenMedia as error:
            # FFmpeg reports a failing disk as it reports a broken file. Plain reading tells: it raises here again.
            sha256_of_file(found)
            return dict.fromkeys(addresses, _Problem("broken-media", str(error), video, size))
    except OSError as error:
        return dict.fromkeys(addresses, _blame(error, video, size))
    outcomes: dict[float, _Found | _Problem] = {}
    shared: dict[int, _Found] = {}
    for at, frame in read.items():
        if isinstance(frame, Unavailable):
            outcomes[at] = _Problem(frame.reason, frame.detail, video, size)
        else:
            made = Frame(f"{video}#{frame.index}", frame.pixels, frame.pts, source)
            outcomes[at] = shared.setdefault(frame.index, _Found(made, frame.index))
    return outcomes


def _from_dump(video: str, number: float, media: MediaFolder) -> _Found | _Problem:
    name = f"{video}/{int(number):06d}.png"
    found = _find(name, media)
    if isinstance(found, _Problem):
        return found
    size = None
    try:
        size = found.stat().st_size
        pixels, digest, size = read_picture(found)
    except UnreadablePicture as error:
        return _Problem("broken-media", str(error), name, size)
    except OSError as error:
        return _blame(error, name, size)
    frame = Frame(f"{video}#{int(number)}", pixels, -1.0, Source(media.relative(found), size, digest))
    return _Found(frame, -1)


def _find(name: str, media: MediaFolder) -> Path | _Problem:
    try:
        path = media.find(name)
    except EscapesRoot as error:
        return _Problem("unsafe-path", str(error), None, None)
    except OSError as error:
        return _blame(error, name, None)
    if path is None:
        return _Problem("missing-media", f"no file {name} in {media.root.name}; add it and build again", name, None)
    return path


def _blame(error: OSError, name: str, size: int | None) -> _Problem:
    """The rejection for a file that the operating system refuses; raises ``error`` again if the machine is at fault."""
    if error.errno not in FILE_ERRORS:
        raise error
    return _Problem("broken-media", f"{name}: {error.strerror}; make it readable", name, size)
