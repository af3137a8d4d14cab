"""Several files of captions are read as one: their ids cannot collide, and each place says where it is.

What a path holds is found out; captions of any number are read in little memory; published ones are counted.
"""

import gzip
import json
import os
import subprocess
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read
from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import Skipped
from twinset.generators.captions.sources import CaptionSources, caption_source
from twinset.generators.captions.tables import Caption
from twinset.shards.storage.tar_reader import TarWriter

MULTI30K = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "captions"


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
    table = pyarrow.table({"caption": ["a man with a hat"], "image_id": ["7"], "caption_id": ["1"]})
    pyarrow.parquet.write_table(table, folder / "a.parquet")
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


def test_of_one_alone_the_ids_stay_as_they_are(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for path in files:
        own = [replace(one, place=f"{path.name} {one.place}") for one in caption_source(path).read()]
        assert list(CaptionSources([path]).read()) == own
        assert CaptionSources([path]).digest() == caption_source(path).digest()
    monkeypatch.chdir(files[2])
    assert caption_source(Path(".")).stem == "tables"


def test_order_and_names_are_part_of_the_digest(files: list[Path], tmp_path: Path) -> None:
    digests = {CaptionSources(paths).digest() for paths in (files, files[::-1], files[:2], files[:1])}
    renamed = files[2].rename(tmp_path / "renamed")
    assert len({*digests, CaptionSources([*files[:2], renamed]).digest()}) == 5


@pytest.mark.parametrize("other", ["captions_val2017.json", "photos.token.tsv", "tables"])
def test_two_of_one_name_are_refused(files: list[Path], tmp_path: Path, other: str) -> None:
    again = tmp_path / "more" / other
    again.mkdir(parents=True) if other == "tables" else again.parent.mkdir()
    if other == "tables":
        (again / "a.parquet").write_bytes((files[2] / "a.parquet").read_bytes())
    else:
        again.write_text("a dog\thttp://x.org/1.jpg\n")
    with pytest.raises(WrongUse, match=r"both are called '[a-z0-9_.]+', with which the ids.*rename one"):
        CaptionSources([*files, again])


def test_folders_of_img2dataset_with_the_same_keys_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pyarrow.parquet.write_table(pyarrow.table({"caption": ["A dog."]}), tmp_path / name / "00000.parquet")
        with TarWriter(tmp_path / name / "00000.tar") as tar:
            tar.add_sample("000000000", [("jpg", name.encode())])
    with pytest.raises(WrongUse, match=r"/a and .*/b: both have 00000\.tar.*parse each into a folder of its own"):
        CaptionSources([tmp_path / "a", tmp_path / "b"])


def test_names_that_cannot_begin_an_id_are_refused(tmp_path: Path) -> None:
    for name in (b"caf\xe9.tsv", b"a\nb.tsv"):
        odd = Path(bytes(tmp_path).decode(), name.decode("utf-8", "surrogateescape"))
        odd.write_text("a dog\thttp://x.org/1.jpg\n")
        (tmp_path / "c.tsv").write_text("a dog\thttp://x.org/1.jpg\n")
        assert len(list(CaptionSources([odd]).read())) == 1
        with pytest.raises(WrongUse, match="a name with such characters cannot begin an id; rename it"):
            CaptionSources([tmp_path / "c.tsv", odd])


def test_one_without_a_caption_is_refused_though_others_have_some(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("no url\nnor here\n")
    with pytest.raises(WrongUse, match=r"none\.tsv: no caption in it can be read as tsv \(2 lines.*line 1: wrong"):
        list(CaptionSources([*files, tmp_path / "none.tsv"]).read())
    with pytest.raises(WrongUse, match="no captions are named"):
        CaptionSources([])


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="the captions of ../shared/data are not here")
def test_the_documentation_makes_token_files_of_captions_beside_a_list_of_images(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "scene_graphs.md").read_text()
    (line,) = (line.strip() for line in page.splitlines() if line.strip().startswith("paste "))
    for number in "15":
        one = line.replace("train.1", f"train.{number}").replace("#1", f"#{number}").replace("30k.1", f"30k.{number}")
        one = one.replace("> ", f"> {tmp_path}/")
        subprocess.run(["bash", "-c", one], cwd=MULTI30K, check=True)
        source = caption_source(tmp_path / f"flickr30k.{number}.txt")
        images = (MULTI30K / "flickr30k_images_train.txt").read_text().split()
        captions = zlib.decompress((MULTI30K / f"flickr30k_train.{number}.txt.gz").read_bytes(), 31).decode()
        read = [one for one in source.read() if isinstance(one, Caption)]
        assert source.kind == "flickr-tokens" and len(read) == 29_000
        assert [(one.image_id, one.caption) for one in read] == list(zip(images, captions.splitlines(), strict=True))
        assert read[7].caption_id == f"{images[7]}#{number}"


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
