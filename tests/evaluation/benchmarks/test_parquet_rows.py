"""Images within Parquet are read in any order, with the memory of a row group; damage is named."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.benchmarks.made_files import parquet
from tests.evaluation.benchmarks.made_layouts import bivlc, bivlc_rows
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark, parquet_rows
from twinset.evaluation.benchmarks.foils import IMAGES, WORDS
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows
from twinset.evaluation.examples import LeftOut, Matching
from twinset.shards.storage.parquet_reader import batches

ROWS = 100


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "test.parquet"
    parquet(path, bivlc_rows(ROWS), IMAGES)
    return path


@settings(max_examples=40)
@given(asked=st.lists(st.tuples(st.integers(0, ROWS - 1), st.sampled_from(IMAGES)), max_size=12))
def test_images_are_those_of_their_rows_in_any_order(file: Path, asked: list[tuple[int, str]]) -> None:
    rows, expected = ParquetRows(file, IMAGES, WORDS), bivlc_rows(ROWS)
    for row, column in asked:
        assert rows.picture(row, column).read() == expected[row][column]["bytes"]


def test_asking_in_order_reads_each_row_group_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, read = ParquetRows(file, IMAGES, WORDS), list[int]()

    def counted(path: Path, columns: list[str], size: int, groups: list[int], longest: int) -> object:
        read.extend(groups)
        return batches(path, columns, size, groups, longest)

    monkeypatch.setattr(parquet_rows, "batches", counted)
    for row in range(ROWS):
        for column in IMAGES:
            rows.picture(row, column).read()
    assert read == [*range(len(read))]


def test_memory_is_that_of_a_row_group(tmp_path: Path) -> None:
    path, noise = tmp_path / "big.parquet", bytes(range(256)) * 1024
    row = bivlc_rows(1)[0]
    many = [{**row, "image": {"bytes": noise + bytes([n]), "path": None}} for n in range(160)]
    parquet(path, many, IMAGES, row_group_size=16)
    rows, before, most = ParquetRows(path, IMAGES, WORDS), pa.total_allocated_bytes(), 0
    for number in range(160):
        assert rows.picture(number, "image").read()[-1] == number
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 16 << 20 < 160 * len(noise)


def test_rows_of_one_photo_are_one_group(tmp_path: Path) -> None:
    bivlc(tmp_path)
    found = [item for item in open_benchmark("bivlc", tmp_path).examples() if isinstance(item, Matching)]
    assert [one.key for one in found] == [f"test/{n:06d}" for n in range(4)]
    assert found[0].group == found[1].group != found[2].group == found[3].group
    assert {one.category for one in found} == {"replace_att"}


def test_a_part_that_was_not_fetched_is_missed(tmp_path: Path) -> None:
    bivlc(tmp_path)
    next((tmp_path / "data").glob("*-00001-of-*")).unlink()
    with pytest.raises(WrongUse, match="1 of the 2 parts of test are there"):
        open_benchmark("bivlc", tmp_path)


def test_a_row_without_an_image_is_left_out(tmp_path: Path) -> None:
    rows = bivlc_rows(3)
    rows[1]["image"] = {"bytes": None, "path": "000000000001.jpg"}
    rows[2]["negative_image"] = None
    parquet(tmp_path / "test.parquet", rows, IMAGES)
    items = list(open_benchmark("bivlc", tmp_path).examples())
    assert [isinstance(item, LeftOut) for item in items] == [False, True, False]
    assert isinstance(items[2], Matching)
    with pytest.raises(WrongUse, match=r"test\.parquet: row 2 negative_image holds no image"):
        items[2].images[1].read()


def test_other_columns_are_named(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "subtype"} for row in bivlc_rows(2)]
    parquet(tmp_path / "test.parquet", rows, IMAGES)
    with pytest.raises(WrongUse, match=r"test\.parquet: no column 'subtype' \(it has image, caption"):
        list(open_benchmark("bivlc", tmp_path).examples())
    parquet(tmp_path / "test.parquet", [{**row, "image": "a.jpg"} for row in bivlc_rows(2)], IMAGES[1:])
    with pytest.raises(WrongUse, match="the column 'image' holds no images"):
        list(open_benchmark("bivlc", tmp_path).examples())
    parquet(tmp_path / "test.parquet", bivlc_rows(2), IMAGES)
    table = pq.read_table(tmp_path / "test.parquet")
    pq.write_table(table.append_column("image", table["image"]), tmp_path / "test.parquet")
    with pytest.raises(WrongUse, match="two columns are called 'image'"):
        list(open_benchmark("bivlc", tmp_path).examples())


@pytest.mark.parametrize("subtype", [["att"], 4])
def test_lists_are_no_words_and_numbers_are(tmp_path: Path, subtype: object) -> None:
    path = tmp_path / "test.parquet"
    parquet(path, bivlc_rows(2), IMAGES)
    table = pq.read_table(path)
    place = table.schema.get_field_index("subtype")
    pq.write_table(table.set_column(place, "subtype", pa.array([subtype] * 2)), path)
    if isinstance(subtype, list):
        with pytest.raises(WrongUse, match="the column 'subtype' holds no plain values"):
            list(open_benchmark("bivlc", tmp_path).examples())
    else:
        found = [item for item in open_benchmark("bivlc", tmp_path).examples() if isinstance(item, Matching)]
        assert {one.category for one in found} == {"replace_4"}


@pytest.mark.parametrize("place", [0.02, 0.5, 1.0])
def test_a_damaged_file_is_named(tmp_path: Path, place: float) -> None:
    path = tmp_path / "test.parquet"
    parquet(path, bivlc_rows(60), IMAGES)
    content = bytearray(path.read_bytes())
    at = min(int(place * len(content)), len(content) - 12)
    content[at : at + 12] = b"\xff" * 12
    path.write_bytes(content)
    with pytest.raises(WrongUse, match=r"test\.parquet"):
        for item in open_benchmark("bivlc", tmp_path).examples():
            if isinstance(item, Matching):
                for shown in item.images:
                    shown.read()
        raise WrongUse("test.parquet: the damage lay within an image, where nothing but its decoder can tell")
