"""What a path holds is found out and read as its format says; what cannot be used is named with its place.

Several files are read as one; published ones are counted.
"""

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.generators.made_inputs import Captions, parquet_of, read, tar_of, write
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.generators.annotation_files import LONGEST_LINE
from twinset.generators.captions.tables import Caption, CaptionSources, caption_source

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"

SAID = ["A dog.", "A dog runs."]
QUOTED = ['a sign that says "stop" by a road', '"quoted"', "two\nlines", "a\ttab, a comma; a bar | and more"]
KEYS = [f"00000000{n}" for n in range(5)]
STATUS = ["success", "failed_to_download", "success", "success", "failed_to_resize"]
DOWNLOADED = [
    {"url": f"http://x.org/{key}.jpg", "caption": caption, "key": key, "status": status}
    for key, caption, status in zip(KEYS, ["A dog.", "A cat.", "Lost.", "", "A cow."], STATUS, strict=True)
]
SHARD = tar_of({f"{key}{suffix}": bytes(600) for key in (KEYS[0], KEYS[3]) for suffix in (".jpg", ".txt", ".json")})
ROWS = parquet_of([{"caption": "A dog.", "image_id": 7, "image": {"bytes": b"x"}}, {"caption": None, "image_id": 8}])
OF_OTHER = b'{"captions": ["A cat.", {"raw": "A bird.", "image": "0.tar/b.jpg", "image_id": "0/b"}], "licence": "MIT"}'
DOTTED = ("1.in.jpg", "1.outputs.txt", "2.jpg", "2.mask.png", "2.txt", "photo.v1.0.jpg", "photo.v1.1.jpg")
TWICE = ("3.jpg", "3.txt", "3.jpg", "3.txt")
OF_MACOS = ("./._4.jpg", "./4.jpg", "./._4.txt", "./4.txt")
COCO = {
    "images": [{"id": "007", "file_name": "7.jpg", "license": 1}, {"id": 8, "file_name": "8.jpg", "license": 2}, {}],
    "licenses": [{"id": 1, "name": "CC-BY-NC-4.0", "url": None}, {"id": 2, "name": None}],
    "annotations": [
        {"id": "a", "image_id": "007", "caption": "A dog."},
        {"id": 1, "image_id": "8", "caption": "A dog."},
        {"id": 39, "image_id": 9, "caption": "Of no image."},
        {"image_id": 8, "caption": "Without id."},
        {"id": 40, "image_id": 8, "caption": None},
        "no object",
        {"id": 41, "image_id": [8], "caption": "Of many images."},
    ],
}


def table(delimiter: str) -> bytes:
    """As csv writes it, with the names of open_clip."""
    text = io.StringIO()
    rows = csv.writer(text, delimiter=delimiter)
    rows.writerow(["filepath", "title"])
    rows.writerows((f"{n}.jpg", caption) for n, caption in enumerate(QUOTED))
    return text.getvalue().encode()


def json_of(content: Any) -> dict[str, bytes]:
    return {"c.json": json.dumps(content).encode()}


def of(image: str, caption_id: str | int, caption: str, *more: str) -> tuple[str, ...]:
    """A caption as it is read, where the image's name is its id; a number is that of its line or row."""
    return (caption_id if isinstance(caption_id, str) else f"{caption_id:09d}", image, caption, image, *more)


def below_header(*captions: str) -> Captions:
    """Captions of 0.jpg, 1.jpg… whose ids are their lines."""
    return [of(f"{n}.jpg", n + 2, caption) for n, caption in enumerate(captions)]


#: Files; the kind that they are found to be; captions, with split and terms where stated; if any, what is left out.
FORMATS: dict[str, tuple[Any, ...]] = {
    "Conceptual Captions": (
        {
            "cc3m.tsv": b"\xef\xbb\xbfa dog .\thttp://x.org/1.jpg\r\nno url here\n\na\tb\thttp://x.org/2.jpg\n"
            b"  \thttp://x.org/3.jpg\ncaf\xe9\thttp://x.org/4.jpg\na cat\tx.org\n"
            b"line\xe2\x80\xa8separator\rhere\thttp://x.org/5.jpg\n" + b"w" * (2 * LONGEST_LINE) + b"\n"
            b'"the" last\thttp://x.org/1.jpg'
        },
        "tsv",
        [
            of("http://x.org/1.jpg", 1, "a dog ."),
            of("http://x.org/5.jpg", 8, "line\u2028separator\rhere"),
            of("http://x.org/1.jpg", 10, '"the" last'),
        ],
        "line 2: wrong-columns; line 4: wrong-columns; line 5: empty-caption; line 6: not-utf-8; line 7: no-url; "
        "line 9: too-long",
    ),
    "Flickr tokens": (
        {"a.token.txt": b"1_a.jpg#0\tA dog .\n1_a.jpg#1\tA\ttab .\n2.jpg#0  no tab\nno number\tA cat .\n3.jpg#4\t\n"},
        "flickr-tokens",
        [of("1_a.jpg", "1_a.jpg#0", "A dog ."), of("1_a.jpg", "1_a.jpg#1", "A\ttab .")],
        "line 3: no-tab; line 4: no-image-id; line 5: empty-caption",
    ),
    "a table": (
        {"c.csv": b'image,Caption,split\r\n0.jpg,"A dog,\ncat.",train\r\n\n2.jpg,A caf\xe9,test\n3.jpg\n,none,\n'},
        "csv",
        [of("0.jpg", 3, "A dog,\ncat.", "train")],
        "line 5: not-utf-8; line 6: wrong-columns; line 7: no-image-id",
    ),
    **{
        f"a table with {delimiter!r} in {kind}": (
            {f"c.{kind}": table(delimiter)},
            kind,
            [of(f"{n}.jpg", line, QUOTED[n]) for n, line in enumerate((2, 3, 5, 6))],
        )
        for delimiter, kind in zip("\t,;|", ("tsv", "tsv", "csv", "csv"), strict=True)
    },
    "UTF-16": ({"c.csv": "image,caption\n0.jpg,a dog\n".encode("utf-16")}, "csv", below_header("a dog")),
    "Excel": ({"c.csv": b"sep=;\r\nimage;caption\r\n0.jpg;A dog, a\r\n"}, "csv", [of("0.jpg", 3, "A dog, a")]),
    "LAION": ({"c.csv": b"image,caption,license\n0.jpg,a dog,?\n"}, "csv", below_header("a dog")),
    "tabs that no csv wrote": (
        {"c.tsv": b'image\tcaption\n0.jpg\t"Stop" sign on a road\n1.jpg\t"half a line\n2.jpg\ta 5" screen\n'},
        "tsv",
        below_header('"Stop" sign on a road', '"half a line', 'a 5" screen'),
    ),
    "a folder of Parquet, also of what img2dataset stored as files": (
        {"a.parquet": ROWS, "b.parquet": parquet_of(DOWNLOADED)},
        "parquet",
        [
            ("a-000000001", "7", "A dog.", ""),
            ("b-000000001", KEYS[0], "A dog.", f"http://x.org/{KEYS[0]}.jpg"),
            ("b-000000003", KEYS[2], "Lost.", f"http://x.org/{KEYS[2]}.jpg"),
        ],
        "a.parquet row 2: empty-caption; b.parquet row 2: not-downloaded; b.parquet row 4: empty-caption; "
        "b.parquet row 5: not-resized",
    ),
    "img2dataset": (
        {f"0000{n}.parquet": parquet_of(DOWNLOADED) for n in (0, 1, 2)}
        | {"00000.tar": SHARD, "00001.tar": SHARD[:900], "00003.tar": SHARD, "00000_stats.json": b"{}"},
        "img2dataset",
        [(KEYS[0], KEYS[0], "A dog.", f"00000.tar/{KEYS[0]}.jpg")],
        "00000.parquet row 2: not-downloaded; 00000.parquet row 3: no-image; 00000.parquet row 4: empty-caption; "
        "00000.parquet row 5: not-resized; 00001.tar: broken-tar; 00002.tar: unfinished-shard; "
        "00003.parquet: unfinished-shard",
    ),
    "WebDataset": (
        {
            "00000.tar": tar_of(
                {"a/1.jpg": b"j", "a/1.txt": b"\xef\xbb\xbfA dog.\n", "2.JPG": b"j"}
                | {"2.json": b'{"caption": "A cat.", "split": "val"}', "3.txt": b"No image.", "4.png": b"p"}
                | {"5.jpg": b"j", "5.txt": b"\xff", "6.jpg": b"j", "6.json": b"{", "7.jpg": b"j", "7.json": OF_OTHER}
                | {"8.jpg": b"j", "8.txt": b"Texts come before records.", "8.json": OF_OTHER}
            ),
            "00001.tar": tar_of({"1.webp": b"w", "1.txt": b"Again."}),
            "00002.tar": b"no tar",
            "00003.tar": tar_of({"1.jpg": b"j", "1.txt": b"A dog.", "2.jpg": b"j"})[:2048],  # behind the first sample
        },
        "webdataset",
        [
            ("00000/a/1", "00000/a/1", "A dog.", "00000.tar/a/1.jpg"),
            ("00000/2", "00000/2", "A cat.", "00000.tar/2.JPG", "val"),
            ("00000/7#0", "00000/7", "A cat.", "00000.tar/7.jpg", "MIT"),
            ("00000/7#1", "00000/7", "A bird.", "00000.tar/7.jpg", "MIT"),
            ("00000/8", "00000/8", "Texts come before records.", "00000.tar/8.jpg", "MIT"),
            ("00001/1", "00001/1", "Again.", "00001.tar/1.webp"),
        ],
        "00000.tar 3: no-image; 00000.tar 4: no-caption; 00000.tar 5: not-utf-8; 00000.tar 6: not-json; "
        "00002.tar: broken-tar; 00003.tar: broken-tar",
    ),
    "members of one name, of macOS, and with further dots": (
        {"0.tar": tar_of([(name, name.encode()) for name in (*DOTTED, *TWICE, *OF_MACOS)])},
        "webdataset",
        [("0/2", "0/2", "2.txt", "0.tar/2.jpg"), ("0/./4", "0/./4", "./4.txt", "0.tar/./4.jpg")],
        "0.tar 1: no-image; 0.tar photo: no-image; 0.tar 3: several-fields",
    ),
    "texts beside images": (
        {"a.jpg": b"", "a.txt": b"A dog.\r\n\nA dog runs.\n\xff", "b/c.PNG": b"", "b/c.txt": b"A cat."}
        | {"empty.jpg": b"", "empty.txt": b"\n", "lost.txt": b"Of nothing.", "mute.webp": b""}
        | dict.fromkeys(("two.jpg", "two.png", "two.txt"), b"Of which?"),
        "texts",
        [of("a.jpg", "a#0", "A dog."), of("a.jpg", "a#1", "A dog runs."), of("b/c.PNG", "b/c#0", "A cat.")],
        "a.txt line 4: not-utf-8; empty.txt: empty-caption; lost: no-image; mute: no-caption; two: several-fields",
    ),
    "COCO": (
        json_of(COCO),
        "coco",
        [("a", "007", "A dog.", "7.jpg", "CC-BY-NC-4.0"), ("1", "8", "A dog.", "8.jpg")],
        "image record 3: no-image-id; annotation 3: unknown-image; annotation 4: no-caption-id; "
        "annotation 5: empty-caption; annotation 6: no-caption-id; annotation 7: unknown-image",
    ),
    "SBU": (
        json_of({"image_urls": ["http://x.org/1.jpg"], "captions": ["A dog."], "user_ids": ["u"]}),
        "coco",
        [of("http://x.org/1.jpg", 1, "A dog.")],
    ),
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_found_out_and_read(tmp_path: Path, form: str) -> None:
    files, kind, captions, *left_out = FORMATS[form]
    path = write(tmp_path, files)
    assert read(path) == (kind, captions, "".join(left_out))
    digest = caption_source(path).digest()
    changed = next(name for name in files if not name.endswith((".jpg", "json")) or len(files) == 1)
    (tmp_path / changed).write_bytes(files[changed] + b" ")
    assert caption_source(path).digest() != digest


REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "no columns": ({"c.csv": b"a,b\n1,2\n"}, r"c\.csv: nothing .* line 2: no-caption\); .* are called caption or"),
    "open quote": ({"c.csv": b'caption,image\n"never closed,1.jpg\n'}, r"c\.csv, line 2: not CSV"),
    "one column twice": ({"c.csv": b"image,caption,caption\n1,2,3\n"}, r"c\.csv: two columns are called 'caption'; "),
    "cut Parquet": ({"a.parquet": ROWS[:-20], "b.parquet": ROWS}, r"a\.parquet: not a Parquet file that can be read"),
    "two files of one id": (
        json_of({**COCO, "images": [{"id": 8, "file_name": f"{n}.jpg"} for n in "ab"]}),
        r"image id 8 is that of a\.jpg and of b\.jpg",
    ),
    "other JSON": ({"c.json": b'{"images": [], "sentences": []}'}, r"c\.json: not captions in a form.*COCO"),
    "cut gzip": ({"c.tsv.gz": gzip.compress(b"a dog\thttp://x.org/1.jpg\n" * 100)[:-9]}, r"fetch the file again"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_cannot_be_read_is_refused_with_file_and_reason(tmp_path: Path, wrong: str) -> None:
    files, message = REFUSED[wrong]
    (tmp_path / "good").mkdir()
    good = write(tmp_path / "good", {"good.tsv": b"a dog\thttp://x.org/1.jpg\n"})
    (tmp_path / "bad").mkdir()
    with pytest.raises(WrongUse, match=message):
        list(CaptionSources([good, write(tmp_path / "bad", files)]).read())
    with pytest.raises(WrongUse, match=r"nothing\.tsv: no such file; name the captions"):
        caption_source(tmp_path / "nothing.tsv")


RECORDS: list[tuple[dict[str, Any], Captions]] = [
    ({"image": "1.jpg", "caption": SAID}, [of("1.jpg", f"1.jpg#{n}", text) for n, text in enumerate(SAID)]),
    (
        {"filename": "1.jpg", "filepath": "val2014", "sentences": [{"raw": text} for text in SAID]},
        [(f"1.jpg#{n}", "1.jpg", text, "val2014/1.jpg") for n, text in enumerate(SAID)],
    ),
    ({"Image_ID": 7.0, "Text": "A dog."}, [("000000001", "7", "A dog.", "")]),
]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet"])
def test_a_record_is_read_alike_in_every_format(tmp_path: Path, suffix: str) -> None:
    terms = Terms("CC-BY-SA-2.0", "Ada", "https://a.example/1")
    for record, captions in RECORDS:
        stated = {**record, **terms._asdict()}
        text = json.dumps([stated] if suffix == "json" else stated)
        content = parquet_of([stated]) if suffix == "parquet" else text.encode()
        assert read(write(tmp_path, {f"c.{suffix}": content}))[1] == [(*caption, *terms) for caption in captions]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "tar"])
def test_a_bad_record_is_counted_alike_in_every_format(tmp_path: Path, suffix: str) -> None:
    bad = [
        (b'{"image": "0.jpg", "caption": "A cat.", "caption": "A dog."}', "repeated-key"),
        (b'{"image": "2.jpg", "caption": "A caf\xe9."}', "not-utf-8"),
        (b'{"image": "3.jpg", "caption": "Half a pair: \\ud800"}', "not-utf-8"),
        (b'["A dog."]', "no-object"),
        (b'{"image": "4.jpg", "caption": " "}', "empty-caption"),
        (b'{"image": "5.jpg", "caption": "A dog.", "licence": "CC-BY-9"}', "unknown-licence"),
    ]
    records = [record for record, _ in bad] + [b'{"image": "9.jpg", "caption": "A fish."}']
    if suffix == "tar":
        content = tar_of([(f"{n}.{kind}", text) for n, text in enumerate(records) for kind in ("jpg", "json")])
    else:
        content = b"[" + b",".join(records) + b"]" if suffix == "json" else b"\n".join(records)
    _, captions, left_out = read(write(tmp_path, {f"c.{suffix}": content}))
    assert [caption[2] for caption in captions] == ["A fish."]
    assert [place.split(": ")[1] for place in left_out.split("; ")] == [reason for _, reason in bad]


def test_ids_and_places_begin_with_the_file_and_the_digest_has_their_order(tmp_path: Path) -> None:
    (tokens,) = FORMATS["Flickr tokens"][0].values()
    forms = {"photos.token.txt.gz": gzip.compress(tokens), "tables/a.parquet": ROWS}
    write(tmp_path, {"coco.json": json.dumps(COCO).encode(), **forms})
    files = [tmp_path / name for name in ("coco.json", "photos.token.txt.gz", "tables")]
    whole = list(CaptionSources(files).read())
    alone = [read for path in files for read in CaptionSources([path]).read()]
    assert [read.place for read in whole] == [read.place for read in alone]
    stems = Counter(read.caption_id.partition("/")[0] for read in whole if isinstance(read, Caption))
    assert stems == {"coco": 2, "photos.token": 2, "tables": 1}
    assert len({CaptionSources(paths).digest() for paths in (files, files[::-1], files[:2])}) == 3


def test_two_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    line, names = b"a dog\thttp://x.org/1.jpg\n", ("photos.token.txt", "photos.token.tsv")
    write(tmp_path, dict.fromkeys(names, line))
    with pytest.raises(WrongUse, match=r"both have 'photos\.token'"):
        CaptionSources([tmp_path / name for name in names])


@pytest.mark.skipif(not DATA.is_dir(), reason="the captions of ../shared/data are not here")
@pytest.mark.parametrize(
    ("name", "images", "captions", "split", "left_out"),
    [
        ("karpathy/maccap/flickr30k_val.json.gz", 1014, 5070, "val", 0),
        *(
            pytest.param(*counted, marks=pytest.mark.slow)
            for counted in (
                ("captions/cc3m_validation.tsv", 15833, 15833, "", 0),
                ("captions/coco_captions_val2017.json", 5000, 25014, "", 0),
                ("captions/flickr8k_token.txt", 8092, 40459, "", 1),  # without its tab
                ("karpathy/maccap/flickr30k_test.json.gz", 1000, 5000, "test", 0),
                ("karpathy/maccap/mscoco_test.json.gz", 5000, 25010, "test", 0),
                ("karpathy/aro_coco_karpathy_test.json.gz", 5000, 25010, "", 0),
                ("karpathy/flickr8k/Flickr8k.token.txt.gz", 8092, 40457, "", 3),
            )
        ),
    ],
)
def test_published_captions(name: str, images: int, captions: int, split: str, left_out: int) -> None:
    read = list(caption_source(DATA / name).read())
    kept = [result for result in read if isinstance(result, Caption)]
    assert len({caption.caption_id for caption in kept}) == len(kept)
    counts = len({caption.image_id for caption in kept}), len(kept), {caption.split for caption in kept}
    assert (*counts, len(read) - len(kept)) == (images, captions, {split}, left_out)
