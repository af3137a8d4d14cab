"""Folders of captions: shards of img2dataset, tars without tables, and texts beside images.

JSON of captions is read in the forms of COCO, Karpathy and others.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read, write_tar
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.generators.captions.tables import Caption, caption_source


def test_img2dataset_shards(tmp_path: Path) -> None:
    keys = [f"00000000{n}" for n in range(4)]
    rows = {
        "url": [f"http://x.org/{n}.jpg" for n in range(4)],
        "caption": ["A dog.", "A cat.", "Lost.", ""],
        "key": keys,
        "status": ["success", "failed_to_download", "success", "success"],
    }
    for stem in ("00000", "00001", "00002"):
        pq.write_table(pa.table(rows), tmp_path / f"{stem}.parquet")
    files = {f"{key}{suffix}": bytes(600) for key in (keys[0], keys[3]) for suffix in (".jpg", ".txt", ".json")}
    for stem in ("00000", "00001", "00003"):
        write_tar(tmp_path / f"{stem}.tar", files)
    with (tmp_path / "00001.tar").open("rb+") as tar:
        tar.truncate(900)
    (tmp_path / "00000_stats.json").write_text("{}")
    assert read(tmp_path) == (
        "img2dataset",
        [(keys[0], keys[0], "A dog.", f"00000.tar/{keys[0]}.jpg")],
        [
            ("00000.parquet row 2", "not-downloaded"),
            ("00000.parquet row 3", "no-image"),
            ("00000.parquet row 4", "empty-caption"),
            ("00001.tar", "broken-tar"),
            ("00002.tar", "unfinished-shard"),
            ("00003.parquet", "unfinished-shard"),
        ],
    )
    before = caption_source(tmp_path).digest()
    write_tar(tmp_path / "00001.tar", files)
    assert caption_source(tmp_path).digest() != before


def test_img2dataset_as_files_says_what_was_not_downloaded(tmp_path: Path) -> None:
    rows = [
        {"url": f"http://x.org/{n}.jpg", "caption": "A dog.", "key": f"00000000{n}", "status": status}
        for n, status in enumerate(["success", "failed_to_download", "failed_to_resize"])
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "00000.parquet")
    kind, captions, left_out = read(tmp_path)
    assert (kind, [image_id for _, image_id, _, _ in captions]) == ("parquet", ["000000000"])
    assert left_out == [("row 2", "not-downloaded"), ("row 3", "not-resized")]


def test_a_webdataset_without_tables(tmp_path: Path) -> None:
    first = {"a/1.jpg": b"j", "a/1.txt": b"A dog.\n", "2.JPG": b"j", "2.json": b'{"caption": "A cat.", "split": "val"}'}
    odd = {"3.txt": b"No image.", "4.png": b"p", "5.jpg": b"j", "5.txt": b"\xff", "6.jpg": b"j", "6.json": b"{"}
    write_tar(tmp_path / "00000.tar", first | odd)
    write_tar(tmp_path / "00001.tar", {"1.webp": b"w", "1.txt": b"Again."})
    (tmp_path / "00002.tar").write_bytes(b"no tar")
    kind, captions, left_out = read(tmp_path)
    assert kind == "webdataset" and captions == [
        ("00000/a/1", "00000/a/1", "A dog.", "00000.tar/a/1.jpg"),
        ("00000/2", "00000/2", "A cat.", "00000.tar/2.JPG"),
        ("00001/1", "00001/1", "Again.", "00001.tar/1.webp"),
    ]
    reasons = {"3": "no-image", "4": "no-caption", "5": "not-utf-8", "6": "not-json"}
    expected = [(f"00000.tar {key}", reason) for key, reason in reasons.items()]
    assert left_out == [*expected, ("00002.tar", "broken-tar")]


def test_texts_of_a_tar_come_before_its_records(tmp_path: Path) -> None:
    record = b'{"captions": ["A cat.", "A bird."], "licence": "MIT"}'
    texts = {"b.txt": b"\xef\xbb\xbfA dog.", "b.json": record}
    write_tar(tmp_path / "0.tar", {"a.jpg": b"x", "a.json": record, "b.jpg": b"x", **texts})
    found = [(one[0], one[2]) for one in read(tmp_path)[1]]
    assert found == [("0/a#0", "A cat."), ("0/a#1", "A bird."), ("0/b", "A dog.")]
    assert {one.terms.licence for one in caption_source(tmp_path).read() if isinstance(one, Caption)} == {"MIT"}


def test_further_dots_in_names_are_read_or_counted(tmp_path: Path) -> None:
    dotted = {f"photo.v1.{n}.{kind}": b"x" for n in range(2) for kind in ("jpg", "txt")}
    plain = {"1.input.jpg": b"j", "1.outputs.txt": b"A dog.", "2.jpg": b"j", "2.mask.png": b"m", "2.txt": b"A cat."}
    write_tar(tmp_path / "00000.tar", plain | dotted)
    captions = [
        ("00000/1", "00000/1", "A dog.", "00000.tar/1.input.jpg"),
        ("00000/2", "00000/2", "A cat.", "00000.tar/2.jpg"),
    ]
    assert read(tmp_path) == ("webdataset", captions, [("00000.tar photo", "several-fields")])


def test_a_tar_that_lacks_its_end_gives_no_sample(tmp_path: Path) -> None:
    write_tar(tmp_path / "00000.tar", {"1.jpg": b"j", "1.txt": b"A dog.", "2.jpg": b"j", "2.txt": b"A cat."})
    write_tar(tmp_path / "00001.tar", {"3.jpg": b"j", "3.txt": b"A cow."})
    with (tmp_path / "00000.tar").open("rb+") as tar:
        tar.truncate(2048)  # behind the first sample: two headers with a block each
    assert read(tmp_path)[1:] == ([("00001/3", "00001/3", "A cow.", "00001.tar/3.jpg")], [("00000.tar", "broken-tar")])


def test_a_caption_never_goes_to_another_image_than_that_of_its_key(tmp_path: Path) -> None:
    other = b'{"captions": [{"caption": "red", "image": "00000.tar/b.jpg", "image_id": "00000/b"}]}'
    members = [("a.jpg", b"j"), ("a.json", other), ("b.jpg", b"j"), ("b.txt", b"blue"), ("a.jpg", b"k")]
    write_tar(tmp_path / "00000.tar", members)
    _, captions, left_out = read(tmp_path)
    assert [(caption, image) for *_, caption, image in captions] == [
        ("red", "00000.tar/a.jpg"),
        ("blue", "00000.tar/b.jpg"),
    ]
    assert left_out == [("00000.tar a", "several-fields")]


def test_texts_beside_images(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name, content in {"a.jpg": b"", "a.txt": b"A dog.\r\n\nA dog runs.\n", "b/c.PNG": b"", "b/c.txt": b"A cat.",
                          "lost.txt": b"Of nothing.", "mute.webp": b"", "odd.jpg": b"", "odd.txt": b"\xff",
                          "empty.jpg": b"", "empty.txt": b"\n", "a.png": b""}.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    kind, captions, left_out = read(tmp_path)
    assert (kind, captions) == (
        "texts",
        [
            ("a#0", "a.jpg", "A dog.", "a.jpg"),
            ("a#1", "a.jpg", "A dog runs.", "a.jpg"),
            ("b/c#0", "b/c.PNG", "A cat.", "b/c.PNG"),
        ],
    )
    assert left_out[:3] == [("a.png", "several-fields"), ("empty.txt line 1", "empty-caption"), ("lost", "no-image")]
    assert left_out[3:] == [("mute", "no-caption"), ("odd.txt line 1", "not-utf-8")]
    before = caption_source(tmp_path).digest()
    (tmp_path / "b/c.txt").write_text("A cat sits.")
    assert caption_source(tmp_path).digest() != before


def test_members_of_one_name_and_those_of_macos_are_no_samples(tmp_path: Path) -> None:
    twice = [("0.jpg", b"j"), ("0.txt", b"a dog"), ("0.jpg", b"k"), ("0.txt", b"a cat")]
    of_macos = [("./._1.jpg", b"x"), ("./1.jpg", b"j"), ("./._1.txt", b"x"), ("./1.txt", b"a cow")]
    write_tar(tmp_path / "00000.tar", twice + of_macos)
    _, captions, left_out = read(tmp_path)
    assert [caption for _, _, caption, _ in captions] == ["a cow"]
    assert left_out == [("00000.tar 0", "several-fields")]


SAID = ["A dog.", "A dog runs."]
JSON_FORMS: dict[str, tuple[Any, list[tuple[str, str, str, str]]]] = {
    "karpathy of coco": (
        {
            "images": [
                {
                    "filepath": "val2014",
                    "filename": "7.jpg",
                    "cocoid": 7,
                    "split": "restval",
                    "sentences": [{"raw": text, "sentid": 10 + n} for n, text in enumerate(SAID)],
                }
            ],
        },
        [(f"{10 + n}", "7", text, "val2014/7.jpg") for n, text in enumerate(SAID)],
    ),
    "list of images": (
        [{"split": "val", "image_name": "1.jpg", "captions": SAID}],
        [(f"1.jpg#{n}", "1.jpg", text, "1.jpg") for n, text in enumerate(SAID)],
    ),
    "visual genome": (
        [{"id": 3, "regions": [{"region_id": 9, "phrase": "a tall tree", "x": 1}]}],
        [("9", "3", "a tall tree", "3.jpg")],
    ),
    "sbu": (
        {"image_urls": ["http://x.org/1.jpg"], "captions": ["A dog."], "user_ids": ["u"]},
        [("000000001", "http://x.org/1.jpg", "A dog.", "http://x.org/1.jpg")],
    ),
}


@pytest.mark.parametrize("form", JSON_FORMS)
def test_forms_of_json(tmp_path: Path, form: str) -> None:
    content, expected = JSON_FORMS[form]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    assert read(path) == ("coco", expected, [])
    splits = {one.split for one in caption_source(path).read() if isinstance(one, Caption)}
    assert splits == {{"karpathy of coco": "restval", "list of images": "val"}.get(form, "")}


RECORDS: list[tuple[dict[str, Any], list[tuple[str, str, str, str]]]] = [
    ({"image": "1.jpg", "caption": SAID}, [(f"1.jpg#{n}", "1.jpg", text, "1.jpg") for n, text in enumerate(SAID)]),
    (
        {"filename": "1.jpg", "filepath": "val2014", "sentences": [{"raw": text} for text in SAID]},
        [(f"1.jpg#{n}", "1.jpg", text, "val2014/1.jpg") for n, text in enumerate(SAID)],
    ),
    ({"Image_ID": 7.0, "Text": "A dog."}, [("", "7", "A dog.", "")]),
]


@pytest.mark.parametrize(("record", "captions"), RECORDS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_a_record_is_read_alike_in_every_format(
    tmp_path: Path, suffix: str, record: dict[str, Any], captions: list[tuple[str, str, str, str]]
) -> None:
    """Whatever stands before it: here records of another form, and of a failed download."""
    path, terms = tmp_path / f"c{suffix}", Terms("CC-BY-SA-2.0", "Ada", "https://a.example/1")
    record = {**record, **terms.columns}
    before = [{"caption": "Of nothing."}, {"image": "2.jpg", "caption": "A cat.", "status": "failed_to_download"}]
    if suffix == ".parquet":  # whose columns have one type and one name
        before = before if "sentences" in record else []
        names = dict.fromkeys(name for one in [*before, record] for name in one)
        table = pa.Table.from_pylist([{name: one.get(name) for name in names} for one in [*before, record]])
        pq.write_table(table, path)
    elif suffix == ".json":
        path.write_text(json.dumps([*before, record]))
    else:
        path.write_text("\n".join(map(json.dumps, [*before, record])))
    _, read_captions, left_out = read(path)
    assert [one[1:] for one in read_captions] == [one[1:] for one in captions]
    assert [one[0] for one in read_captions if captions[0][0]] == [one[0] for one in captions if one[0]]
    assert [reason for _, reason in left_out] == ["no-image-id", "not-downloaded"][: len(before)]
    assert {one.terms for one in caption_source(path).read() if isinstance(one, Caption)} == {terms}


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".tar"])
def test_a_bad_record_is_counted_alike_in_every_format(tmp_path: Path, suffix: str) -> None:
    bad = [
        (b'{"image": "0.jpg", "caption": "A cat.", "caption": "A dog."}', "repeated-key"),
        (b'{"image": "1.jpg", "Caption": "A cat.", "caption": "A dog."}', "repeated-key"),
        (b'{"image": "2.jpg", "caption": "A caf\xe9."}', "not-utf-8"),
        (b'{"image": "3.jpg", "caption": "Half a pair: \\ud800"}', "not-utf-8"),
        (b'["A dog."]', "no-object"),
        (b'{"image": "4.jpg", "caption": " "}', "empty-caption"),
        (b'{"image": "5.jpg", "caption": "A dog.", "licence": "CC-BY-9"}', "unknown-licence"),
    ]
    records = [record for record, _ in bad] + [b'{"image": "9.jpg", "caption": "A fish."}']
    path = tmp_path / f"c{suffix}"
    if suffix == ".tar":
        members = [(f"{n}.{kind}", text) for n, text in enumerate(records) for kind in ("jpg", "json")]
        write_tar(path, members)
        path = tmp_path
    else:
        path.write_bytes(b"[" + b",".join(records) + b"]" if suffix == ".json" else b"\n".join(records))
    _, captions, left_out = read(path)
    assert [caption for _, _, caption, _ in captions] == ["A fish."]
    assert [reason for _, reason in left_out] == [reason for _, reason in bad]


def test_coco_with_its_licences_and_bad_records(tmp_path: Path) -> None:
    images = [{"id": "007", "file_name": "7.jpg", "license": 1}, {"id": 8, "file_name": "8.jpg", "license": 2}, {}]
    annotations = [
        {"id": "a", "image_id": "007", "caption": "A dog."},
        {"id": 1, "image_id": "8", "caption": "A dog."},
        {"id": 39, "image_id": 9, "caption": "Of no image."},
        {"image_id": 8, "caption": "Without id."},
        {"id": 40, "image_id": 8, "caption": None},
        "no object",
        {"id": 41, "image_id": [8], "caption": "Of many images."},
    ]
    licences = [{"id": 1, "name": "CC-BY-NC-4.0", "url": None}, {"id": 2, "name": None}]
    content = {"images": images, "annotations": annotations, "licenses": licences}
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(content))
    reasons = ["unknown-image", "no-caption-id", "empty-caption", "no-caption-id", "unknown-image"]
    left_out = [(f"annotation {n}", reason) for n, reason in enumerate(reasons, 3)]
    captions = [("a", "007", "A dog.", "7.jpg"), ("1", "8", "A dog.", "8.jpg")]
    assert read(path) == ("coco", captions, [("image record 3", "no-image-id"), *left_out])
    found = [one.terms for one in caption_source(path).read() if isinstance(one, Caption)]
    assert found == [Terms("CC-BY-NC-4.0"), Terms()]
    path.write_text(json.dumps({**content, "images": [*images, {"id": 8, "file_name": "b.jpg"}]}))
    with pytest.raises(WrongUse, match=r"image id 8 is that of 8\.jpg and of b\.jpg"):
        read(path)
    path.write_text('{"images": [], "sentences": []}')
    with pytest.raises(WrongUse, match=r"coco\.json: not captions in a form that is known; .*COCO"):
        read(path)
