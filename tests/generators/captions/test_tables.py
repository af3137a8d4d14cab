"""Several files of captions are read as one: their ids cannot collide, and each place says where it is.

What a path holds is found out; captions of any number are read in little memory; published ones are counted.

Tables of captions are read as their format says; what cannot be used is named with its place.
"""

import csv
import gzip
import json
import os
import subprocess
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read, write_tar
from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import LONGEST_LINE, Skipped
from twinset.generators.captions.tables import Caption, CaptionSources, caption_source

CAPTIONS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "captions"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """COCO's captions, a token file, and a folder of Parquet files, all of which have a caption 1."""
    coco = tmp_path / "captions_val2017.json"
    annotations = [{"id": 1, "image_id": 7, "caption": "a dog on a sofa"}, {"id": 2, "image_id": 8, "caption": "lost"}]
    coco.write_text(json.dumps({"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": annotations}))
    tokens = tmp_path / "photos.token.txt.gz"
    tokens.write_bytes(gzip.compress(b"1.jpg#0\ta cat under a table\nno tab\n1.jpg#1\tdogs\n"))
    folder = tmp_path / "tables"
    folder.mkdir()
    table = pa.table({"caption": ["a man with a hat"], "image_id": ["7"], "caption_id": ["1"]})
    pq.write_table(table, folder / "a.parquet")
    return [coco, tokens, folder]


def test_ids_and_places_begin_with_the_file(files: list[Path]) -> None:
    read = list(CaptionSources(files).read())
    assert [(c.caption_id, c.image_id, c.place) for c in read if isinstance(c, Caption)] == [
        ("captions_val2017/1", "7", "captions_val2017.json annotation 1"),
        ("photos.token/1.jpg#0", "1.jpg", "photos.token.txt.gz line 1"),
        ("photos.token/1.jpg#1", "1.jpg", "photos.token.txt.gz line 3"),
        ("tables/1", "7", "tables row 1"),
    ]
    assert [(one.place, one.reason) for one in read if isinstance(one, Skipped)] == [
        ("captions_val2017.json annotation 2", "unknown-image"),
        ("photos.token.txt.gz line 2", "no-tab"),
    ]


def test_order_and_names_are_part_of_the_digest(files: list[Path], tmp_path: Path) -> None:
    digests = {CaptionSources(paths).digest() for paths in (files, files[::-1], files[:2], files[:1])}
    renamed = files[2].rename(tmp_path / "renamed")
    assert len({*digests, CaptionSources([*files[:2], renamed]).digest()}) == 5


def test_two_that_cannot_be_told_apart_are_refused(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    again = tmp_path / "more/photos.token.tsv"
    again.write_text("a dog\thttp://x.org/1.jpg\n")
    with pytest.raises(WrongUse, match=r"both are called 'photos\.token', with which the ids.*rename one"):
        CaptionSources([*files, again])
    for name in ("a", "b"):  # of img2dataset, with the same keys
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"caption": ["A dog."]}), tmp_path / name / "00000.parquet")
        write_tar(tmp_path / name / "00000.tar", {"000000000.jpg": b"j"})
    with pytest.raises(WrongUse, match=r"/a and .*/b: both have 00000\.tar.*parse each into a folder of its own"):
        CaptionSources([tmp_path / "a", tmp_path / "b"])


def test_one_without_a_caption_is_refused_though_others_have_some(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("no url\nnor here\n")
    with pytest.raises(WrongUse, match=r"none\.tsv: no caption in it can be read as tsv \(2 lines.*line 1: wrong"):
        list(CaptionSources([*files, tmp_path / "none.tsv"]).read())


@pytest.mark.skipif(not CAPTIONS.is_dir(), reason="the captions of ../shared/data are not here")
def test_the_documentation_makes_token_files_of_captions_beside_a_list_of_images(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "scene_graphs.md").read_text()
    (line,) = (line.strip() for line in page.splitlines() if line.strip().startswith("paste "))
    for number in "15":
        one = line.replace("train.1", f"train.{number}").replace("#1", f"#{number}").replace("30k.1", f"30k.{number}")
        one = one.replace("> ", f"> {tmp_path}/")
        subprocess.run(["bash", "-c", one], cwd=CAPTIONS, check=True)
        source = caption_source(tmp_path / f"flickr30k.{number}.txt")
        images = (CAPTIONS / "flickr30k_images_train.txt").read_text().split()
        captions = zlib.decompress((CAPTIONS / f"flickr30k_train.{number}.txt.gz").read_bytes(), 31).decode()
        read = [one for one in source.read() if isinstance(one, Caption)]
        assert source.kind == "flickr-tokens" and len(read) == 29_000
        assert [(one.image_id, one.caption) for one in read] == list(zip(images, captions.splitlines(), strict=True))
        assert read[7].caption_id == f"{images[7]}#{number}"


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
@pytest.mark.parametrize(
    ("name", "images", "captions", "splits", "left_out"),
    [
        ("captions/cc3m_validation.tsv", 15833, 15833, {""}, 0),
        ("captions/coco_captions_val2017.json", 5000, 25014, {""}, 0),
        ("captions/flickr8k_token.txt", 8092, 40459, {""}, 1),  # without its tab
        ("karpathy/maccap/flickr30k_val.json.gz", 1014, 5070, {"val"}, 0),
        ("karpathy/maccap/flickr30k_test.json.gz", 1000, 5000, {"test"}, 0),
        ("karpathy/maccap/mscoco_val.json.gz", 5000, 25010, {"val"}, 0),
        ("karpathy/maccap/mscoco_test.json.gz", 5000, 25010, {"test"}, 0),
        ("karpathy/aro_coco_karpathy_test.json.gz", 5000, 25010, {""}, 0),
        ("karpathy/scan_precomp/f30k_precomp/dev_caps.txt.gz", 1014, 5070, {""}, 0),
        ("karpathy/scan_precomp/f30k_precomp/test_caps.txt.gz", 1000, 5000, {""}, 0),
        ("karpathy/scan_precomp/coco_precomp/dev_caps.txt", 1000, 5000, {""}, 0),
        ("karpathy/scan_precomp/coco_precomp/test_caps.txt", 1000, 5000, {""}, 0),
        ("karpathy/scan_precomp/coco_precomp/testall_caps.txt.gz", 5000, 25000, {""}, 0),
        ("karpathy/flickr8k/Flickr8k.token.txt.gz", 8092, 40457, {""}, 3),
    ],
)
def test_published_captions(name: str, images: int, captions: int, splits: set[str], left_out: int) -> None:
    read = list(caption_source(CAPTIONS.parent / name).read())
    found = [one for one in read if isinstance(one, Caption)]
    assert len({one.caption_id for one in found}) == len(found)
    counts = len({one.image_id for one in found}), len(found), {one.split for one in found}, len(read) - len(found)
    assert counts == (images, captions, splits, left_out)


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
        b'"the" last\thttp://x.org/1.jpg'
    )
    _, captions, left_out = read(path)
    assert captions == [
        ("000000001", "http://x.org/1.jpg", "a dog .", "http://x.org/1.jpg"),
        ("000000008", "http://x.org/5.jpg", "line\u2028separator", "http://x.org/5.jpg"),
        ("000000010", "http://x.org/1.jpg", '"the" last', "http://x.org/1.jpg"),
    ]
    reasons = {2: "wrong-columns", 4: "wrong-columns", 5: "empty-caption", 6: "not-utf-8", 7: "no-url", 9: "too-long"}
    assert left_out == [(f"line {number}", reason) for number, reason in reasons.items()]


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
    with pytest.raises(WrongUse, match=r"captions\.csv: no column of captions.* or title, and there are a, b;"):
        read(path)
    path.write_text('caption,image\n"never closed,1.jpg\n')
    with pytest.raises(WrongUse, match=r"captions\.csv, line 2: not CSV"):
        read(path)


QUOTED = ['a sign that says "stop" by a road', '"quoted"', "two\nlines", "a\ttab, a comma; a bar | and more"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("delimiter", "\t,;|")
def test_tables_are_read_as_csv_writes_them_with_any_delimiter(tmp_path: Path, delimiter: str, suffix: str) -> None:
    with (tmp_path / f"c{suffix}").open("w", newline="") as stream:
        rows = csv.writer(stream, delimiter=delimiter)
        rows.writerow(["filepath", "title"])  # open_clip's
        rows.writerows((f"{n}.jpg", text) for n, text in enumerate(QUOTED))
    _, captions, left_out = read(tmp_path / f"c{suffix}")
    assert [(image, text) for _, _, text, image in captions] == [(f"{n}.jpg", text) for n, text in enumerate(QUOTED)]
    assert left_out == []


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_first_line_of_excels_names_the_delimiter(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"c.{suffix}").write_bytes(b"sep=;\r\nimage;caption\r\n1.jpg;A dog, a cat\r\n")
    assert read(tmp_path / f"c.{suffix}")[1:] == ([("000000003", "1.jpg", "A dog, a cat", "1.jpg")], [])


def test_a_table_with_tabs_that_no_csv_wrote_stays_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text('image\tcaption\n0.jpg\t"Stop" sign on a road\n1.jpg\ta 5" screen\n')
    assert [caption for _, _, caption, _ in read(path)[1]] == ['"Stop" sign on a road', 'a 5" screen']
    path.write_text('image\tcaption\n0.jpg\t"half a line\n1.jpg\ta tv of 5"\n')
    assert [caption for _, _, caption, _ in read(path)[1]] == ['"half a line', 'a tv of 5"'], (
        "two lines are one caption"
    )
    path.write_bytes(b"a dog\rruns\thttp://x/1.jpg\n")
    assert [caption for _, _, caption, _ in read(path)[1]] == ["a dog\rruns"]


def test_what_is_wrong_with_a_table_is_said_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"image,caption\n1.jpg,a caf\xe9\n2.jpg,a dog\n")
    assert read(path)[2] == [("line 2", "not-utf-8")]
    path.write_bytes("image,caption\n1.jpg,a dog\n".encode("utf-16"))
    assert [caption for _, _, caption, _ in read(path)[1]] == ["a dog"]
    path.write_bytes("légende,caption\n1.jpg,a dog\n".encode("latin-1"))
    with pytest.raises(WrongUse, match=r"c\.csv: its first line, .*, is not-utf-8; save the file as UTF-8"):
        read(path)
    path.write_text(
        "image,caption,license,note,Note\n0.jpg,a dog,?,1,2\n"
    )  # LAION's licence, columns that are not read
    assert len(read(path)[1]) == 1
    path.write_text("image,caption,Caption\n1.jpg,a dog,a cat\n")
    with pytest.raises(WrongUse, match=r"c\.csv: two columns are called caption, .*; rename one"):
        read(path)


def test_flickr_tokens(tmp_path: Path) -> None:
    path = tmp_path / "Flickr8k.token.txt"
    path.write_text("1_a.jpg#0\tA dog .\n1_a.jpg#1\tA\ttab .\n2.jpg#0  no tab\nno number\tA cat .\n3.jpg#4\t\n")
    assert read(path) == (
        "flickr-tokens",
        [("1_a.jpg#0", "1_a.jpg", "A dog .", "1_a.jpg"), ("1_a.jpg#1", "1_a.jpg", "A\ttab .", "1_a.jpg")],
        [("line 3", "no-tab"), ("line 4", "no-image-id"), ("line 5", "empty-caption")],
    )


def test_parquet_file_and_folder(tmp_path: Path) -> None:
    table = pa.table({"caption": ["A dog.", None], "image_id": [7, 8], "image": [{"bytes": b"x"}, None]})
    for name in ("a", "b"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert read(tmp_path / "a.parquet")[1:] == ([("000000001", "7", "A dog.", "")], [("row 2", "empty-caption")])
    assert read(tmp_path) == (
        "parquet",
        [("a-000000001", "7", "A dog.", ""), ("b-000000001", "7", "A dog.", "")],
        [("a.parquet row 2", "empty-caption"), ("b.parquet row 2", "empty-caption")],
    )
    (tmp_path / "a.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-20])
    with pytest.raises(WrongUse, match=r"a\.parquet: not a Parquet file that can be read"):
        read(tmp_path)
