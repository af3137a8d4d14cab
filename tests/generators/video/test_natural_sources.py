"""The three natural sources made from one drawn clip: the planned addresses lead to the frames that are meant."""

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.source import SOURCES
from twinset.shards.contracts import Context, Generator

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


def generator(kind: str, annotation: str, media: Path, folder: Path, **settings: Any) -> Generator[Any]:
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


def made(source: Generator[Any]) -> Pair | Rejected:
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
