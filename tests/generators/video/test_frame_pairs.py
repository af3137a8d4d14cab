"""Making pairs: one result a candidate, in order, whatever the media folder holds."""

import errno
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.generators.video.numbered_videos import draw, make_video, read
from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.video import frames
from twinset.generators.video.action_genome import ActionGenome
from twinset.generators.video.frame_pairs import FramePairCandidate, FramePairSource, as_sentence
from twinset.generators.video.segments import YouCook2
from twinset.shards.contracts import Context


def candidate(key: str, video: str, at0: float, at1: float) -> FramePairCandidate:
    return FramePairCandidate(
        key=key,
        group=video,
        captions0=(f"before {key}", "more"),
        captions1=(f"after {key}",),
        video=video,
        at0=at0,
        at1=at1,
        change="status",
        provenance=canonical_json({"video": video, "frame0": "000001"}).decode(),
    )


def made(folder: Path, *planned: FramePairCandidate, dump: bool = False) -> list[Pair | Rejected]:
    source: FramePairSource = YouCook2(kind="youcook2", annotations=folder / "none", media=folder)
    if dump:
        source = ActionGenome(kind="action-genome", annotations=folder / "none", media=folder, frames="dump")
    results = list(source.open(Context("eq")).make(planned))
    assert [result.key for result in results] == [pair.key for pair in planned]
    return results


def pair(result: Pair | Rejected) -> Pair:
    assert isinstance(result, Pair), result
    return result


def rejected(result: Pair | Rejected) -> tuple[str, str | None, int | None]:
    assert isinstance(result, Rejected), result
    return result.reason, result.media, result.media_size


def test_a_pair_holds_its_frames_source_and_provenance(tmp_path: Path) -> None:
    path = make_video(tmp_path / "clip.mp4")
    (result,) = made(tmp_path, candidate("k", "clip", 0.4, 2.0))
    sample = pair(result)
    assert (read(sample.image0.pixels), read(sample.image1.pixels)) == (10, 50)
    assert (sample.image0.pts, sample.image1.pts) == (pytest.approx(0.4), pytest.approx(2.0))
    assert sample.image0.source == sample.image1.source
    source = sample.image0.source
    assert (source.path, source.size) == ("clip.mp4", path.stat().st_size)
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sample.provenance == {"video": "clip", "frame0": "000001", "index0": 10, "index1": 50}
    assert (sample.group, sample.split, sample.change) == ("clip", "test", "status")
    assert (sample.captions0, sample.captions1) == (("before k", "more"), ("after k",))


def test_pairs_of_a_video_share_frames(tmp_path: Path) -> None:
    make_video(tmp_path / "clip.mp4")
    planned = [candidate("a", "clip", 0.4, 0.8), candidate("b", "clip", 0.41, 1.2), candidate("c", "clip", 0.8, 1.2)]
    a, b, c = (pair(result) for result in made(tmp_path, *planned))
    assert a.image0 is b.image0 and a.image1 is c.image0 and b.image1 is c.image1
    assert len({frame.id for sample in (a, b, c) for frame in (sample.image0, sample.image1)}) == 3


def test_bad_media_rejects_its_own_candidates_only(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "good.mp4")
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("not a video")
    (tmp_path / "cut.mp4").write_bytes(whole.read_bytes()[:2000])
    planned = [candidate(video, video, 0.4, 0.8) for video in ("gone", "empty", "good", "text", "cut", "../good")]
    gone, empty, good, text, cut, outside = made(tmp_path, *planned)
    assert rejected(gone) == ("missing-media", "gone", None)
    assert rejected(empty) == ("broken-media", "empty", 0)
    assert rejected(text) == ("broken-media", "text", 11)
    assert rejected(cut) == ("broken-media", "cut", 2000)
    assert rejected(outside) == ("unsafe-path", None, None)
    pair(good)


def test_addresses_that_give_no_pair(tmp_path: Path) -> None:
    size = make_video(tmp_path / "clip.mp4").stat().st_size
    planned = [
        candidate("same", "clip", 0.4, 0.41),
        candidate("late", "clip", 0.4, 9.0),
        candidate("nan", "clip", float("nan"), 0.4),
        candidate("good", "clip", 0.4, 0.8),
    ]
    same, late, nan, good = made(tmp_path, *planned)
    assert rejected(same) == ("same-frame", None, None)
    assert rejected(late) == ("beyond-end", "clip", size)
    assert rejected(nan) == ("beyond-end", "clip", size)
    pair(good)


@pytest.mark.parametrize(("reads_before", "number"), [(0, errno.EIO), (1, errno.EIO), (0, errno.EACCES)])
def test_trouble_of_the_machine_ends_the_shard_that_of_one_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads_before: int, number: int
) -> None:
    """FFmpeg cannot tell a disk that fails from a broken video: the file is read again to tell."""
    (tmp_path / "clip.mp4").write_text("no video")
    reads = iter([("0" * 64, 8)] * reads_before)

    def fail(path: Path) -> tuple[str, int]:  # root may read everything: permissions alone would not do
        for answer in reads:
            return answer
        raise OSError(number, "trouble")

    monkeypatch.setattr(frames, "sha256_of_file", fail)
    if number == errno.EIO:
        with pytest.raises(OSError, match="trouble"):
            made(tmp_path, candidate("a", "clip", 0.0, 0.4))
    else:
        assert rejected(made(tmp_path, candidate("a", "clip", 0.0, 0.4))[0]) == ("broken-media", "clip", 8)


def dump(folder: Path, number: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:06d}.png"
    Image.fromarray(draw(number)).save(path)
    return path


def test_frames_of_an_official_dump(tmp_path: Path) -> None:
    for number in (7, 123, 200):
        dump(tmp_path / "VIDEO.mp4", number)
    planned = [candidate("a", "VIDEO.mp4", 7, 123), candidate("b", "VIDEO.mp4", 123, 200)]
    a, b = (pair(result) for result in made(tmp_path, *planned, dump=True))
    assert np.array_equal(a.image0.pixels, draw(7)) and np.array_equal(a.image1.pixels, draw(123))
    assert a.image1 is b.image0
    assert a.image1.source.path == "VIDEO.mp4/000123.png" and a.image1.pts == -1.0
    data = (tmp_path / "VIDEO.mp4" / "000123.png").read_bytes()
    assert (a.image1.source.size, a.image1.source.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert a.provenance == {"video": "VIDEO.mp4", "frame0": "000001", "index0": -1, "index1": -1}


def test_bad_pictures_of_a_dump(tmp_path: Path) -> None:
    good = dump(tmp_path / "VIDEO.mp4", 1).read_bytes()
    dump(tmp_path / "VIDEO.mp4", 2).write_bytes(good[: len(good) // 2])
    planned = [candidate(str(n), "VIDEO.mp4", 1, n) for n in (2, 1, 9)]
    cut, same, gone = made(tmp_path, *planned, dump=True)
    assert rejected(cut) == ("broken-media", "VIDEO.mp4/000002.png", len(good) // 2)
    assert rejected(same)[0] == "same-frame"
    assert rejected(gone) == ("missing-media", "VIDEO.mp4/000009.png", None)


def test_a_video_that_asks_for_absurd_memory_is_broken(tmp_path: Path) -> None:
    path = make_video(tmp_path / "clip.mp4")
    data = bytearray(path.read_bytes())
    runs = data.index(b"stts") + 8
    data[runs : runs + 4] = struct.pack(">I", 0x7FFFFFFF)
    path.write_bytes(data)
    make_video(tmp_path / "sound.mp4")
    huge, sound = made(tmp_path, candidate("k", "clip", 0.4, 2.0), candidate("l", "sound", 0.4, 2.0))
    assert rejected(huge) == ("broken-media", "clip", len(data))
    assert read(pair(sound).image0.pixels) == 10


@pytest.mark.parametrize(
    ("phrases", "sentence"),
    [
        (("man in yellow t-shirt", "take back\none  leg"), "Man in yellow t-shirt take back one leg."),
        (("man in printed shirt , grey pant",), "Man in printed shirt, grey pant."),
        (("add the onion to the pand]",), "Add the onion to the pand."),
        (("heat tortillas with the green onions '",), "Heat tortillas with the green onions."),
        (("stir it...",), "Stir it."),
        (("is it done ?",), "Is it done?"),
        (("add salt (a pinch)",), "Add salt (a pinch)."),
        (("nul\x00byte",), "Nul byte."),
        (("...",), ""),
    ],
)
def test_phrases_become_sentences(phrases: tuple[str, ...], sentence: str) -> None:
    assert as_sentence(*phrases) == sentence
