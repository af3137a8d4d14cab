"""Whole files have no broken place, damaged ones have it where the damage is.

The three natural sources made from one drawn clip: the planned addresses lead to the frames that are meant.
Of several video streams ffmpeg's is taken: Action Genome's frame numbers are those of an ffmpeg dump.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition
from PIL import Image

from tests.generators.video.numbered_videos import make_video
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.source import SOURCES
from twinset.generators.video.frame_pairs import as_sentence
from twinset.generators.video.relation_captions import (
    CONTACTING,
    RELATIONS,
    SPATIAL,
    captions,
    noun,
    official,
    relation,
)
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


def test_an_alpha_channel_between_packets_is_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "a.webm"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libvpx-vp9", rate=25, options={"cpu-used": "8", "deadline": "realtime"})
        (stream.width, stream.height), stream.pix_fmt = (128, 96), "yuva420p"
        for seed in range(8):
            pixels = np.random.default_rng(seed).integers(0, 256, (96, 128, 4), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgba").reformat(format="yuva420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert not damaged_places(path)


@pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")
def test_real_clips_are_whole() -> None:
    assert {path.name: places for path in sorted(CLIPS.iterdir()) if (places := damaged_places(path))} == {}


FRAMES, RATE, STEP = 40, 10, 6


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """v.mp4: frame n (0-based) is grey of level 6 n and shown at n / 10 s; and Action Genome's dump of two frames."""
    folder = tmp_path_factory.mktemp("media")
    with av.open(str(folder / "v.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "1"})
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for n in range(FRAMES):
            grey = np.full((64, 64, 3), STEP * n, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        container.mux(stream.encode())
    (folder / "dump/v.mp4").mkdir(parents=True)
    for number in (11, 21):
        Image.new("RGB", (64, 64), (number,) * 3).save(folder / f"dump/v.mp4/{number:06d}.png")
    return folder


def generator(kind: str, annotation: str, media: Path, folder: Path, **settings: Any) -> Source:
    path = folder / "annotation.json"
    path.write_text(annotation, "utf-8")
    source = {"kind": kind, "annotations": str(path), "media": str(media), **settings}
    return SOURCES.find(kind).model_validate(source).open(Context("eq-test"))  # type: ignore[attr-defined,no-any-return]


def relation_change() -> str:
    def objects(attention: str, spatial: str, contacting: str) -> list[dict[str, Any]]:
        names = ("attention_relationship", "spatial_relationship", "contacting_relationship")
        lists = ([attention], [spatial], [contacting])
        return [{"class": "bag", **dict(zip(names, lists, strict=True))}]

    before, after = objects("looking_at", "in_front_of", "holding"), objects("unsure", "behind", "not_contacting")
    frames = {"v.mp4/000011.png": before, "v.mp4/000021.png": after}
    return "\n".join(json.dumps({"frame": name, "objects": listed}) for name, listed in frames.items())


def status_change() -> str:
    common = {"subject": "man", "status_before": "sitting", "status_after": "stand"}
    times = [(0, 1.0, 2.0), (1.0, 2.0, 3.6)]
    keys = ("prev_timestamp", "timestamp", "next_timestamp")
    boundaries = [{"boundary_id": f"v_{i}A", **dict(zip(keys, t, strict=True)), **common} for i, t in enumerate(times)]
    return json.dumps({"v": boundaries})


def steps() -> str:
    segments = [([0, 2], "chop"), ([2, 3.4], "stir")]
    annotations = [{"id": i, "segment": times, "sentence": said} for i, (times, said) in enumerate(segments)]
    return json.dumps({"database": {"v": {"annotations": annotations}}})


def made(source: Source) -> Pair | Rejected:
    (result,) = source.make(list(source.plan()))
    return result  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("kind", "annotation", "indices"),
    [
        ("action-genome", relation_change(), (10, 20)),
        ("gebc", status_change(), (5, 28)),
        ("youcook2", steps(), (10, 27)),
    ],
)
def test_addresses_lead_to_their_frames(
    kind: str, annotation: str, indices: tuple[int, int], media: Path, tmp_path: Path
) -> None:
    pair = made(generator(kind, annotation, media, tmp_path))
    assert isinstance(pair, Pair)
    for image, n in zip((pair.image0, pair.image1), indices, strict=True):
        assert abs(float(image.pixels.mean()) - STEP * n) < STEP / 2
        assert image.pts == pytest.approx(n / RATE)
        assert image.source.path == "v.mp4"
    assert pair.captions0 != pair.captions1


def test_action_genome_reads_the_official_dump(media: Path, tmp_path: Path) -> None:
    pair = made(generator("action-genome", relation_change(), media / "dump", tmp_path, frames="dump"))
    assert isinstance(pair, Pair)
    assert [int(image.pixels.max()) for image in (pair.image0, pair.image1)] == [11, 21]
    assert pair.image1.source.path == "v.mp4/000021.png"


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [("action-genome", relation_change()), ("gebc", status_change()), ("youcook2", steps())],
)
def test_a_video_that_is_missing_rejects_its_candidates(kind: str, annotation: str, tmp_path: Path) -> None:
    rejected = made(generator(kind, annotation, tmp_path / "none", tmp_path))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "missing-media"


OFFICIAL = Path(__file__).parents[3] / "../shared/data/action_genome"


@pytest.mark.parametrize(
    ("object_class", "spatial", "contacting", "caption"),
    [  # the published examples (EqBen, Figure 16)
        ("dish", "in_front_of", "holding", "The person is holding the dish which is in front of him/her."),
        ("dish", "on_the_side_of", "not_contacting",
         "The person is not contacting the dish which is on the side of him/her."),
        ("clothes", "in_front_of", "holding", "The person is holding the clothes which is in front of him/her."),
        ("pillow", "behind", "carrying", "The person is carrying the pillow which is behind him/her."),
        ("cup_glass_bottle", "in_front_of", "drinking_from",
         "The person is drinking from the bottle which is in front of him/her."),
        ("sofa/couch", "beneath", "lying_on", "The person is lying on the sofa which is beneath him/her."),
    ],
)  # fmt: skip
def test_captions_are_worded_as_published(object_class: str, spatial: str, contacting: str, caption: str) -> None:
    assert captions(object_class, [spatial], [contacting]) == (caption,)


@pytest.mark.parametrize(
    ("object_class", "contacting", "published", "correct"),
    [
        ("clothes", "holding", "holding the clothes which is", "holding the clothes which are"),
        ("groceries", "carrying", "carrying the groceries which is", "carrying the groceries which are"),
        ("bag", "have_it_on_the_back", "carrying on the back the bag which is",
         "carrying on his/her back the bag which is"),
        ("closet/cabinet", "touching", "touching the closet which is", "touching the closet which is"),
    ],
)  # fmt: skip
def test_grammar_is_right_only_when_asked_for(object_class: str, contacting: str, published: str, correct: str) -> None:
    for grammar, words in ((False, published), (True, correct)):
        assert captions(object_class, ["behind"], [contacting], grammar) == (f"The person is {words} behind him/her.",)


def test_several_relations_give_several_captions_contact_outermost() -> None:
    said = captions("chair", ["beneath", "behind"], ["sitting_on", "leaning_on", "other_relationship"])
    assert said == (
        "The person is sitting on the chair which is beneath him/her.",
        "The person is sitting on the chair which is behind him/her.",
        "The person is leaning on the chair which is beneath him/her.",
        "The person is leaning on the chair which is behind him/her.",
    )


@pytest.mark.parametrize(
    ("spatial", "contacting"),
    [
        ([], ["holding"]),
        (["behind"], []),
        (["unsure"], ["holding"]),
        (["behind"], ["other_relationship"]),
        (["behind"], ["unsure"]),
        (["floating_over"], ["holding"]),
    ],
)
def test_what_cannot_be_said_makes_no_caption(spatial: list[str], contacting: list[str]) -> None:
    assert captions("bag", spatial, contacting) == ()


@pytest.mark.parametrize("spelling", ["cup_glass_bottle", "cupglassbottle", "cup/glass/bottle", "cup glass bottle"])
def test_every_spelling_of_a_class_is_the_same_word(spelling: str) -> None:
    assert official(spelling) == "cupglassbottle"
    assert noun(spelling) == "bottle"
    assert captions(spelling, ["infrontof"], ["drinkingfrom"]) == captions(spelling, ["in_front_of"], ["drinking_from"])


def test_repeated_relations_say_nothing_twice() -> None:
    assert len(captions("bag", ["behind", "behind"], ["holding", "holding"])) == 1


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
        (("chop a stalk of parsley",), "Chop a stalk of parsley."),
        (("Stir the pot.",), "Stir the pot."),
        (("man in yellow t-shirt", "take back one leg"), "Man in yellow t-shirt take back one leg."),
        (("both the knees\nwhile\ttouching  her",), "Both the knees while touching her."),
        (("man in printed shirt , grey pant",), "Man in printed shirt, grey pant."),
        ((" add 1 tbls mustard ",), "Add 1 tbls mustard."),
        (("add the onion to the pand]",), "Add the onion to the pand."),
        (("boil for some time but not too long/",), "Boil for some time but not too long."),
        (("heat tortillas with the green onions '",), "Heat tortillas with the green onions."),
        (("stir it...",), "Stir it."),
        (("stir it .",), "Stir it."),
        (("is it done ?",), "Is it done?"),
        (("add salt,",), "Add salt."),
        (("add salt (a pinch)",), "Add salt (a pinch)."),
        (("call it 'done'",), "Call it 'done'."),
        (("- peel the potato",), "Peel the potato."),
        (("bake at 200\N{DEGREE SIGN}C",), "Bake at 200\N{DEGREE SIGN}C."),
        (("\xe9mincer l'oignon",), "\xc9mincer l'oignon."),
        (("nul\x00byte",), "Nul byte."),
        (("  ",), ""),
        (("...",), ""),
        (("",), ""),
    ],
)  # fmt: skip
def test_phrases_become_sentences(phrases: tuple[str, ...], sentence: str) -> None:
    assert as_sentence(*phrases) == sentence


@pytest.mark.parametrize("sentence", ["Chop 2 onions.", "Is it done?", "Add salt (a pinch)."])
def test_a_sentence_stays_as_it_is(sentence: str) -> None:
    assert as_sentence(sentence) == sentence


SMALL, LARGE = (64, 48), (128, 96)
# Sizes, frames and default flags of the streams, and which one ffmpeg 4.2.2 took.
CHOICES = {
    "larger": ("a.mkv", [SMALL, LARGE], [30, 30], [False, False], 1),
    "first-of-equals": ("a.mkv", [SMALL, SMALL], [30, 30], [False, False], 0),
    "length-does-not-count": ("a.mkv", [SMALL, SMALL], [3, 30], [False, False], 0),
    "default-before-larger": ("a.mkv", [SMALL, LARGE], [30, 30], [True, False], 0),
    "larger-default": ("a.mkv", [SMALL, LARGE], [30, 30], [True, True], 1),
    "first-track-of-mp4-is-default": ("a.mp4", [SMALL, LARGE], [30, 30], [False, False], 0),
    "default-of-mp4": ("a.mp4", [LARGE, SMALL], [30, 30], [False, True], 1),
}


def make(path: Path, sizes: list[tuple[int, int]], counts: list[int], default: list[bool]) -> Path:
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("libx264", rate=25) for _ in sizes]
        for stream, size, flag in zip(streams, sizes, default, strict=True):
            (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
            stream.disposition = Disposition.default if flag else Disposition(0)
        for n in range(max(counts)):
            for stream, count in zip(streams, counts, strict=True):
                if n < count:
                    picture = np.full((stream.height, stream.width, 3), n, np.uint8)
                    container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        for stream in streams:
            container.mux(stream.encode())
    return path


@pytest.mark.parametrize("name", CHOICES)
def test_the_stream_that_ffmpeg_chooses_is_read(name: str, tmp_path: Path) -> None:
    file, sizes, counts, default, chosen = CHOICES[name]
    with VideoFile(make(tmp_path / file, sizes, counts, default)) as video:
        assert video.stream.index == chosen


def test_a_title_that_is_not_utf_8_is_no_reason_to_refuse_a_video(tmp_path: Path) -> None:
    path = tmp_path / "titled.mp4"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "a-title"
        stream = container.add_stream("mpeg4", rate=25)
        (stream.width, stream.height), stream.pix_fmt = SMALL, "yuv420p"
        picture = np.zeros((SMALL[1], SMALL[0], 3), np.uint8)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    whole = path.read_bytes()
    assert whole.count(b"a-title") == 1
    path.write_bytes(whole.replace(b"a-title", b"\xff\xfetitle"))
    with VideoFile(path) as video:
        assert video.stream.width == SMALL[0]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg on this machine; its recorded choices are tested")
@pytest.mark.parametrize("name", CHOICES)
def test_the_choices_are_those_of_the_ffmpeg_of_this_machine(name: str, tmp_path: Path) -> None:
    file, sizes, counts, default, chosen = CHOICES[name]
    path = make(tmp_path / file, sizes, counts, default)
    command = ["ffmpeg", "-nostdin", "-i", str(path), "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert f"Stream #0:{chosen}" in next(line for line in said.splitlines() if "->" in line)
