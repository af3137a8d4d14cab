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
        "versions": {"action-genome": 1, "schema": 2},
        "tar": "d6d3215f6e2f015d364ae5cb842c325529642f7aaab3f2f4075e9b83987a5747",
        "rows": "d675cf7ccf673b6ef00b3f50467d82fc4eb2b5c370d5cff5b27412ac65977523",
    },
    "eq-ag": {
        "versions": {"action-genome": 1, "schema": 2},
        "tar": "e401da2774154f7f16940ae3b52267fe32df5b0693f0fe19d9d54602c25022e5",
        "rows": "e78db9cd81dd06da4b8affc6ca7609e781a04f4b90d731922ca3d77c3afcbfec",
    },
    "eq-gebc": {
        "versions": {"gebc": 2, "motion-words": 1, "equal-captions": 1, "schema": 2},
        "tar": "06e001ec00763dcad0bdeb97ebd2ea9d1637fbc507bb27c1f5fa4b7722f32906",
        "rows": "3078505d09d5c93991f2507829a09167d38cfdf381171ed1ac7c66a5c4ee9409",
    },
    "eq-youcook2": {
        "versions": {"youcook2": 2, "faces": 1, "schema": 2},
        "tar": "dd508ff29f0db59b566be541b2b309f6019315e6d5e246f556f867cd8aa74516",
        "rows": "19827d1ef181e6ff40caaf98ec4c2e3f3302763d8b9760b6e43be7e102627e77",
    },
    "focus-attribute": {
        "versions": {"genecis-attributes": 1, "schema": 2},
        "tar": "6e8b6017ddf6f33e4a077ac8ee27c3b15d86dc160f5c45330fd94585105345e1",
        "rows": "358896c62c1cf37e3882ac419b0c593d849499ccd16fa22faf1d0ce92b941651",
    },
    "change-object": {
        "versions": {"genecis-objects": 1, "schema": 2},
        "tar": "13ee50a55141778d27815e7554921ac31752e54b16ab085ffe88d0a3b46ef1a9",
        "rows": "d1a1aa301a667b4ce443593980f98a70e9456baf10540240f8bcd340fb08aaeb",
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
        write_samples(
            list(generator.plan()), StageWorker("eq-ag", recipe["eq-ag"], generator, ()), tar, tmp_path / "rows"
        )
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
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    made = dict(json.loads(line) for line in done.stdout.splitlines())
    assert list(made) == FOUND
    for name, found in made.items():
        check(name, found)
