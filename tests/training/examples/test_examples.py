"""What a mixture holds: words, groups and pixels of stored samples, and what is refused.

Orders depend on seed and epoch alone; transforms are open_clip's own.
"""

from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.made_datasets import MadeDataset
from twinset.contracts.errors import WrongUse
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.ordering import order
from twinset.training.examples.transforms import Transforms


def all_of(examples: ExampleSet) -> list[tuple[str, str, bytes]]:
    """Key, text and image of each example."""
    rows = [examples[number] for number in range(len(examples))]
    return [(row.key, row.texts["text"], examples.read_image(row, "image")) for row in rows]


def test_each_side_of_a_pair_is_an_example_with_the_other_as_its_negative(made_pairs: MadeDataset) -> None:
    examples = open_examples([f"{made_pairs.root}:eq-gebc"], "pairs")
    stored = list(read_samples(made_pairs.store, "eq-gebc"))
    assert len(examples) == 2 * len(stored) == 16
    for number, sample in enumerate(stored):
        for side in (0, 1):
            example, other = examples[2 * number + side], examples[2 * number + 1 - side]
            assert example.key == f"{sample.key}-{side}"
            assert example.group == other.group == f"eq-gebc/{sample.json.group}"
            assert examples.read_image(example, "image") == sample.images[f"image{side}"]
            assert example.texts["text"] == sample.texts[f"caption{side}"]
            assert example.images["negative_image"] == other.images["image"]
            assert example.texts["negative_text"] == other.texts["text"]
            assert example.where.endswith(f".tar: {sample.key}-{side}")
    assert open_examples([f"{made_pairs.root}:eq-gebc"], "pairs", twins="first")[3].key == f"{stored[3].key}-0"


def test_a_mixture_is_one_table_of_its_datasets_in_turn(made_pairs: MadeDataset, made_text_pairs: MadeDataset) -> None:
    places = [f"{made_pairs.root}:eq-ag", f"{made_text_pairs.root}:text"]
    alone = [open_examples([place], "pairs") for place in places]
    mixture = open_examples(places, "pairs")
    assert all_of(mixture) == all_of(alone[0]) + all_of(alone[1])
    assert mixture.lacking("negative_text") is None and mixture.lacking("negative_image") == 16
    with pytest.raises(WrongUse, match=f"^{places[1]}: text-.* has no negative_image"):
        mixture.require(["image", "negative_image"])
    assert mixture.groups() == alone[0].groups() | alone[1].groups() and mixture.hashes() >= alone[1].hashes()
    assert [row["examples"] for row in mixture.facts()] == [len(examples) for examples in alone]


def test_digests_are_those_of_the_data_alone(made_pairs: MadeDataset, tmp_path: Path) -> None:
    root = made_pairs.root
    first = open_examples([f"{root}:eq-ag"], "pairs")
    others = [open_examples([f"{root}:eq-gebc"], "pairs"), open_examples([f"{root}:eq-ag"], "pairs", twins="first")]
    assert len({first.digest(), *(examples.digest() for examples in others)}) == 3
    root.rename(tmp_path / "moved")
    moved = open_examples([f"{tmp_path}/moved:eq-ag"], "pairs")
    assert moved.digest() == first.digest()
    shards = [(shard["tar"], shard["samples"]) for shard in moved.facts()[0]["shards"]]
    assert shards == [(layout.tar("eq-ag", "test", number), count) for number, count in ((0, 3), (2, 3), (3, 2))]


@pytest.mark.parametrize(
    ("message", "places", "given"),
    [
        ("not a dataset that twinset built", ["ROOT/nothing"], {}),
        ("names no data", [""], {}),
        ("no subset 'eq-sd'; it has eq-ag", ["ROOT:eq-sd"], {}),
        ("eq-ag is named twice", ["ROOT:eq-ag", "ROOT"], {}),
        (r"reads triplet, and here is eq-ag \(pair\)", ["ROOT:eq-ag"], {"task": "triplets"}),
        ("no samples of split 'train'; there are samples of: test", ["ROOT:eq-ag"], {"split": "train"}),
    ],
)
def test_no_data_is_refused(made_pairs: MadeDataset, message: str, places: list[str], given: dict[str, Any]) -> None:
    with pytest.raises(WrongUse, match=message):
        open_examples([place.replace("ROOT", str(made_pairs.root)) for place in places], **{"task": "pairs"} | given)


def test_damaged_shards_are_refused_with_what_is_wrong(made_pairs: MadeDataset) -> None:
    root = made_pairs.root
    tar, rows = root / layout.tar("eq-ag", "test", 0), root / layout.rows("eq-ag", 0)
    content, table = tar.read_bytes(), pq.read_table(rows)

    def refused(message: str) -> None:
        with pytest.raises(WrongUse, match=f"{message}.*; run its build again"):
            open_examples([f"{root}:eq-ag"], "pairs")

    tar.write_bytes(content[:-512])
    refused("00000.tar: [0-9,]+ bytes instead of")
    tar.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    refused("00000.tar: byte 0: not a header of a tar")
    tar.write_bytes(content)
    at = table.column_names.index("image0_sha256")
    for wrong in (pa.array([[row] for row in range(len(table))]), pa.nulls(len(table))):
        pq.write_table(table.set_column(at, "image0_sha256", wrong), rows)
        refused("its shards are damaged")
    pq.write_table(table.slice(1), rows)
    refused("kept samples instead of")
    (root / layout.receipt("eq-ag", 2)).unlink()
    refused("3 of 4 shards are finished")


def test_an_order_holds_every_example_once_and_is_another_one_in_each_epoch() -> None:
    orders = [order(1000, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(numbers) == list(range(1000)) for numbers in orders)
    # Of two unrelated permutations one place in n agrees: 1 on average, 10 with a probability of 1e-7.
    assert all((orders[n] != earlier).sum() > 990 for n in range(4) for earlier in orders[:n])
    # Fixed numbers: a checkpoint of an earlier version resumes in the same order.
    assert order(8, 42, 3).tolist() == [4, 6, 5, 2, 0, 1, 3, 7]


def picture(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(width).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("settings", [{"size": 64}, {"size": 48, "resize_mode": "squash", "interpolation": "bilinear"}])
@pytest.mark.parametrize("size", [(97, 131), (200, 80), (64, 64)])
@pytest.mark.parametrize("mode", ["training", "evaluation"])
def test_transforms_are_open_clips_own(mode: Any, settings: dict[str, Any], size: tuple[int, int]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), mode == "training")
    transforms, state = Transforms(settings, mode), torch.get_rng_state()
    tensor = transforms.tensor(transforms.pixels(picture(*size), 7)[None].copy())[0]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(7)
    assert torch.equal(tensor, theirs(picture(*size)))
