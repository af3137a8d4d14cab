"""Pairs on disk become a subset without code, whatever form the list has; what is dirty is left out with its place."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.generators.made_inputs import parquet_of, picture, tar_of, write
from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.image_pairs import ImagePairs
from twinset.shards.contracts import Context

RECORDS = [
    {"id": "a", "image0": "red.png", "image1": "blue.png", "caption0": "a red ball", "caption1": "a blue ball"},
    {"id": "b", "image0": "deep/wine.png", "image1": "green", "caption0": "red", "caption1": "green"},
    {"id": "c", "image0": "red.png", "image1": "dark.png", "caption0": "a red ball", "caption1": "A red ball."},
]
COLOURS = {"red.png": (255, 0, 0), "blue.png": (0, 0, 255), "dark.png": (254, 0, 0)}


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """Images in a folder, in one below, and in a tar."""
    images = {name: picture(colour) for name, colour in COLOURS.items()}
    tar = {"00000.tar": tar_of({"green.png": picture((0, 255, 0))})}
    return write(tmp_path / "media", {**images, "some/deep/wine.png": picture((200, 0, 0)), **tar})


def written(folder: Path, form: str, records: list[Any]) -> Path:
    if form == "parquet":
        content = parquet_of(records)
    elif "sv" in form:
        text = io.StringIO()
        table = csv.DictWriter(text, list(records[0]), delimiter="\t" if "tsv" in form else ",")
        table.writeheader()
        table.writerows(records)
        content = text.getvalue().encode("utf-8-sig")
    else:
        lines = "".join(json.dumps(record) + "\n" for record in records)
        content = (lines if form == "jsonl" else json.dumps(records)).encode()
    return write(folder, {f"pairs.{form}": gzip.compress(content) if form.endswith(".gz") else content})


def pairs(annotations: Path, media: Path, **settings: Any) -> ImagePairs:
    given = {"kind": "image-pairs", "licence": "CC0-1.0", **settings}
    return ImagePairs(annotations=annotations, media=media, **given).open(Context("mine"))


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet", "tsv", "csv.gz"])
def test_every_form_gives_the_same_pairs(tmp_path: Path, media: Path, form: str) -> None:
    made = pairs(written(tmp_path, form, RECORDS), media)
    planned = list(made.plan())
    assert [pair.key for pair in planned] == [sample_key("mine", name) for name in "abc"]
    first, second, _ = made.make(planned)
    assert isinstance(first, Pair) and isinstance(second, Pair)
    assert (first.captions0, first.captions1) == (("a red ball",), ("a blue ball",))
    assert first.image0.pixels[0, 0].tolist() == [255, 0, 0] and first.image1.pixels[0, 0].tolist() == [0, 0, 255]
    paths = [image.source.path for image in (second.image0, second.image1)]
    assert paths == ["some/deep/wine.png", "00000.tar/green.png"]
    assert first.provenance == {"id": "a", "image0": "red.png", "image1": "blue.png"}


def test_records_tell_group_split_and_terms_by_whatever_names_of_fields(tmp_path: Path, media: Path) -> None:
    none = dict.fromkeys(("split", "kind", "licence", "credit"), "")
    more = [
        {"group": "x", "split": "train", "kind": "swap_att", "licence": "CC BY 2.0", "credit": "Ada"},
        {**none, "group": "y"},
        {**none, "group": "x", "split": "train", "licence": "MIT"},
        {**none, "group": "y", "split": "train"},
        {**none, "group": "z", "split": "Train"},
    ]
    pair = {"image0": "red.png", "after": "blue.png", "caption0": ["red", "a ball", " "], "caption1": ["blue"]}
    records = [{**pair, "pid": number, **fields} for number, fields in enumerate(more)]
    fields = {"id": "pid", "image1": "after", "change": "kind"}
    made = pairs(written(tmp_path, "parquet", records), media, fields=fields, credit="me")
    planned = list(made.plan())
    assert [pair.identity for pair in planned] == ['["0"]', '["2"]', '["1"]'], "groups follow each other"
    assert (planned[0].captions0, planned[0].captions1) == (("red", "a ball"), ("blue",))
    assert planned[0].group == planned[1].group != planned[2].group
    assert [pair.split for pair in planned] == ["train", "train", "test"]
    assert [pair.change for pair in planned] == ["swap_att", "", ""]
    terms = [(pair.licence, pair.credit, pair.source_url) for pair in planned]
    assert terms == [("CC-BY-2.0", "Ada", ""), ("MIT", "me", ""), ("CC0-1.0", "me", "")]
    assert made.excluded == {"other-split": 1, "unknown-split": 1}


def test_dirty_records_are_left_out_with_reason_and_place(tmp_path: Path, media: Path) -> None:
    whole = RECORDS[0]
    dirty = [
        "not an object",
        {**whole, "id": None},
        {**whole, "id": "b", "image1": None},
        {**whole, "id": "../x", "image0": "../../etc/passwd"},
        {**whole, "id": "e", "caption0": " "},
        {**whole, "id": "g", "licence": "CC-BY-9"},
        {**whole, "id": "h", "source_url": "here"},
        {**whole, "id": "k", "credit": {"name": "Ada"}},
        {**whole, "caption0": "the id of the first"},
    ]
    path = written(tmp_path, "jsonl", [whole, *dirty, RECORDS[1]])
    path.write_bytes(path.read_bytes() + b'{"id": "caf\xe9"}\n{"id": \n')
    made = pairs(path, media)
    assert [pair.identity for pair in made.plan()] == ['["a"]', '["b"]']
    reasons = ["not-an-object", "no-id", "no-image", "unsafe-path", "no-caption"]
    reasons += ["unknown-licence", "unknown-source-url", "unknown-credit"]
    expected = [(reason, f"pairs.jsonl line {number}") for number, reason in enumerate(reasons, 2)]
    expected += [("repeated-id", "pairs.jsonl line 10 (id a)")]
    expected += [("not-utf-8", "pairs.jsonl line 12"), ("not-json", "pairs.jsonl line 13")]
    assert made.excluded.examples == expected
    renamed = pairs(written(tmp_path, "json", RECORDS), media, fields={"licence": "lizenz"})
    assert not list(renamed.plan()) and renamed.excluded.examples[0] == ("unknown-licence", "pairs.json record 1")


def test_a_missing_image_rejects_its_pairs_until_it_is_there_and_one_image_twice_is_no_pair(
    tmp_path: Path, media: Path
) -> None:
    write(media, {"copy.png": (media / "red.png").read_bytes(), "broken.png": b"no image"})
    (media / "blue.png").unlink()
    names = ("red.png", "copy.png", "broken.png", "blue.png")
    made = pairs(written(tmp_path, "json", [{**RECORDS[0], "id": name, "image1": name} for name in names]), media)
    rejected = [sample for sample in made.make(list(made.plan())) if isinstance(sample, Rejected)]
    assert [sample.reason for sample in rejected] == ["same-image", "same-image", "broken-media", "missing-media"]
    assert (rejected[3].media, rejected[3].media_size) == ("blue.png", None)
    write(media, {"some/blue.png": picture((0, 0, 255))})
    assert made.media_files().size("blue.png") == (media / "some/blue.png").stat().st_size
    again = pairs(made.annotations, media)
    assert isinstance(list(again.make(list(again.plan())))[3], Pair)


def test_wrong_files_say_what_to_do(tmp_path: Path) -> None:
    wrong = {
        "pairs.xml": (b"a,b", "records are .csv, .tsv, .json"),
        "pairs.csv": (b"id,image0,image1,caption0\n", r"no column 'caption1' of text .*correct source\.fields"),
    }
    for name, (content, problem) in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(WrongUse, match=f"{name}: {problem}"):
            list(pairs(tmp_path / name, tmp_path).plan())
