"""What a path holds is found out; captions of any number are read in little memory; published ones are counted."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read
from twinset.contracts.errors import WrongUse
from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption

CAPTIONS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "captions"


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
