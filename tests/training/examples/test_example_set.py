"""What a mixture holds: words, groups and pixels of stored samples, and what is refused."""

import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET, text_pair_shards
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.training.examples.example_set import ExampleSet, open_examples


def all_of(examples: ExampleSet) -> list[tuple[str, str]]:
    return [(example.key, example.texts["text"]) for example in (examples[number] for number in range(len(examples)))]


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
            assert example.where.endswith(f".tar: {sample.key}")
    assert open_examples([f"{made_pairs.root}:eq-gebc"], "pairs", twins="first")[3].key == f"{stored[3].key}-0"


def test_a_mixture_holds_its_datasets_in_turn_and_repeats_them(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset
) -> None:
    places = [f"{made_pairs.root}:eq-ag", f"{made_text_pairs.root}:text"]
    alone = [all_of(open_examples([place], "pairs")) for place in places]
    mixture = open_examples([f"{places[0]}*2", places[1]], "pairs")
    assert all_of(mixture) == alone[0] * 2 + alone[1]
    assert [mixture[number].copy for number in (0, 15, 16, 31, 32)] == [0, 0, 1, 1, 0]
    assert mixture.open_image(mixture[33], "image").mode == "RGB"
    with pytest.raises(IndexError):
        mixture[len(mixture)]


def test_an_export_for_open_clip_holds_the_examples_of_its_dataset(made_pairs: MadeDataset, tmp_path: Path) -> None:
    export(made_pairs.store, ["eq-ag", "eq-gebc"], "openclip", tmp_path / "clip")
    built = open_examples([f"{made_pairs.root}:eq-ag"], "pairs")
    exported = open_examples([f"{tmp_path / 'clip'}:eq-ag"], "pairs")
    assert all_of(exported) == all_of(built)
    assert [exported.read_image(exported[n], "image") for n in range(16)] == [
        built.read_image(built[n], "image") for n in range(16)
    ]
    assert len(open_examples([str(tmp_path / "clip")], "pairs")) == 32
    assert len(open_examples([str(tmp_path / "clip")], "pairs", twins="first")) == 16

    exported.check_unchanged()
    tar = tmp_path / "clip" / exported[0].images["image"].tar
    content = bytearray(tar.read_bytes())
    content[exported[0].images["image"].offset + 100] ^= 1
    tar.write_bytes(content)
    with pytest.raises(BuildFailed, match="rebuilt since"):
        exported.check_unchanged()

    with tarfile.open(tar, "w", format=tarfile.USTAR_FORMAT) as written:
        written.addfile(tarfile.TarInfo("a-0.jpg"))
    with pytest.raises(WrongUse, match=r"tar: a-0.jpg is empty; run `twinset export"):
        open_examples([f"{tmp_path / 'clip'}:eq-ag"], "pairs")


def test_digests_are_those_of_the_data_alone(made_pairs: MadeDataset, tmp_path: Path) -> None:
    root, place = made_pairs.root, f"{made_pairs.root}:eq-ag"
    first = open_examples([place], "pairs")
    digests = [open_examples(places, "pairs").digest() for places in ([place], [f"{place}*2"], [f"{root}:eq-gebc"])]
    assert digests[0] == first.digest() and len(set(digests)) == 3
    elsewhere = tmp_path / "moved"
    root.rename(elsewhere)
    assert open_examples([f"{elsewhere}:eq-ag"], "pairs").digest() == first.digest()
    shards = open_examples([f"{elsewhere}:eq-ag"], "pairs").facts()[0]["shards"]
    assert [(one["tar"], one["samples"]) for one in shards] == [
        (layout.tar("eq-ag", "test", number), count) for number, count in ((0, 3), (2, 3), (3, 2))
    ]


def test_what_cannot_be_trained_on_is_refused(made_pairs: MadeDataset, made: MadeDataset, tmp_path: Path) -> None:
    root = made_pairs.root

    def refused(match: str, *places: str, task: str = "pairs", split: str | None = None) -> None:
        with pytest.raises(WrongUse, match=match):
            open_examples(places, task, split)  # type: ignore[arg-type]

    refused("no data to train on")
    refused("not a dataset that twinset built", str(tmp_path / "nothing"))
    refused("no subset 'eq-sd'; it has eq-ag", f"{root}:eq-sd")
    refused("a number from 1 to 1000", f"{root}*0")
    refused(r"reads triplet, and here is eq-ag \(pair\)", f"{root}:eq-ag", task="triplets")
    refused("no samples of split 'train'; there are samples of: test", f"{root}:eq-ag", split="train")
    made.add("negatives", NEGATIVE_SUBSET, text_pair_shards("negatives", images=False))
    refused("an index without images", f"{made.root}:negatives")

    tar = root / layout.tar("eq-ag", "test", 0)
    content = tar.read_bytes()
    tar.write_bytes(content[:-512])
    refused(r"00000.tar: [0-9,]+ bytes instead of", f"{root}:eq-ag")
    tar.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    refused("00000.tar: byte 0: a damaged header", f"{root}:eq-ag")
    tar.write_bytes(content)
    assert len(open_examples([f"{root}:eq-ag"], "pairs")) == 16
    rows = root / layout.rows("eq-ag", 0)
    content, table = rows.read_bytes(), pq.read_table(rows)
    at = table.column_names.index("image0_sha256")
    hashes = table["image0_sha256"].to_pylist()
    for wrong in (pa.array([[one] for one in hashes]), pa.array(["x" for _ in hashes]), pa.nulls(len(table))):
        pq.write_table(table.set_column(at, "image0_sha256", wrong), rows)
        refused("the rows of its shards are damaged", f"{root}:eq-ag")
    rows.write_bytes(content)
    (root / layout.receipt("eq-ag", 2)).unlink()
    refused("3 of 4 shards are finished", f"{root}:eq-ag")
