"""Tables of captions are read as their format says; what cannot be used is named with its place."""

import csv
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read
from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import LONGEST_LINE


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


def test_an_image_named_by_its_path_alone(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("path\tcaption\na/1.jpg\tA dog .\n")
    assert read(tmp_path / "a.tsv") == ("tsv", [("000000002", "a/1.jpg", "A dog .", "a/1.jpg")], [])


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


def test_an_unknown_licence_of_laion_keeps_its_record(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("url,caption,LICENSE\nhttp://x/1.jpg,a dog,?\n")
    assert len(read(path)[1]) == 1


def test_columns_that_are_not_read_may_differ_in_case_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("image,caption,note,Note\n0.jpg,a dog,1,2\n")
    assert len(read(path)[1]) == 1


@pytest.mark.parametrize("of_lists", [pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.string(), 2)])
def test_lists_of_captions_of_any_type(tmp_path: Path, of_lists: pa.DataType) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"image": ["0.jpg"], "captions": pa.array([["a dog", "a hound"]], of_lists)}), path)
    assert [caption for _, _, caption, _ in read(path)[1]] == ["a dog", "a hound"]


def test_conceptual_captions_are_not_unquoted(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text('"a" dog\thttp://x.org/1.jpg\n"a cat\thttp://x.org/2.jpg\n')
    assert [text for _, _, text, _ in read(tmp_path / "c.tsv")[1]] == ['"a" dog', '"a cat']


def test_what_is_wrong_with_a_table_is_said_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"image,caption\n1.jpg,a caf\xe9\n2.jpg,a dog\n")
    assert read(path)[2] == [("line 2", "not-utf-8")]
    path.write_bytes("image,caption\n1.jpg,a dog\n".encode("utf-16"))
    with pytest.raises(WrongUse, match=r"c\.csv: its first line, .*, is not-utf-8; save the file as UTF-8"):
        read(path)
    path.write_text("image,caption,Caption\n1.jpg,a dog,a cat\n")
    with pytest.raises(WrongUse, match=r"c\.csv: two columns are called caption, .*; rename one"):
        read(path)


def test_csv_that_is_called_txt(tmp_path: Path) -> None:
    """Kaggle's captions.txt of Flickr8k."""
    (tmp_path / "captions.txt").write_text("image,caption\n1.jpg,A dog .\n1.jpg,A dog runs .\n")
    found = [("000000002", "1.jpg", "A dog .", "1.jpg"), ("000000003", "1.jpg", "A dog runs .", "1.jpg")]
    assert read(tmp_path / "captions.txt") == ("tsv", found, [])


def test_flickr_tokens(tmp_path: Path) -> None:
    path = tmp_path / "Flickr8k.token.txt"
    path.write_text("1_a.jpg#0\tA dog .\n1_a.jpg#1\tA\ttab .\n2.jpg#0  no tab\nno number\tA cat .\n3.jpg#4\t\n")
    assert read(path) == (
        "flickr-tokens",
        [("1_a.jpg#0", "1_a.jpg", "A dog .", "1_a.jpg"), ("1_a.jpg#1", "1_a.jpg", "A\ttab .", "1_a.jpg")],
        [("line 3", "no-tab"), ("line 4", "no-image-id"), ("line 5", "empty-caption")],
    )


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
    pq.write_table(table.rename_columns(["words", "image_id", "image"]), tmp_path / "a.parquet")
    with pytest.raises(WrongUse, match=r"a\.parquet: no column of captions.*words, image_id"):
        read(tmp_path)
