"""The export of triplets, read as GeneCIS's released training reads it."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.made_datasets import MadeDataset
from tests.made_samples import COLOURS, MINED_SUBSET, Planned, triplet_shards
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.triplet import PARTS, Triplet
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples

FORMAT = "genecis-training"


class ReleasedDataSet:
    """What the released data set does: relations of all entries as one list, subjects that can be drawn, triplets as
    places in that list; images lie below ``training``."""

    def __init__(self, root: Path, least_images: int = 5) -> None:
        self.root = root
        entries = torch.load(root / "cc_tsg.pt", weights_only=True)
        self.rows = [
            (entry["image_id"], entry["captions"], one["subject"], one["relation"], one["object"])
            for entry in entries
            for one in entry["relations"]
        ]
        images, objects = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for image, _, subject, _, thing in self.rows:
            images[subject].add(image)
            objects[subject].add(thing)
        drawn = [one for one in images if len(images[one]) >= least_images and len(objects[one]) >= 2]
        assert set.union(*(images[one] for one in drawn))  # raises TypeError where there is none
        self.samples = torch.load(root / "triplets.pt", weights_only=True)

    def __getitem__(self, number: int) -> tuple[list[bytes], str]:
        sample = self.samples[number]
        places = sample["ref_img_idx"], sample["target_img_idx"]
        rows = [self.rows[at] for at in (*places, sample.get("text_distractor_img_idx", places[0]))]
        return [(self.root / "training" / str(row[0])).read_bytes() for row in rows], " ".join(rows[1][3:])


def told(shards: list[list[Planned]]) -> list[list[Planned]]:
    """Shards whose triplets say their relations, as mined ones do."""
    for planned in (one.made for shard in shards for one in shard):
        if isinstance(planned, Triplet):
            number = int(planned.image_ids["reference"])
            relation = {"subject": "disc", "predicate": "beside"}
            planned.provenance = {
                part: {**relation, "object": f"{COLOURS[(number + place) % 5]} disc", "caption_id": f"{number}-{place}"}
                for place, part in enumerate(PARTS)
            }
            planned.condition = f"beside {COLOURS[(number + 1) % 5]} disc"
    return shards


@pytest.mark.parametrize("distractors", [True, False])
def test_the_released_training_reads_every_triplet(made: MadeDataset, tmp_path: Path, distractors: bool) -> None:
    made.add("mined", MINED_SUBSET, told(triplet_shards("mined", distractors=distractors)))
    assert export(made.store, ["mined"], FORMAT, tmp_path / "to") == 8
    found = ReleasedDataSet(tmp_path / "to")
    samples = list(read_samples(made.store, "mined"))
    assert len(found.samples) == len(samples)
    for number, sample in enumerate(samples):
        images, condition = found[number]
        shown: list[Any] = [sample.images.get(part, sample.images["reference"]) for part in PARTS]
        assert images == shown and condition == sample.texts["condition"]
    # An image that many triplets show lies there once, as do its relations.
    assert len(list((tmp_path / "to/training").iterdir())) == len(
        {one for each in samples for one in each.images.values()}
    )
    assert len(set(map(str, found.rows))) == len(found.rows)


def test_what_cannot_be_read_there_is_not_written(
    made: MadeDataset, made_triplets: MadeDataset, tmp_path: Path
) -> None:
    for subset, error, problem in (
        ("triplets", BuildFailed, "its JSON has no relation of the reference"),
        ("index-only", WrongUse, "index-only is an index without images"),
    ):
        with pytest.raises(error, match=problem):
            export(made_triplets.store, [subset], FORMAT, tmp_path / "to")
    made.add("mined", MINED_SUBSET, told(triplet_shards("mined")))
    with pytest.raises(WrongUse, match="index-only is an index without images"):
        export(made.store, ["mined", "index-only"], FORMAT, tmp_path / "to")
    made.add("few", MINED_SUBSET, told(triplet_shards("few", distractors=False, count=2)))
    with pytest.raises(WrongUse, match="no subject of the split train is in 5 images with 2 objects"):
        export(made.store, ["few"], FORMAT, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_a_split_that_is_called_as_the_folder_of_images(made: MadeDataset, tmp_path: Path) -> None:
    shards = told(triplet_shards("mined", distractors=False))
    for planned in (one.made for shard in shards for one in shard):
        if isinstance(planned, Triplet):
            planned.split = "training"
    made.add("mined", {**MINED_SUBSET, "split": "training"}, shards)
    assert export(made.store, ["mined"], FORMAT, tmp_path / "to") == 8
    assert {one.name for one in (tmp_path / "to").iterdir()} == {"training", "cc_tsg.pt", "triplets.pt"}
    assert all(ReleasedDataSet(tmp_path / "to")[0])  # its images are found


#: Exports, and dies within the given one of the two files that torch saves, which is half-written then.
DIES = """
import os, sys
from pathlib import Path
import torch
from twinset.shards.export.formats import export
from twinset.shards.storage.store import Store
def half(tables, path, save=torch.save, calls=[]):
    save(tables, path)
    calls.append(path)
    if len(calls) == int(sys.argv[3]):
        os.truncate(path, 100)
        os.kill(os.getpid(), 9)
torch.save = half
export(Store(sys.argv[1]), ["mined"], "genecis-training", Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_kill_leaves_nothing_and_the_next_export_has_the_same_bytes(made: MadeDataset, tmp_path: Path) -> None:
    made.add("mined", MINED_SUBSET, told(triplet_shards("mined")))
    export(made.store, ["mined"], FORMAT, tmp_path / "whole")
    parent = tmp_path / "exports"
    for file in ("1", "2"):
        command = [sys.executable, "-c", DIES, made.store.root, str(parent / "to"), file]
        assert subprocess.run(command, cwd=Path(__file__).parents[3], check=False).returncode == -9
        (left,) = parent.iterdir()
        assert left.name.startswith(".to-")
    export(made.store, ["mined"], FORMAT, parent / "to")
    assert [one.name for one in parent.iterdir()] == ["to"]
    whole, again = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "whole", parent / "to")
    )
    assert again == whole and Path("cc_tsg.pt") in whole
