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
from twinset.contracts.kinds.samples import MediaFile, Rejected
from twinset.generators.video import frames
from twinset.generators.video.action_genome import ActionGenome
from twinset.generators.video.frame_pairs import FramePairCandidate, FramePairSource, as_sentence
from twinset.generators.video.segments import YouCook2
from twinset.shards.contracts import Context


def candidate(video: str, at0: float, at1: float) -> FramePairCandidate:
    return FramePairCandidate(
        **{"key": f"{video}-{at0}-{at1}", "group": video, "video": video, "at0": at0, "at1": at1},
        **{"captions0": ("before", "more"), "captions1": ("after",), "change": "status"},
        provenance=canonical_json({"video": video, "frame0": "000001"}).decode(),
    )


def made(folder: Path, *planned: tuple[str, float, float], dump: bool = False) -> list[Pair | Rejected]:
    source: FramePairSource = YouCook2(kind="youcook2", annotations=folder / "none", media=folder)
    if dump:
        source = ActionGenome(kind="action-genome", annotations=folder / "none", media=folder, frames="dump")
    candidates = [candidate(*one) for one in planned]
    results = list(source.open(Context("eq")).make(candidates))
    assert [result.key for result in results] == [one.key for one in candidates]
    return results


def pair(result: Pair | Rejected) -> Pair:
    assert isinstance(result, Pair), result
    return result


def rejected(result: Pair | Rejected) -> tuple[str, str | None, int | None]:
    assert isinstance(result, Rejected), result
    return result.reason, result.media, result.media_size


def test_a_pair_holds_its_frames_source_and_provenance_and_shares_frames_with_others(tmp_path: Path) -> None:
    path = make_video(tmp_path / "clip.mp4")
    results = made(tmp_path, ("clip", 0.4, 2.0), ("clip", 0.41, 1.2), ("clip", 2.0, 1.2))
    sample, second, third = (pair(result) for result in results)
    assert (read(sample.image0.pixels), read(sample.image1.pixels)) == (10, 50)
    assert (sample.image0.pts, sample.image1.pts) == (pytest.approx(0.4), pytest.approx(2.0))
    source = MediaFile("clip.mp4", path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    assert sample.image0.source == sample.image1.source == source
    assert sample.provenance == {"video": "clip", "frame0": "000001", "index0": 10, "index1": 50}
    assert (sample.group, sample.split, sample.change) == ("clip", "test", "status")
    assert (sample.captions0, sample.captions1) == (("before", "more"), ("after",))
    assert second.image0 is sample.image0 and third.image0 is sample.image1 and third.image1 is second.image1
    assert len({sample.image0.id, sample.image1.id, second.image1.id}) == 3


def test_what_gives_no_pair_rejects_its_own_candidate_only(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "clip.mp4").read_bytes()
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("not a video")
    (tmp_path / "cut.mp4").write_bytes(whole[:2000])
    runs = whole.index(b"stts") + 8  # a count for which FFmpeg asks for absurd memory
    (tmp_path / "huge.mp4").write_bytes(whole[:runs] + struct.pack(">I", 0x7FFFFFFF) + whole[runs + 4 :])
    expected: dict[tuple[str, float, float], tuple[str, str | None, int | None]] = {
        ("gone", 0.4, 0.8): ("missing-media", "gone", None),
        ("empty", 0.4, 0.8): ("broken-media", "empty", 0),
        ("text", 0.4, 0.8): ("broken-media", "text", 11),
        ("cut", 0.4, 0.8): ("broken-media", "cut", 2000),
        ("huge", 0.4, 0.8): ("broken-media", "huge", len(whole)),
        ("../clip", 0.4, 0.8): ("unsafe-path", None, None),
        ("clip", 0.4, 0.41): ("same-frame", None, None),
        ("clip", 0.4, 9.0): ("beyond-end", "clip", len(whole)),
        ("clip", float("nan"), 0.4): ("beyond-end", "clip", len(whole)),
    }
    *bad, good = made(tmp_path, *expected, ("clip", 0.4, 0.8))
    assert [rejected(one) for one in bad] == list(expected.values())
    assert read(pair(good).image0.pixels) == 10


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
            made(tmp_path, ("clip", 0.0, 0.4))
    else:
        assert rejected(made(tmp_path, ("clip", 0.0, 0.4))[0]) == ("broken-media", "clip", 8)


def test_frames_of_an_official_dump(tmp_path: Path) -> None:
    folder = tmp_path / "VIDEO.mp4"
    folder.mkdir()
    for number in (7, 123, 200):
        Image.fromarray(draw(number)).save(folder / f"{number:06d}.png")
    data = (folder / "000123.png").read_bytes()
    (folder / "000002.png").write_bytes(data[: len(data) // 2])
    planned = [("VIDEO.mp4", 7, number) for number in (123, 2, 7, 9)]
    a, b, cut, same, gone = made(tmp_path, ("VIDEO.mp4", 123, 200), *planned, dump=True)
    first, second = pair(a), pair(b)
    assert np.array_equal(second.image0.pixels, draw(7)) and np.array_equal(second.image1.pixels, draw(123))
    assert first.image0 is second.image1 and first.image0.pts == -1.0
    source = MediaFile("VIDEO.mp4/000123.png", len(data), hashlib.sha256(data).hexdigest())
    assert first.image0.source == source
    assert first.provenance == {"video": "VIDEO.mp4", "frame0": "000001", "index0": -1, "index1": -1}
    assert rejected(cut) == ("broken-media", "VIDEO.mp4/000002.png", len(data) // 2)
    assert rejected(same)[0] == "same-frame"
    assert rejected(gone) == ("missing-media", "VIDEO.mp4/000009.png", None)


def test_phrases_become_sentences() -> None:
    sentences = {
        ("man in yellow t-shirt", "take back\none  leg"): "Man in yellow t-shirt take back one leg.",
        ("man in printed shirt , grey pant",): "Man in printed shirt, grey pant.",
        ("add the onion to the pand]",): "Add the onion to the pand.",
        ("heat tortillas with the green onions '",): "Heat tortillas with the green onions.",
        ("stir it...",): "Stir it.",
        ("is it done ?",): "Is it done?",
        ("add salt (a pinch)",): "Add salt (a pinch).",
        ("nul\x00byte",): "Nul byte.",
        ("...",): "",
    }
    assert {phrases: as_sentence(*phrases) for phrases in sentences} == sentences
