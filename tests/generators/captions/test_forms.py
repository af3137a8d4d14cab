"""Every kind of captions is read as its format says; what cannot be used is named with its place."""

import gzip
import io
import json
import os
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.generators.annotation_files import LONGEST_LINE, Skipped
from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption
from twinset.manifests.errors import WrongUse
from twinset.manifests.licences.terms import Terms

CAPTIONS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "captions"


def read(path: Path) -> tuple[str, list[tuple[str, str, str, str]], list[tuple[str, str]]]:
    source = caption_source(path)
    found = list(source.read())
    captions = [(c.caption_id, c.image_id, c.caption, c.image) for c in found if isinstance(c, Caption)]
    return source.kind, captions, [(one.place, one.reason) for one in found if isinstance(one, Skipped)]


def test_cc3m_tsv_with_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "cc3m.tsv"
    path.write_bytes(
        b"\xef\xbb\xbfa dog .\thttp://x.org/1.jpg\r\n"
        b"no url here\n"
        b"\n"
        b"a\tb\thttp://x.org/2.jpg\n"
        b"  \thttp://x.org/3.jpg\n"
        b"caf\xe9\thttp://x.org/4.jpg\n"
        b"a cat\tx.org\n"
        b"line\xe2\x80\xa8separator\thttp://x.org/5.jpg\n" + b"w" * (2 * LONGEST_LINE) + b"\n"
        b"the last\thttp://x.org/1.jpg"
    )
    assert read(path) == (
        "tsv",
        [
            ("000000001", "http://x.org/1.jpg", "a dog .", "http://x.org/1.jpg"),
            ("000000008", "http://x.org/5.jpg", "line\u2028separator", "http://x.org/5.jpg"),
            ("000000010", "http://x.org/1.jpg", "the last", "http://x.org/1.jpg"),
        ],
        [
            ("line 2", "wrong-columns"),
            ("line 4", "wrong-columns"),
            ("line 5", "empty-caption"),
            ("line 6", "not-utf-8"),
            ("line 7", "no-url"),
            ("line 9", "too-long"),
        ],
    )


def test_tsv_with_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "cc3m.tsv.gz"
    path.write_bytes(gzip.compress(b"URL\tcaption\thash\nhttp://x.org/1.jpg\ta dog\tab\nhttp://x.org/2.jpg\ta cat\n"))
    found = [("000000002", "http://x.org/1.jpg", "a dog", "http://x.org/1.jpg")]
    assert read(path) == ("tsv", found, [("line 3", "wrong-columns")])


def test_flickr_tokens(tmp_path: Path) -> None:
    path = tmp_path / "Flickr8k.token.txt"
    path.write_text("1_a.jpg#0\tA dog .\n1_a.jpg#1\tA\ttab .\n2.jpg#0  no tab\nno number\tA cat .\n3.jpg#4\t\n")
    assert read(path) == (
        "flickr-tokens",
        [("1_a.jpg#0", "1_a.jpg", "A dog .", "1_a.jpg"), ("1_a.jpg#1", "1_a.jpg", "A\ttab .", "1_a.jpg")],
        [("line 3", "no-tab"), ("line 4", "no-image-id"), ("line 5", "empty-caption")],
    )


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


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    lines = ['{"id": 5, "image": "a/1.jpg", "caption": "A dog."}', "{", "[1]", '{"image": "b", "text": "half \\ud800"}']
    path.write_text("\n".join([*lines, '{"text": "A cat.", "key": "k"}', '{"caption": "of nothing"}']))
    assert read(path) == (
        "json-lines",
        [("5", "a/1.jpg", "A dog.", "a/1.jpg"), ("000000005", "k", "A cat.", "")],
        [("line 2", "not-json"), ("line 3", "no-object"), ("line 4", "not-json"), ("line 6", "no-image-id")],
    )


def test_parquet_file_and_folder(tmp_path: Path) -> None:
    table = pa.table({"caption": ["A dog.", None], "image_id": [7, 8], "image": [{"bytes": b"x"}, None]})
    for name in ("a", "b"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert read(tmp_path / "a.parquet") == (
        "parquet",
        [("000000001", "7", "A dog.", "")],
        [("row 2", "empty-caption")],
    )
    assert read(tmp_path) == (
        "parquet",
        [("a-000000001", "7", "A dog.", ""), ("b-000000001", "7", "A dog.", "")],
        [("a.parquet row 2", "empty-caption"), ("b.parquet row 2", "empty-caption")],
    )
    (tmp_path / "a.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-20])
    with pytest.raises(WrongUse, match=r"a\.parquet: not a Parquet file that can be read"):
        read(tmp_path)
    pq.write_table(table.rename_columns(["title", "image_id", "image"]), tmp_path / "a.parquet")
    with pytest.raises(WrongUse, match=r"a\.parquet: no column of captions.*title, image_id"):
        read(tmp_path)


def write_tar(path: Path, names: list[str]) -> None:
    with tarfile.open(path, "w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 600
            tar.addfile(member, io.BytesIO(bytes(600)))


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
    names = [f"{key}{suffix}" for key in (keys[0], keys[3]) for suffix in (".jpg", ".txt", ".json")]
    write_tar(tmp_path / "00000.tar", names)
    write_tar(tmp_path / "00001.tar", names)
    with (tmp_path / "00001.tar").open("rb+") as tar:
        tar.truncate(900)
    write_tar(tmp_path / "00003.tar", names)
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
    write_tar(tmp_path / "00001.tar", names)
    assert caption_source(tmp_path).digest() != before


@pytest.mark.parametrize(
    "headers",
    [
        {"size": "-1536"},  # back to its own header
        {"size": "9" * 26},
        {"size": f"{1 << 60}"},
        {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "a,b"},
    ],
)
def test_a_tar_with_hostile_numbers_is_broken(tmp_path: Path, headers: dict[str, str]) -> None:
    pq.write_table(pa.table({"caption": ["A dog."], "key": ["0"]}), tmp_path / "00000.parquet")
    with tarfile.open(tmp_path / "00000.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("0.jpg")
        member.pax_headers = headers
        tar.addfile(member)
    assert read(tmp_path) == ("img2dataset", [], [("00000.tar", "broken-tar")])


def test_a_tar_with_a_damaged_header_between_others_is_broken(tmp_path: Path) -> None:
    pq.write_table(pa.table({"caption": ["A dog."], "key": ["0"]}), tmp_path / "00000.parquet")
    write_tar(tmp_path / "00000.tar", ["0.txt", "0.jpg"])
    with (tmp_path / "00000.tar").open("rb+") as tar:
        tar.seek(1536)  # behind a header and 600 bytes
        tar.write(b"1")
    assert read(tmp_path) == ("img2dataset", [], [("00000.tar", "broken-tar")])


def test_pipes_and_folders_are_no_tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"caption": ["A dog."], "image_id": ["7"]}), tmp_path / "a.parquet")
    os.mkfifo(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").mkdir()
    source = caption_source(tmp_path)
    assert source.files == (tmp_path / "a.parquet",)


@pytest.mark.parametrize("name", ["nothing.tsv", "photo.jpg", "empty", "cut.tsv.gz"])
def test_what_is_no_captions_at_all(tmp_path: Path, name: str) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"a dog\thttp://x.org/1.jpg\n" * 100)[:-9])
    with pytest.raises(WrongUse, match=rf"{name}: .*(captions are a TSV|fetch the file again)"):
        list(caption_source(tmp_path / name).read())


def test_memory_does_not_grow_with_captions(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 20_000):
        path = tmp_path / f"{count}.tsv"
        path.write_text("".join(f"caption number {n} of many\thttp://x.org/{n}.jpg\n" for n in range(count)))
        tracemalloc.start()
        assert sum(isinstance(one, Caption) for one in caption_source(path).read()) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


@pytest.mark.skipif(not CAPTIONS.is_dir(), reason="the captions of ../shared/data are not here")
def test_real_captions() -> None:
    counts = {}
    for name in ("cc3m_validation.tsv", "coco_captions_val2017.json", "flickr8k_token.txt"):
        kind, captions, left_out = read(CAPTIONS / name)
        assert len({one[0] for one in captions}) == len(captions)
        counts[kind] = (len(captions), len({one[1] for one in captions}), left_out)
    assert counts == {
        "tsv": (15_833, 15_833, []),
        "coco": (25_014, 5_000, []),
        "flickr-tokens": (40_459, 8_092, [("line 37574", "no-tab")]),
    }


@pytest.mark.parametrize("size", [1 << 45, 1 << 70])  # bytes of a comment: more than memory, more than an address
def test_a_tar_with_an_endless_comment_is_broken(tmp_path: Path, size: int) -> None:
    pq.write_table(pa.table({"caption": ["A dog."], "key": ["0"]}), tmp_path / "00000.parquet")
    info = tarfile.TarInfo("0.jpg")
    info.type = tarfile.XHDTYPE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "00000.tar").write_bytes(bytes(header) + bytes(10240))
    assert read(tmp_path) == ("img2dataset", [], [("00000.tar", "broken-tar")])


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


@pytest.mark.parametrize(
    "content", [{}, [], [1], {"images": []}, [{"captions": 5, "image_name": "a"}], [{"regions": [{}], "id": 1}]]
)
def test_json_of_no_form_is_refused(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    with pytest.raises(WrongUse, match=r"captions\.json: not captions .*Karpathy's"):
        read(path)


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "captions.csv"
    path.write_bytes(
        b'image,Caption,split\r\n1.jpg,"A dog, and a cat.",train\r\n\n2.jpg,"two\nlines",test\n3.jpg\n,none,\n'
    )
    assert read(path) == (
        "csv",
        [("000000002", "1.jpg", "A dog, and a cat.", "1.jpg"), ("000000005", "2.jpg", "two\nlines", "2.jpg")],
        [("line 6", "wrong-columns"), ("line 7", "no-image-id")],
    )
    path.write_text("a,b\n1,2\n")
    with pytest.raises(WrongUse, match=r"captions\.csv: no column of captions.* text or sentence, and there are a, b;"):
        read(path)
    path.write_text("Caption,photo\n1,2\n")
    with pytest.raises(WrongUse, match=r"captions\.csv: no column of images.* and there are Caption, photo; rename"):
        read(path)
    path.write_text('caption,image\n"never closed,1.jpg\n')
    with pytest.raises(WrongUse, match=r"captions\.csv, line 2: not CSV"):
        read(path)


def test_terms_that_are_not_known_leave_their_record_out(tmp_path: Path) -> None:
    path = tmp_path / "captions.csv"
    terms = ["MIT,https://x.example/1", "CC-BY-9,", ",here", '"other: mine", ']
    rows = [f"{at}.jpg,A dog,{one}" for at, one in enumerate(terms)]
    path.write_text("\n".join(["image,caption,licence,source_url", *rows]))
    _, captions, left_out = read(path)
    assert len(captions) == 2 and left_out == [("line 3", "unknown-licence"), ("line 4", "unknown-source-url")]
    images = [{"id": 7, "file_name": "7.jpg", "license": 1, "flickr_url": None}, {"id": 8, "file_name": "8.jpg"}]
    licences = [{"id": 1, "name": "CC-BY-NC-4.0", "url": None}, {"id": 2, "name": None}]
    annotations = [{"id": n, "image_id": n, "caption": "A dog."} for n in (7, 8)]
    content = {"images": [images[0], {**images[1], "license": 2}], "annotations": annotations, "licenses": licences}
    (tmp_path / "coco.json").write_text(json.dumps(content))
    found = [one.terms for one in caption_source(tmp_path / "coco.json").read() if isinstance(one, Caption)]
    assert found == [Terms("CC-BY-NC-4.0"), Terms()]


def test_csv_that_is_called_txt(tmp_path: Path) -> None:
    """Kaggle's captions.txt of Flickr8k."""
    (tmp_path / "captions.txt").write_text("image,caption\n1.jpg,A dog .\n1.jpg,A dog runs .\n")
    found = [("000000002", "1.jpg", "A dog .", "1.jpg"), ("000000003", "1.jpg", "A dog runs .", "1.jpg")]
    assert read(tmp_path / "captions.txt") == ("csv", found, [])


def test_an_image_named_by_its_path_alone(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("path\tcaption\na/1.jpg\tA dog .\n")
    assert read(tmp_path / "a.tsv") == ("tsv", [("000000002", "a/1.jpg", "A dog .", "a/1.jpg")], [])


def test_a_webdataset_without_tables(tmp_path: Path) -> None:
    for tar, parts in {
        "00000.tar": {
            "a/1.jpg": b"j", "a/1.txt": b"A dog.\n", "2.JPG": b"j", "2.json": b'{"caption": "A cat.", "split": "val"}',
            "3.txt": b"No image.", "4.png": b"p", "5.jpg": b"j", "5.txt": b"\xff", "6.jpg": b"j", "6.json": b"{",
            "7.jpg": b"j", "7.json": b'{"caption": "A.", "credit": "A \\ud800"}',
        },
        "00001.tar": {"1.webp": b"w", "1.txt": b"Again."},
    }.items():  # fmt: skip
        with tarfile.open(tmp_path / tar, "w") as written:
            for name, content in parts.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                written.addfile(member, io.BytesIO(content))
    (tmp_path / "00002.tar").write_bytes(b"no tar")
    kind, captions, left_out = read(tmp_path)
    assert (kind, captions) == (
        "webdataset",
        [
            ("00000/a/1", "00000/a/1", "A dog.", "00000.tar/a/1.jpg"),
            ("00000/2", "00000/2", "A cat.", "00000.tar/2.JPG"),
            ("00001/1", "00001/1", "Again.", "00001.tar/1.webp"),
        ],
    )
    assert left_out == [
        ("00000.tar 3", "no-image"), ("00000.tar 4", "no-caption"), ("00000.tar 5", "not-utf-8"),
        ("00000.tar 6", "not-json"), ("00000.tar 7", "not-utf-8"), ("00002.tar", "broken-tar"),
    ]  # fmt: skip


def test_texts_beside_images(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name, content in {"a.jpg": b"", "a.txt": b"A dog.\r\n\nA dog runs.\n", "b/c.PNG": b"", "b/c.txt": b"A cat.",
                          "lost.txt": b"Of nothing.", "mute.webp": b"", "odd.jpg": b"", "odd.txt": b"\xff",
                          "empty.jpg": b"", "empty.txt": b""}.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    assert read(tmp_path) == (
        "texts",
        [
            ("a#0", "a.jpg", "A dog.", "a.jpg"),
            ("a#1", "a.jpg", "A dog runs.", "a.jpg"),
            ("b/c#0", "b/c.PNG", "A cat.", "b/c.PNG"),
        ],
        [("empty.txt line 1", "empty-caption"), ("lost", "no-image"), ("mute", "no-caption"), ("odd.txt", "not-utf-8")],
    )
    before = caption_source(tmp_path).digest()
    (tmp_path / "b/c.txt").write_text("A cat sits.")
    assert caption_source(tmp_path).digest() != before


@pytest.mark.skipif(not CAPTIONS.is_dir(), reason="the captions of ../shared/data are not here")
@pytest.mark.parametrize(
    ("name", "images", "captions", "splits"),
    [
        ("maccap/flickr30k_val.json.gz", 1014, 5070, {"val"}),
        ("maccap/flickr30k_test.json.gz", 1000, 5000, {"test"}),
        ("maccap/mscoco_val.json.gz", 5000, 25010, {"val"}),
        ("maccap/mscoco_test.json.gz", 5000, 25010, {"test"}),
        ("aro_coco_karpathy_test.json.gz", 5000, 25010, {""}),
        ("scan_precomp/f30k_precomp/dev_caps.txt.gz", 1014, 5070, {""}),
        ("scan_precomp/f30k_precomp/test_caps.txt.gz", 1000, 5000, {""}),
        ("scan_precomp/coco_precomp/dev_caps.txt", 1000, 5000, {""}),
        ("scan_precomp/coco_precomp/test_caps.txt", 1000, 5000, {""}),
        ("scan_precomp/coco_precomp/testall_caps.txt.gz", 5000, 25000, {""}),
        ("flickr8k/Flickr8k.token.txt.gz", 8092, 40457, {""}),  # 40,460 lines, three of them without their tab
    ],
)
def test_karpathys_splits(name: str, images: int, captions: int, splits: set[str]) -> None:
    found = [one for one in caption_source(CAPTIONS.parent / "karpathy" / name).read() if isinstance(one, Caption)]
    counts = len({one.image_id for one in found}), len(found), {one.split for one in found}
    assert counts == (images, captions, splits)
