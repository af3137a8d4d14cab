"""Media are found by name, inside their folder, and only where they can be read to an end; never by a guess."""

import io
import os
import tarfile
import time
import unicodedata
from pathlib import Path

import pytest

from twinset.shards.media.media_folder import EscapesRoot, ImageFolder, MediaFolder
from twinset.shards.storage.path_ends import walk


def put(root: Path, *files: str) -> Path:
    """Files whose content is their name; ``PATH=TEXT``: that text; ``PATH.tar!MEMBER,…``: a tar."""
    for file in files:
        name, _, text = file.partition("=")
        path, _, members = name.partition("!")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if not members:
            (root / path).write_text(text or name)
            continue
        with tarfile.open(root / path, "w") as tar:
            for member in members.split(","):
                info = tarfile.TarInfo(member)
                info.size = len(content := f"{path} {member}".encode())
                tar.addfile(info, io.BytesIO(content))
    return root


def name_of(folder: MediaFolder, name: str) -> str | None:
    stored = folder.find(name)
    return stored.name if stored is not None else None


COMPOSED, APART = (unicodedata.normalize(form, "été.jpg") for form in ("NFC", "NFD"))
NEW, OLD, TRAIN = "000000000139.jpg", "COCO_val2014_000000000139.jpg", "COCO_train2014_000000000139.jpg"
TARS = ("train.tar!./a/000.png,b/001.png", "below/val.tar!a/000.png,a/002.png,b/002.png")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        # A name is never that of a file in another folder, and one that several files end in is that of none.
        (["train/000.png"], {"000": "train/000.png", "train/000": "train/000.png", "val/000.png": None}),
        (
            ["train/000.png", "val/000.png"],
            {"000": None, "000.png": None, "val/000": "val/000.png", "other/val/000.png": None},
        ),
        (["train/000.png", "000.png"], {"000.png": "000.png"}),
        (["photos/1.jpg=same", "photos/photos/1.jpg=same"], {"1.jpg": "photos/1.jpg"}),  # as a popular archive has them
        # Letters of another form or size are the same name.
        ([f"sub/{APART}"], {COMPOSED: f"sub/{APART}", f"sub/{COMPOSED}": f"sub/{APART}"}),
        (["CAT.JpG"], {"CAT.jpg": "CAT.JpG", "CAT": "CAT.JpG", "cat.jpg": None}),
        # COCO's images are found by the names of either year, those of both parts are others.
        *(([file], dict.fromkeys(("139", NEW[:-4], NEW, OLD), file)) for file in (NEW, OLD)),
        ([f"val/{TRAIN}"], {"139": f"val/{TRAIN}", NEW: f"val/{TRAIN}", OLD: None}),
        ([OLD], {f"val2014/{OLD}": OLD}),  # as Karpathy's splits have it
        ([f"train2017/{NEW}"], {f"val2014/{OLD}": f"train2017/{NEW}", f"other/{OLD}": None}),
        ([OLD, NEW, "139.png"], {"139": "139.png"}),
        (["panoptic_val2017/000000000139.png", f"val2017/{NEW}"], {"139": f"val2017/{NEW}"}),
        (["000002370799.jpg"], {"2370799": "000002370799.jpg", "2370799.jpg": None, "0002370799": None}),
        # Members of tars have paths too.
        (
            TARS,
            {
                **dict.fromkeys(("b/001.png", "001", "train.tar/b/001.png"), "train.tar/b/001.png"),
                **dict.fromkeys(("train.tar/a/000.png", "train.tar/./a/000.png"), "train.tar/./a/000.png"),
                **dict.fromkeys(("val.tar/a/000.png", "below/val.tar/a/000.png"), "below/val.tar/a/000.png"),
                **dict.fromkeys(("a/000.png", "000", "002.png", "c/001.png", "val.tar/b/001.png")),
                **dict.fromkeys(("train.tar/001.png", "x/val.tar/a/000.png")),
            },
        ),
        ([*TARS, "more/val.tar!a/000.png"], {"val.tar/a/000.png": None}),  # of which tar is not said
    ],
)
def test_images_by_name(tmp_path: Path, files: list[str], names: dict[str, str | None]) -> None:
    folder = ImageFolder(put(tmp_path, *files))
    assert {name: name_of(folder, name) for name in names} == names


def test_the_folder_s_own_path_may_stand_in_a_name(tmp_path: Path) -> None:
    train = put(tmp_path / "data" / "train", "000.png")
    for name in ("000.png", "train/000.png", "data/train/000.png", str(train / "000.png"), "train\\000.png"):
        assert name_of(ImageFolder(train), name) == "000.png"
    for name in ("val/000.png", "other/train/000.png", "train.tar/000.png", "http://host/000.png"):
        assert name_of(ImageFolder(train), name) is None
    (tmp_path / "images").symlink_to(train)
    assert name_of(ImageFolder(tmp_path / "images"), "train/000.png") == "000.png", "the path that the link leads to"


def test_why_a_name_stands_for_no_file(tmp_path: Path) -> None:
    folder = ImageFolder(put(tmp_path, "train/000.png", "val/000.png"))
    assert "may be train/000.png or val/000.png, which differ" in folder.absent("000.png", "")
    assert "is not train/000.png, of another folder" in folder.absent("x/000.png", "none")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["training/101/-Abc.mkv"], {"-Abc": "training/101/-Abc.mkv"}),
        *(([file], {"ID": file}) for file in ("ID.MP4", "a/ID.Mkv", "ID.mp4.webm", "a/ID.mkv.mp4", "ID.mov.WEBM")),
        (["ID.webm", "ID.mp4"], {"ID": "ID.mp4", "ID.webm": "ID.webm"}),
        (["a/ID.mp4", "b/ID.mp4"], {"ID": None, "a/ID": "a/ID.mp4", "b/ID.mp4": "b/ID.mp4"}),
        (["a/ID.mp4=same", "b/ID.mp4=same"], {"ID": "a/ID.mp4"}),
    ],
)
def test_videos_by_name(tmp_path: Path, files: list[str], names: dict[str, str | None]) -> None:
    folder = MediaFolder(put(tmp_path, *files))
    assert {name: name_of(folder, name) for name in names} == names


def test_what_can_never_be_read_to_an_end_is_not_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    for name, to in {"device": "/dev/zero", "dangling": "nowhere", "loop": "loop.mp4"}.items():
        (tmp_path / f"{name}.mp4").symlink_to(to)
    (tmp_path / "folder.mp4").mkdir()
    began = time.process_time()
    for name in ("pipe", "device", "dangling", "loop", "folder", "x" * 5000, "a/" * 100_000 + "1", "1" * 100_000):
        assert MediaFolder(tmp_path).find(name) is None
    assert time.process_time() - began < 1, "seconds"


def test_links_of_the_folder_s_owner_are_followed_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path, "disk2/clips/ID.mp4")
    media = tmp_path / "media"
    (media / "sub").mkdir(parents=True)
    (media / "clips").symlink_to(tmp_path / "disk2" / "clips")
    (media / "sub" / "up").symlink_to(media)
    (media / "out").symlink_to(tmp_path)
    (tmp_path / "disk2" / "clips" / "round").symlink_to(tmp_path / "disk2")
    assert name_of(MediaFolder(media), "ID") == "clips/ID.mp4"
    assert sorted(walk(media)) == [("clips", "ID.mp4")]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a\0b", "..\\b", ""])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EscapesRoot):
        MediaFolder(tmp_path).find(name)
