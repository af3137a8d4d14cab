"""Makes planned pairs of frames: each video is opened once, each frame decoded once."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.generators.image_files import UnusableImage, rgb
from twinset.generators.video.frame_pair import Addressing, FramePairCandidate, dumped_frame
from twinset.generators.video.frames import read_frames
from twinset.generators.video.video_file import MAX_PIXELS, BrokenMedia
from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder, StoredImage

# A frame and its index in the video (0-based, presentation order; -1 for a dumped one), or why an address gave none.
_Outcome = tuple[Frame, int] | UnusableImage


def make_pairs(
    candidates: Sequence[FramePairCandidate], media: MediaFolder, addressing: Addressing
) -> Iterator[Pair | Rejected]:
    """One result a candidate, in order.

    addressing: ``seconds`` and ``numbers`` as in `generators.video.frames.read_frames`; ``dump`` reads frame ``n`` of a
    video from the picture ``VIDEO/%06d.png``.

    Candidates of one video must follow each other: its file is hashed and opened once, each distinct frame is decoded
    once and shared, and only one video's frames are held at a time. Provenance gains ``index0`` and ``index1``, the
    indices of the frames in the video (0-based; -1 in a dump, which does not tell).

    Rejections: `generators.video.frame_pairs.FRAME_REASONS`. Raises OSError for trouble of the machine, such
    as a failing disk.
    """
    for video, group in groupby(candidates, key=lambda candidate: candidate.video):
        planned = list(group)
        addresses = sorted({at for candidate in planned for at in (candidate.at0, candidate.at1)})
        outcomes = _look_up(video, addresses, media, addressing)
        for candidate in planned:
            yield _pair(candidate, outcomes[candidate.at0], outcomes[candidate.at1])


def _pair(candidate: FramePairCandidate, first: _Outcome, second: _Outcome) -> Pair | Rejected:
    if isinstance(first, UnusableImage):
        return first.rejected(candidate.key)
    if isinstance(second, UnusableImage):
        return second.rejected(candidate.key)
    (frame0, index0), (frame1, index1) = first, second
    if frame0 is frame1:
        detail = f"{candidate.video}: {candidate.at0:g} and {candidate.at1:g} are one frame"
        return Rejected(candidate.key, "same-frame", detail)
    return Pair(
        **candidate.placed,
        change=candidate.change,
        image0=frame0,
        image1=frame1,
        provenance={**json.loads(candidate.provenance), "index0": index0, "index1": index1},
    )


def _look_up(
    video: str, addresses: Collection[float], media: MediaFolder, addressing: Addressing
) -> Mapping[float, _Outcome]:
    if addressing == "dump":
        return {at: _from_dump(video, at, media) for at in addresses}
    found = _find(video, media)
    if isinstance(found, UnusableImage):
        return dict.fromkeys(addresses, found)
    size = None
    try:
        size = found.size
        digest, size = sha256_of_file(found.path)
        source = MediaFile(found.name, size, digest)
        try:
            read = read_frames(found.path, addresses, addressing)
        except BrokenMedia as error:
            # FFmpeg reports a failing disk as it reports a broken file. Plain reading tells: it raises here again.
            sha256_of_file(found.path)
            return dict.fromkeys(addresses, UnusableImage("broken-media", str(error), video, size))
    except OSError as error:
        return dict.fromkeys(addresses, UnusableImage.refused(error, video, size))
    outcomes: dict[float, _Outcome] = {}
    shared: dict[int, Frame] = {}
    for at, one in read.items():
        if isinstance(one, UnusableImage):
            outcomes[at] = replace(one, media=video, media_size=size)
        else:
            frame = shared.setdefault(one.index, Frame(f"{video}#{one.index}", one.pixels, one.pts, source))
            outcomes[at] = frame, one.index
    return outcomes


def _from_dump(video: str, number: float, media: MediaFolder) -> _Outcome:
    """A frame that was dumped as a picture, as Action Genome's official tool does."""
    name = dumped_frame(video, number)
    found = _find(name, media)
    if isinstance(found, UnusableImage):
        return found
    size = None
    try:
        size = found.size
        content = found.read()
    except OSError as error:
        return UnusableImage.refused(error, name, size)
    size, place = len(content), f"{found.path.parent.name}/{found.path.name}"
    try:
        pixels = rgb(open_image(content, ("PNG",), MAX_PIXELS))
    except UnreadableImage as error:
        problem = f"{place}: not a readable PNG ({error.kind}); dump it anew"
        if error.size is not None:
            problem = f"{place}: {error.size[0]} x {error.size[1]} pixels are no video frame"
        return UnusableImage("broken-media", problem, name, size)
    source = MediaFile(found.name, size, hashlib.sha256(content).hexdigest())
    return Frame(f"{video}#{int(number)}", pixels, -1.0, source), -1


def _find(name: str, media: MediaFolder) -> StoredImage | UnusableImage:
    try:
        found = media.find(name)
    except EscapesRoot as error:
        return UnusableImage("unsafe-path", str(error))
    except OSError as error:
        return UnusableImage.refused(error, name, None)
    if found is None:
        return UnusableImage(
            "missing-media", media.absent(name, f"no file {name} in {media.root.name}; add it and build again"), name
        )
    return found
