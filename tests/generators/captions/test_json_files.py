"""JSON of captions is read in the forms of COCO, Karpathy and others."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption


def test_coco(tmp_path: Path) -> None:
    path = tmp_path / "captions_val2017.json"
    annotations: list[Any] = [
        {"id": 38, "image_id": 7, "caption": "A dog."},
        {"id": 39, "image_id": 8, "caption": "Of no image."},
        {"image_id": 7, "caption": "Without id."},
        {"id": 40, "image_id": 7, "caption": None},
        "no object",
        {"id": 41, "image_id": [7], "caption": "Of many images."},
    ]
    path.write_text(json.dumps({"images": [{"id": 7, "file_name": "07.jpg"}], "annotations": annotations}))
    left_out = ["unknown-image", "no-caption-id", "empty-caption", "no-caption-id", "unknown-image"]
    places = [(f"annotation {n}", reason) for n, reason in enumerate(left_out, 2)]
    assert read(path) == ("coco", [("38", "7", "A dog.", "07.jpg")], places)
    for other in (
        '{"images": [], "sentences": []}',
        '{"images": [{"id": Infinity, "file_name": "a"}], "annotations": []}',
    ):
        path.write_text(other)
        with pytest.raises(WrongUse, match=r"val2017\.json: not captions .*COCO's"):
            read(path)


SAID = ["A dog.", "A dog runs."]
JSON_FORMS: dict[str, tuple[Any, list[tuple[str, str, str, str]]]] = {
    "karpathy of coco": (
        {
            "images": [
                {
                    "filepath": "val2014",
                    "filename": "COCO_val2014_000000000007.jpg",
                    "cocoid": 7,
                    "split": "restval",
                    "sentences": [{"raw": text, "sentid": 10 + n} for n, text in enumerate(SAID)],
                }
            ],
            "dataset": "coco",
        },
        [(f"{10 + n}", "7", text, "val2014/COCO_val2014_000000000007.jpg") for n, text in enumerate(SAID)],
    ),
    "karpathy of flickr": (
        {"images": [{"filename": "1.jpg", "split": "test", "sentences": [{"raw": "A cat.", "sentid": 0}]}]},
        [("0", "1.jpg", "A cat.", "1.jpg")],
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
    "list of objects": ([{"image": "1.jpg", "caption": "A dog."}], [("000000001", "1.jpg", "A dog.", "1.jpg")]),
}


@pytest.mark.parametrize("form", JSON_FORMS)
def test_forms_of_json(tmp_path: Path, form: str) -> None:
    content, expected = JSON_FORMS[form]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    assert read(path) == ("coco", expected, [])
    splits = {one.split for one in caption_source(path).read() if isinstance(one, Caption)}
    assert splits == {
        {"karpathy of coco": "restval", "karpathy of flickr": "test", "list of images": "val"}.get(form, "")
    }


@pytest.mark.parametrize("content", [{}, [], [1], {"images": []}])
def test_json_of_no_form_is_refused(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    with pytest.raises(WrongUse, match=r"captions\.json: not captions .*Karpathy's"):
        read(path)


@pytest.mark.parametrize("content", [{"captions": 5, "image_name": "a"}, {"regions": [{}], "id": 1}])
def test_records_without_captions_name_the_reason(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps([content]))
    ((_, reason),) = read(path)[2]
    assert reason == "empty-caption"


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
    path = tmp_path / f"c{suffix}"
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


def test_coco_with_ids_of_text(tmp_path: Path) -> None:
    images = [{"id": "007", "file_name": "7.jpg"}, {"id": 8, "file_name": "8.jpg"}]
    said = [{"id": "a", "image_id": "007", "caption": "A dog."}, {"id": 2, "image_id": "8", "caption": "A cat."}]
    (tmp_path / "coco.json").write_text(json.dumps({"images": images, "annotations": said}))
    assert read(tmp_path / "coco.json")[1] == [("a", "007", "A dog.", "7.jpg"), ("2", "8", "A cat.", "8.jpg")]


def test_licences_of_coco_are_terms(tmp_path: Path) -> None:
    images = [{"id": 7, "file_name": "7.jpg", "license": 1, "flickr_url": None}, {"id": 8, "file_name": "8.jpg"}]
    licences = [{"id": 1, "name": "CC-BY-NC-4.0", "url": None}, {"id": 2, "name": None}]
    annotations = [{"id": n, "image_id": n, "caption": "A dog."} for n in (7, 8)]
    content = {"images": [images[0], {**images[1], "license": 2}], "annotations": annotations, "licenses": licences}
    (tmp_path / "coco.json").write_text(json.dumps(content))
    found = [one.terms for one in caption_source(tmp_path / "coco.json").read() if isinstance(one, Caption)]
    assert found == [Terms("CC-BY-NC-4.0"), Terms()]
