"""Whole files have no broken place, damaged ones have it where the damage is; captions are worded as published.

Of several video streams ffmpeg's is taken: Action Genome's frame numbers are those of an ffmpeg dump.
"""

from pathlib import Path

import av
import numpy as np
import pytest
from av.stream import Disposition

from tests.generators.video.numbered_videos import WIDTH, make_video
from twinset.contracts.errors import WrongUse
from twinset.contracts.source import SOURCES
from twinset.generators.video.frame_pairs import as_sentence
from twinset.generators.video.relation_captions import CONTACTING, RELATIONS, SPATIAL, captions, noun, relation
from twinset.generators.video.video_file import VideoFile
from twinset.shards.contracts import Context, Source

CLIPS = Path(__file__).parents[3] / "../shared/data/videos"


def damaged_places(path: Path) -> frozenset[int]:
    with VideoFile(path) as file:
        return file.scan().damaged


@pytest.mark.parametrize(
    ("file", "codec"), [("a.mkv", "libx264"), ("a.webm", "libvpx"), ("a.avi", "mpeg4"), ("a.ts", "libx264")]
)
def test_missing_packets_are_noticed(file: str, codec: str, tmp_path: Path) -> None:
    path = make_video(tmp_path / file, count=100, codec=codec, options={"g": "10"})
    assert not damaged_places(path)
    data = bytearray(path.read_bytes())
    start = len(data) // 2
    path.write_bytes(data[:start] + bytes(6000) + data[start + 6000 :])
    assert damaged_places(path)


@pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")
def test_real_clips_are_whole() -> None:
    assert {path.name: places for path in sorted(CLIPS.iterdir()) if (places := damaged_places(path))} == {}


def opened(kind: str, annotation: str, folder: Path) -> Source:
    path = folder / "annotation.json"
    path.write_text(annotation, "utf-8")
    source = {"kind": kind, "annotations": str(path), "media": str(folder)}
    return SOURCES.find(kind).model_validate(source).open(Context("eq-test"))  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("kind", "annotation", "said"),
    [
        ("action-genome", "not json", "line 1: not-json"),
        ("gebc", "[]", "not a mapping of videos"),
        ("gebc", '{"v": {}}', "video 'v': video-malformed"),
        ("youcook2", "[]", "no mapping under 'database'"),
        ("video-segments", '[{"video": "a", "start": 0, "end": 1, "caption": "b"}]', "two segments of one video"),
        ("youcook2", '{"database": {"/v": {"annotations": []}}}', "video '/v': unsafe-path"),
    ],
)
def test_bad_files_say_where(kind: str, annotation: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json") as raised:
        list(opened(kind, annotation, tmp_path).plan())
    assert said in str(raised.value)


OFFICIAL = Path(__file__).parents[3] / "../shared/data/action_genome"


@pytest.mark.parametrize(
    ("object_class", "spatial", "contacting", "caption"),
    [  # the published examples (EqBen, Figure 16)
        ("dish", "in_front_of", "holding", "The person is holding the dish which is in front of him/her."),
        ("dish", "on_the_side_of", "not_contacting",
         "The person is not contacting the dish which is on the side of him/her."),
        ("clothes", "in_front_of", "holding", "The person is holding the clothes which is in front of him/her."),
        ("cup_glass_bottle", "in_front_of", "drinking_from",
         "The person is drinking from the bottle which is in front of him/her."),
        ("sofa/couch", "beneath", "lying_on", "The person is lying on the sofa which is beneath him/her."),
    ],
)  # fmt: skip
def test_captions_are_worded_as_published(object_class: str, spatial: str, contacting: str, caption: str) -> None:
    assert captions(object_class, [spatial], [contacting]) == (caption,)


def test_several_relations_give_several_captions_contact_outermost() -> None:
    said = captions("chair", ["beneath", "behind", "behind"], ["sitting_on", "leaning_on", "other_relationship"])
    assert said == tuple(
        f"The person is {contact} on the chair which is {place} him/her."
        for contact in ("sitting", "leaning")
        for place in ("beneath", "behind")
    )


def test_vocabulary_covers_the_official_lists() -> None:
    if not OFFICIAL.is_dir():
        pytest.skip("the official lists of ../shared/data/action_genome are not on this machine")
    named = (OFFICIAL / "relationship_classes.txt").read_text("utf-8").split()
    assert sorted(named) == sorted(RELATIONS)
    assert {relation(name) for name in named} >= SPATIAL.keys() | CONTACTING.keys()
    for object_class in (OFFICIAL / "object_classes.txt").read_text("utf-8").split():
        assert noun(object_class) in object_class


@pytest.mark.parametrize(
    ("phrases", "sentence"),
    [
        (("man in yellow t-shirt", "take back one leg"), "Man in yellow t-shirt take back one leg."),
        (("both the knees\nwhile\ttouching  her",), "Both the knees while touching her."),
        (("man in printed shirt , grey pant",), "Man in printed shirt, grey pant."),
        (("add the onion to the pand]",), "Add the onion to the pand."),
        (("heat tortillas with the green onions '",), "Heat tortillas with the green onions."),
        (("stir it...",), "Stir it."),
        (("is it done ?",), "Is it done?"),
        (("add salt (a pinch)",), "Add salt (a pinch)."),
        (("Chop 2 onions.",), "Chop 2 onions."),
        (("bake at 200\N{DEGREE SIGN}C",), "Bake at 200\N{DEGREE SIGN}C."),
        (("\xe9mincer l'oignon",), "\xc9mincer l'oignon."),
        (("nul\x00byte",), "Nul byte."),
        (("...",), ""),
    ],
)  # fmt: skip
def test_phrases_become_sentences(phrases: tuple[str, ...], sentence: str) -> None:
    assert as_sentence(*phrases) == sentence


SMALL, LARGE = (64, 48), (128, 96)
# Sizes and default flags of the streams, and which one ffmpeg 4.2.2 took.
CHOICES = {
    "larger": ("a.mkv", [SMALL, LARGE], [False, False], 1),
    "first-of-equals": ("a.mkv", [SMALL, SMALL], [False, False], 0),
    "default-before-larger": ("a.mkv", [SMALL, LARGE], [True, False], 0),
    "larger-default": ("a.mkv", [SMALL, LARGE], [True, True], 1),
    "first-track-of-mp4-is-default": ("a.mp4", [SMALL, LARGE], [False, False], 0),
    "default-of-mp4": ("a.mp4", [LARGE, SMALL], [False, True], 1),
}


def make(path: Path, sizes: list[tuple[int, int]], default: list[bool]) -> Path:
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("libx264", rate=25) for _ in sizes]
        for stream, size, flag in zip(streams, sizes, default, strict=True):
            (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
            stream.disposition = Disposition.default if flag else Disposition(0)
        for stream in streams:
            picture = np.zeros((stream.height, stream.width, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    return path


@pytest.mark.parametrize("name", CHOICES)
def test_the_stream_that_ffmpeg_chooses_is_read(name: str, tmp_path: Path) -> None:
    file, sizes, default, chosen = CHOICES[name]
    with VideoFile(make(tmp_path / file, sizes, default)) as video:
        assert video.stream.index == chosen


def test_a_title_that_is_not_utf_8_is_no_reason_to_refuse_a_video(tmp_path: Path) -> None:
    path = make_video(tmp_path / "titled.mp4", count=2)
    whole = path.read_bytes()
    assert whole.count(b"Lavf") == 1  # the file names its writer
    path.write_bytes(whole.replace(b"Lavf", b"\xff\xfevf"))
    with VideoFile(path) as video:
        assert video.stream.width == WIDTH
