"""Bytes of shards, as digests: code that changes them must raise a version, or old and new shards would mix."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image, ImageDraw

from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import canonical_json, digest, identity_of, sample_key, sha256_of_file
from twinset.manifests.recipe import parse_recipe
from twinset.manifests.stage import SCHEMA_VERSION
from twinset.shards.contracts import Context, Generator
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Frame, MediaFile
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.making.payload import write_samples
from twinset.stages.stage_worker import StageWorker

# The libraries whose versions, as recorded in a stage's digest, decide these bytes too.
LIBRARIES = {"numpy": "2.4.6", "pillow": "13.0.0", "pyarrow": "26.0.1", "av": "18.1.0", "dlib-bin": "20.0.1"}

#: Of shard 0: versions (generator, filters), sha256 of tar and of rows.
GOLDEN: dict[str, dict[str, Any]] = {
    "drawn": {
        "versions": {"action-genome": 1, "schema": 4},
        "tar": "6b8ec504f35d2139557e1003fa53e7bc35a8c12a59b573939cb63df4932ae73b",
        "rows": "f39bbb8895d3d16e543db0ddc95ce23ce76fb109179d2bbf7350137d0459866f",
    },
    "eq-ag": {
        "versions": {"action-genome": 2, "schema": 4},
        "tar": "8cae273c94ab9befd6f4677d9dda8e9ca5dca6aa2ae325f4e14763928397c6ac",
        "rows": "9c84dc5b3f6e4069527be93e8afdedcb4ca8b437d0ef06f9d68df743f7a63108",
    },
    "eq-gebc": {
        "versions": {"gebc": 3, "motion-words": 1, "equal-captions": 1, "schema": 4},
        "tar": "1e4640b417d227f853ce0980ad63bf99ea639489eee95eee8506c8adc4d2d5b5",
        "rows": "17e5c33aa4dc3ead297056be2feeb73252dd7968e2ad90402c57188b661e33de",
    },
    "eq-youcook2": {
        "versions": {"youcook2": 3, "faces": 1, "schema": 4},
        "tar": "e9138678171f22174f3b0bbc6f87c68118271002c2dd42236a9b493ea27935f0",
        "rows": "93a96d5a4b4dca0c6189a22f170bb4520f00eb54ee00129f0bd03be450a184e1",
    },
    "focus-attribute": {
        "versions": {"genecis-attributes": 2, "schema": 4},
        "tar": "15637fec289f13472184bd187a5138d997dddfb2c3ca6b79db05a3d961c25cc5",
        "rows": "104a197866cadf31ba17e38fc63cf416bc8170e6ce1f3f1cb821b274ad85f5db",
    },
    "change-object": {
        "versions": {"genecis-objects": 2, "schema": 4},
        "tar": "ad9d8f84a33730425fa98efc68fafce7bbd7c92a7adaa523135d25c64bdde785",
        "rows": "d46270c75c9cfb3e05ced068692e59ca41e57f02c90c12147c6aa8d24054a214",
    },
}

FOUND = [name for name in GOLDEN if name != "drawn"]

MAKES_ONE_OF_EACH = """
import json, sys
from twinset.manifests.recipe import load_recipe
from twinset.shards.storage.store import Store
from twinset.stages.job import Job, check_inputs
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare

job = Job(load_recipe("demo").only(sys.argv[2:]), Store(sys.argv[1]))
check_inputs(job.recipe, ("annotations", "media", "models"))
for name in sys.argv[2:]:
    facts = prepare(job, name).facts
    receipt = make_shard(job.store.root, name, 0)
    versions = {one["kind"]: one["version"] for one in (facts["generator"], *facts["filters"])}
    print(json.dumps([name, {"versions": versions, "tar": receipt.tar_sha256, "rows": receipt.rows_sha256}]))
"""

pytestmark = pytest.mark.skipif(
    any(version(name) != expected for name, expected in LIBRARIES.items()),
    reason=f"other libraries than those that the digests are of ({LIBRARIES}): install requirements.lock",
)


def check(name: str, found: dict[str, Any]) -> None:
    found = {"versions": {**found["versions"], "schema": SCHEMA_VERSION}, "tar": found["tar"], "rows": found["rows"]}
    golden = GOLDEN[name]
    if found["versions"] == golden["versions"]:
        assert found == golden, f"{name}: bytes changed: bump version, then update this digest"
    assert found == golden, f"{name}: a version was raised; update this digest"


COLOURS = ("red", "green", "blue")  # of the disc in frame 0, 1 and 2
HOSTILE = "the disc is <script>alert('twin')</script> & rouge écarlate 红色"
VIDEO = "-Disc_0"


class DrawnDiscs(Generator[Any]):
    """Three drawings, of which each pair is planned, so that frames are shared."""

    version = 1
    candidate = FramePairCandidate

    def inputs(self) -> str:
        return ""

    def plan(self) -> Iterator[FramePairCandidate]:
        captions = [f"the disc is {COLOURS[0]}", f"the disc is {COLOURS[1]}", HOSTILE]
        for at0, at1 in ((0, 1), (0, 2), (1, 2)):
            yield FramePairCandidate(
                key=sample_key(self.name, VIDEO, at0, at1),
                identity=identity_of(VIDEO, at0, at1),
                group=VIDEO,
                captions0=(captions[at0], f"{COLOURS[at0]} disc"),
                captions1=(captions[at1],),
                video=VIDEO,
                at0=float(at0),
                at1=float(at1),
                change="colour",
                provenance=canonical_json({"object": "cup/glass", "frame0": at0, "frame1": at1}).decode(),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair]:
        for one in cast(Sequence[FramePairCandidate], candidates):
            yield Pair(
                key=one.key,
                group=one.group,
                split=one.split,
                change=one.change,
                image0=self._draw(int(one.at0)),
                image1=self._draw(int(one.at1)),
                captions0=one.captions0,
                captions1=one.captions1,
                provenance=json.loads(one.provenance),
            )

    def _draw(self, at: int) -> Frame:
        picture = Image.new("RGB", (96, 72), (0, 90, 120))
        ImageDraw.Draw(picture).ellipse((24 + 4 * at, 12, 72 + 4 * at, 60), fill=COLOURS[at])
        source = MediaFile(f"{VIDEO}.mp4", 1000 + at, digest(VIDEO) * 2)
        return Frame(f"{VIDEO}#{at}", np.asarray(picture, dtype=np.uint8), float(at), source)


def test_a_drawn_shard_has_the_same_bytes_as_ever(tmp_path: Path) -> None:
    source = {"kind": "action-genome", "annotations": "/ann.json", "media": "/media"}
    recipe = parse_recipe({"name": "drawn", "subsets": {"eq-ag": {"source": source}}})
    generator = DrawnDiscs(recipe["eq-ag"].source, Context("eq-ag"))
    with TarWriter(tmp_path / "tar") as tar:
        worker = StageWorker("eq-ag", recipe["eq-ag"], generator, ())
        write_samples(list(generator.plan()), worker, tar, tmp_path / "rows")
    rows = sha256_of_file(tmp_path / "rows")[0]
    check("drawn", {"versions": {"action-genome": 1}, "tar": tar.sha256, "rows": rows})


def test_a_shard_of_every_subset_that_is_found_has_the_same_bytes_as_ever(tmp_path: Path) -> None:
    # Renders differ between runtime classes: tests/generators/kubric_scenes/test_generator.py holds their scenes. So do
    # relations of captions: tests/generators/triplets/test_mining.py holds what is mined of those of its own.
    # In a process of its own: two threads in dlib corrupt the heap. The tests' cache is never older than the code.
    done = subprocess.run(
        [sys.executable, "-c", MAKES_ONE_OF_EACH, str(tmp_path / "out"), *FOUND],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = dict(json.loads(line) for line in done.stdout.splitlines())
    assert list(made) == FOUND
    for name, found in made.items():
        check(name, found)
