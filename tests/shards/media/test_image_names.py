"""Names and ids of one image: a folder of COCO's images of 2014 serves annotations of 2017, and the other way round."""

import io
import tarfile
import time
import unicodedata
from pathlib import Path

import pytest

from twinset.shards.media.media_folder import EscapesRoot, ImageFolder


@pytest.mark.parametrize("name", ["139", "000000000139", "000000000139.jpg", "COCO_val2014_000000000139.jpg"])
@pytest.mark.parametrize(
    "file", ["000000000139.jpg", "COCO_val2014_000000000139.jpg", "val/COCO_train2014_000000000139.jpg"]
)
def test_coco_images_are_found_by_the_names_of_either_year(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"x")
    found = ImageFolder(tmp_path).find(name)
    if name.startswith("COCO_val") and "train" in file:
        assert found is None, "images of both parts are others"
    else:
        assert found is not None and found.name == file


def test_the_very_name_comes_first(tmp_path: Path) -> None:
    for file in ("COCO_val2014_000000000139.jpg", "000000000139.jpg", "139.png"):
        (tmp_path / file).write_bytes(b"x")
        found = ImageFolder(tmp_path).find("139")
        assert found is not None and found.name == file


@pytest.mark.parametrize("name", ["a/" * 100_000 + "1.jpg", "1" * 100_000])
def test_a_name_of_very_many_folders_is_looked_up_nowhere(tmp_path: Path, name: str) -> None:
    began = time.process_time()
    assert ImageFolder(tmp_path).find(name) is None
    assert time.process_time() - began < 1, "seconds"


def put(file: Path, content: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((content or str(file)).encode())


def put_tar(file: Path, *members: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w") as tar:
        for name in members:
            info = tarfile.TarInfo(name)
            info.size = len(content := f"{file} {name}".encode())
            tar.addfile(info, io.BytesIO(content))


def found(root: Path, name: str) -> str | None:
    stored = ImageFolder(root).find(name)
    return stored.name if stored is not None else None


def test_a_name_is_never_that_of_a_file_in_another_folder(tmp_path: Path) -> None:
    train = tmp_path / "data" / "train"
    put(train / "000.png")
    assert found(train, "000.png") == found(train, "train/000.png") == found(train, "data/train/000.png") == "000.png"
    for name in ("val/000.png", "other/train/000.png", "val/000", "train.tar/000.png"):
        assert found(train, name) is None
    assert ImageFolder(train).absent("val/000.png", "no such image") == (
        "val/000.png is not 000.png, of another folder; name the folder that holds it, or correct it"
    )
    assert ImageFolder(train).absent("001.png", "no such image") == "no such image"
    (tmp_path / "images").symlink_to(train)
    assert found(tmp_path / "images", "train/000.png") == "000.png", "the path that the link leads to"


def test_a_name_that_several_files_end_in_is_that_of_none(tmp_path: Path) -> None:
    put(tmp_path / "train" / "000.png")
    assert found(tmp_path, "000") == "train/000.png"
    put(tmp_path / "val" / "000.png")
    assert found(tmp_path, "000") is None and found(tmp_path, "000.png") is None
    assert found(tmp_path, "val/000") == "val/000.png"
    assert ImageFolder(tmp_path).absent("000.png", "") == (
        "000.png may be train/000.png or val/000.png, which differ; write the folder in the name"
    )
    put(tmp_path / "000.png")
    assert found(tmp_path, "000.png") == "000.png", "the very path"


def test_copies_of_a_file_are_one(tmp_path: Path) -> None:
    for folder in ("flickr30k_images", "flickr30k_images/flickr30k_images"):  # as a popular archive has them
        put(tmp_path / folder / "1.jpg", "same")
    assert found(tmp_path, "1.jpg") == "flickr30k_images/1.jpg"


def test_members_of_tars_have_paths_too(tmp_path: Path) -> None:
    put_tar(tmp_path / "train.tar", "./a/000.png", "b/001.png")
    put_tar(tmp_path / "below" / "val.tar", "a/000.png", "a/002.png", "b/002.png")
    assert found(tmp_path, "b/001.png") == found(tmp_path, "001") == "train.tar/b/001.png"
    assert found(tmp_path, "train.tar/a/000.png") == found(tmp_path, "train.tar/./a/000.png")
    assert found(tmp_path, "below/val.tar/a/000.png") == found(tmp_path, "val.tar/a/000.png")
    stored = ImageFolder(tmp_path).find("train.tar/a/000.png")
    assert stored is not None and stored.read().endswith(b"train.tar ./a/000.png")
    for name in (
        "a/000.png",
        "000",
        "002.png",
        "c/001.png",
        "val.tar/b/001.png",
        "train.tar/001.png",
        "x/val.tar/a/000.png",
    ):
        assert found(tmp_path, name) is None, name
    put_tar(tmp_path / "more" / "val.tar", "a/000.png")
    assert found(tmp_path, "val.tar/a/000.png") is None, "of which tar is not said"


@pytest.mark.parametrize("name", ["2370799", "2370799.jpg", "0002370799"])
def test_other_numbers_are_not_those_of_coco(tmp_path: Path, name: str) -> None:
    put(tmp_path / "000002370799.jpg")
    put(tmp_path / "COCO_val2014_000002370799.jpg")
    assert found(tmp_path, name) == ("000002370799.jpg" if name == "2370799" else None)


def test_a_name_of_coco_says_its_folder_itself(tmp_path: Path) -> None:
    name = "val2014/COCO_val2014_000000000139.jpg"  # as Karpathy's splits have it
    put(tmp_path / "flat" / "COCO_val2014_000000000139.jpg")
    put(tmp_path / "newer" / "train2017" / "000000000139.jpg")
    assert found(tmp_path / "flat", name) == "COCO_val2014_000000000139.jpg"
    assert found(tmp_path / "newer", name) == "train2017/000000000139.jpg"
    assert found(tmp_path / "newer", name.replace("val2014/", "other/")) is None


def test_masks_beside_photographs_of_coco_do_not_hide_them(tmp_path: Path) -> None:
    put(tmp_path / "panoptic_val2017" / "000000000139.png")
    put(tmp_path / "val2017" / "000000000139.jpg")
    assert found(tmp_path, "139") == "val2017/000000000139.jpg"


def test_letters_of_another_form_or_size_are_the_same_name(tmp_path: Path) -> None:
    composed, apart = (unicodedata.normalize(form, "été.jpg") for form in ("NFC", "NFD"))
    put(tmp_path / "sub" / apart)
    put(tmp_path / "CAT.JpG")
    assert found(tmp_path, composed) == found(tmp_path, f"sub/{composed}") == f"sub/{apart}"
    assert found(tmp_path, "CAT.jpg") == found(tmp_path, "CAT") == "CAT.JpG"
    assert found(tmp_path, "cat.jpg") is None


def test_paths_of_windows_and_absolute_ones_below_the_folder_are_read(tmp_path: Path) -> None:
    put(tmp_path / "i" / "a" / "0.jpg")
    root = tmp_path / "i"
    for name in ("a\\0.jpg", "i\\a\\0.jpg", f"{root}/a/0.jpg"):
        assert found(root, name) == "a/0.jpg"
    assert found(root, f"{root}/0.jpg") is None, "another path"
    for name in (f"{root}/../x.jpg", f"{tmp_path}/0.jpg", "C:\\..\\..\\0.jpg"):
        with pytest.raises(EscapesRoot):
            found(root, name)
