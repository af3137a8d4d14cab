"""Making pairs: one result a candidate, in order, whatever the media folder holds."""

import errno
import hashlib
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import twinset.generators.video.frame_making as frame_making
from tests.generators.video.numbered_videos import draw, make_video, read
from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.video.frame_making import make_pairs
from twinset.generators.video.frame_pair import Addressing, FramePairCandidate
from twinset.shards.media.media_folder import MediaFolder


def candidate(key: str, video: str, at0: float, at1: float) -> FramePairCandidate:
    return FramePairCandidate(
        key=key,
        group=video,
        split="test",
        captions0=(f"before {key}", "more"),
        captions1=(f"after {key}",),
        video=video,
        at0=at0,
        at1=at1,
        change="status",
        provenance=canonical_json({"video": video, "frame0": "000001"}).decode(),
    )


def made(folder: Path, addressing: Addressing, *planned: FramePairCandidate) -> list[Pair | Rejected]:
    results = list(make_pairs(planned, MediaFolder(folder), addressing))
    assert [result.key for result in results] == [one.key for one in planned]
    return results


def pair(result: Pair | Rejected) -> Pair:
    assert isinstance(result, Pair), result
    return result


def rejected(result: Pair | Rejected) -> tuple[str, str | None, int | None]:
    assert isinstance(result, Rejected), result
    return result.reason, result.media, result.media_size


def test_a_pair_holds_its_frames_source_and_provenance(tmp_path: Path) -> None:
    path = make_video(tmp_path / "clip.mp4")
    (result,) = made(tmp_path, "seconds", candidate("k", "clip", 0.4, 2.0))
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


def test_pairs_of_a_video_share_frames_and_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_video(tmp_path / "clip.mp4")
    calls: list[Any] = []
    read_frames, sha256_of_file = frame_making.read_frames, frame_making.sha256_of_file
    monkeypatch.setattr(frame_making, "read_frames", lambda *asked: calls.append(asked) or read_frames(*asked))
    monkeypatch.setattr(frame_making, "sha256_of_file", lambda path: calls.append(path) or sha256_of_file(path))
    planned = [candidate("a", "clip", 0.4, 0.8), candidate("b", "clip", 0.41, 1.2), candidate("c", "clip", 0.8, 1.2)]
    a, b, c = (pair(result) for result in made(tmp_path, "seconds", *planned))
    assert a.image0 is b.image0 and a.image1 is c.image0 and b.image1 is c.image1
    assert len({frame.id for sample in (a, b, c) for frame in (sample.image0, sample.image1)}) == 3
    assert len(calls) == 2  # hashed once, read once


def test_bad_media_rejects_its_own_candidates_only(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "good.mp4")
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("not a video")
    (tmp_path / "cut.mp4").write_bytes(whole.read_bytes()[:2000])
    planned = [candidate(video, video, 0.4, 0.8) for video in ("gone", "empty", "good", "text", "cut", "../good")]
    gone, empty, good, text, cut, outside = made(tmp_path, "seconds", *planned)
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
    same, late, nan, good = made(tmp_path, "seconds", *planned)
    assert rejected(same) == ("same-frame", None, None)
    assert rejected(late) == ("beyond-end", "clip", size)
    assert rejected(nan) == ("beyond-end", "clip", size)
    pair(good)


def test_numbers_count_from_one(tmp_path: Path) -> None:
    make_video(tmp_path / "clip.mp4")
    first, beyond = made(tmp_path, "numbers", candidate("a", "clip.mp4", 1, 60), candidate("b", "clip.mp4", 1, 61))
    assert (read(pair(first).image0.pixels), read(pair(first).image1.pixels)) == (0, 59)
    assert rejected(beyond)[0] == "beyond-end"


def test_only_one_video_is_read_ahead(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_video(tmp_path / f"{name}.mp4", count=20)

    def planned() -> Iterator[FramePairCandidate]:
        yield candidate("a", "a", 0.0, 0.4)
        yield candidate("b", "b", 0.0, 0.4)

    results = make_pairs(list(planned()), MediaFolder(tmp_path), "seconds")
    pair(next(results))
    (tmp_path / "b.mp4").unlink()
    assert rejected(next(results))[0] == "missing-media"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_trouble_of_the_machine_ends_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    make_video(tmp_path / "clip.mp4")

    def fail(path: Path) -> tuple[str, int]:
        raise OSError(number, "trouble")

    monkeypatch.setattr(frame_making, "sha256_of_file", fail)
    with pytest.raises(OSError, match="trouble"):
        made(tmp_path, "seconds", candidate("a", "clip", 0.0, 0.4))


def test_a_disk_that_fails_while_decoding_is_no_broken_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg sees both alike: the file is read again to tell."""
    (tmp_path / "clip.mp4").write_text("no video")
    reads = iter([("0" * 64, 8), OSError(errno.EIO, "trouble")])

    def flaky(path: Path) -> tuple[str, int]:
        answer = next(reads)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(frame_making, "sha256_of_file", flaky)
    with pytest.raises(OSError, match="trouble"):
        made(tmp_path, "seconds", candidate("a", "clip", 0.0, 0.4))


def test_a_file_that_may_not_be_read_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = make_video(tmp_path / "clip.mp4").stat().st_size

    def refuse(path: Path) -> tuple[str, int]:  # root may read everything: permissions alone would not do
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(frame_making, "sha256_of_file", refuse)
    (result,) = made(tmp_path, "seconds", candidate("a", "clip", 0.0, 0.4))
    assert rejected(result) == ("broken-media", "clip", size)


def dump(folder: Path, number: int, image: Image.Image | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:06d}.png"
    (image or Image.fromarray(draw(number))).save(path)
    return path


def test_frames_of_an_official_dump(tmp_path: Path) -> None:
    for number in (7, 123, 200):
        dump(tmp_path / "VIDEO.mp4", number)
    planned = [candidate("a", "VIDEO.mp4", 7, 123), candidate("b", "VIDEO.mp4", 123, 200)]
    a, b = (pair(result) for result in made(tmp_path, "dump", *planned))
    assert np.array_equal(a.image0.pixels, draw(7)) and np.array_equal(a.image1.pixels, draw(123))
    assert a.image1 is b.image0
    assert a.image1.source.path == "VIDEO.mp4/000123.png" and a.image1.pts == -1.0
    data = (tmp_path / "VIDEO.mp4" / "000123.png").read_bytes()
    assert (a.image1.source.size, a.image1.source.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert json.loads(json.dumps(a.provenance)) == {
        "video": "VIDEO.mp4",
        "frame0": "000001",
        "index0": -1,
        "index1": -1,
    }


def test_bad_pictures_of_a_dump(tmp_path: Path) -> None:
    folder = tmp_path / "VIDEO.mp4"
    dump(folder, 1)
    good = dump(folder, 2).read_bytes()
    (folder / "000002.png").write_bytes(good[: len(good) // 2])
    (folder / "000003.png").write_bytes(b"")
    (folder / "000004.png").write_text("no picture")
    Image.fromarray(draw(5)).save(folder / "000005.png", format="JPEG")
    bomb = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(bomb)) + b"IHDR" + bomb + struct.pack(">I", zlib.crc32(b"IHDR" + bomb))
    (folder / "000006.png").write_bytes(good[:8] + chunk + good[33:])
    broken = [candidate(str(n), "VIDEO.mp4", 1, n) for n in range(2, 7)]
    for n, result in enumerate(made(tmp_path, "dump", *broken), start=2):
        size = (folder / f"{n:06d}.png").stat().st_size
        assert rejected(result) == ("broken-media", f"VIDEO.mp4/{n:06d}.png", size)
    same, gone = made(tmp_path, "dump", candidate("s", "VIDEO.mp4", 1, 1), candidate("g", "VIDEO.mp4", 1, 9))
    assert rejected(same)[0] == "same-frame"
    assert rejected(gone) == ("missing-media", "VIDEO.mp4/000009.png", None)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "I;16", "1"])
def test_pictures_of_other_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    grey = Image.fromarray(draw(9)).convert("L")
    if mode == "I;16":
        image = Image.fromarray(np.asarray(grey, np.uint16) * 257)
    elif mode == "1":
        grey = grey.point(lambda level: 255 * (level > 127))
        image = grey.convert("1", dither=Image.Dither.NONE)
    else:
        image = grey.convert(mode)
    dump(tmp_path / "v", 1, image)
    dump(tmp_path / "v", 2)
    (result,) = made(tmp_path, "dump", candidate("a", "v", 1, 2))
    assert np.array_equal(pair(result).image0.pixels, np.asarray(grey.convert("RGB")))


HUGE = """
import resource, sys
from pathlib import Path
from twinset.generators.video.frames import read_frames
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
try:
    read_frames(Path(sys.argv[1]), [0.4], "seconds")
except MemoryError:
    print("out of memory")
"""


def test_a_video_that_asks_for_absurd_memory_is_broken_but_a_machine_without_memory_is_not_hidden(
    tmp_path: Path,
) -> None:
    path = make_video(tmp_path / "clip.mp4")
    data = bytearray(path.read_bytes())
    runs = data.index(b"stts") + 8
    data[runs : runs + 4] = struct.pack(">I", 0x7FFFFFFF)
    path.write_bytes(data)
    make_video(tmp_path / "sound.mp4")
    huge, sound = made(tmp_path, "seconds", candidate("k", "clip", 0.4, 2.0), candidate("l", "sound", 0.4, 2.0))
    assert rejected(huge) == ("broken-media", "clip", len(data))
    assert read(pair(sound).image0.pixels) == 10
    command = [sys.executable, "-c", HUGE, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert said.stdout == "out of memory\n", said.stderr
