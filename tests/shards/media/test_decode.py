"""Attack: a file that is given out as an image. It runs nothing, fills no memory and takes no minutes, wherever it is
read: one function opens every image, and refuses by the sample's name what a tar of others holds in place of one.

Names and ids of one image: a folder of COCO's images of 2014 serves annotations of 2017, and the other way round.
"""

import ast
import io
import struct
import subprocess
import sys
import tarfile
import time
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import EpsImagePlugin, Image, ImageFile

from tests.made_datasets import MadeDataset
from tests.test_rooms import MODULES, PACKAGE
from twinset.cards.sheet import Block, Cell, contact_sheet
from twinset.evaluation.blind_probes.image_probes import _measured
from twinset.evaluation.features import pictures
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.review.neutral_images import in_one_form
from twinset.shards.export.eqben import export_eqben
from twinset.shards.media.decode import MOST_SCANS, UnreadableImage, decode, open_image
from twinset.shards.media.media_folder import ImageFolder
from twinset.shards.read import read_samples
from twinset.shards.storage.tar_reader import BrokenTar, TarWriter

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(program) run\nshowpage\n%%EOF\n"


def bomb() -> bytes:
    """A small PNG of 81 million pixels, which Pillow only warns of."""
    stream = io.BytesIO()
    Image.new("1", (9000, 9000)).save(stream, "PNG")
    return stream.getvalue()


def truncated() -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(stream, "JPEG")
    return stream.getvalue()[:-900]


@pytest.fixture
def ghostscript(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of Ghostscript by Pillow."""
    calls: list[Any] = []

    def called(*arguments: Any, **named: Any) -> Image.Image:
        calls.append(arguments)
        return Image.new("RGB", (10, 10))

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", called)
    return calls


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("image", [EPS, bomb(), truncated(), b""], ids=["EPS", "bomb", "truncated", "empty"])
def test_what_is_no_image_of_ours_is_refused(
    made_pairs: MadeDataset, tmp_path: Path, ghostscript: list[Any], image: bytes
) -> None:
    pair = next(read_samples(made_pairs.store, "eq-youcook2"))
    with pytest.raises(BrokenTar, match=rf"{pair.key}: an image .*build its shard again"):
        contact_sheet([Block(pair.key, [Cell(image=image)], 1, "")], "title", "subtitle")

    receipt = made_pairs.receipts["eq-youcook2"][0]
    fields = [("image0.jpg", pair.images["image0"]), ("image1.jpg", image)]
    fields += [("caption0.txt", b"one"), ("caption1.txt", b"two"), ("json", pair.json.model_dump_json().encode())]
    stored = made_pairs.root / f"eq-youcook2/{receipt.split}/00000.tar"
    stored.unlink()
    with TarWriter(stored) as tar:
        tar.add_sample(pair.key, fields)
    (tmp_path / "export").mkdir()
    with pytest.raises(BrokenTar, match=rf"{pair.key}: an image"):
        export_eqben(made_pairs.store, ["eq-youcook2"], tmp_path / "export")
    assert ghostscript == []


def jpeg(picture: Image.Image, **settings: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "JPEG", **settings)
    return stream.getvalue()


def many_scans(count: int) -> bytes:
    """A progressive JPEG with ``count`` scans and another image behind its end, as phones append videos."""
    whole = jpeg(Image.new("L", (64, 64), 128), progressive=True)
    last = whole[whole.rindex(b"\xff\xc4", 0, whole.rindex(b"\xff\xda")) : -2]
    behind = b"\xff\xda" * (MOST_SCANS + 1)
    return whole[:-2] + last * (count - whole.count(b"\xff\xda")) + b"\xff\xd9" + behind


def expanding(chunk: bytes, start: bytes) -> bytes:
    """A PNG with a chunk of 64 kB that expands to 64 MB."""
    stream = io.BytesIO()
    Image.new("L", (4, 4)).save(stream, "PNG")
    whole, body = stream.getvalue(), chunk + start + zlib.compress(bytes(64 << 20), 9)
    made = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return whole[:33] + made + whole[33:]  # behind the header


HOSTILE = {
    "EPS": EPS,
    "bomb": bomb(),
    "truncated": truncated(),
    "empty": b"",
    "scans": many_scans(MOST_SCANS + 1),
    "zTXt": expanding(b"zTXt", b"Comment\0\0"),
    "iTXt": expanding(b"iTXt", b"Comment\0\1\0\0\0"),
    "iCCP": expanding(b"iCCP", b"profile\0\0"),
}
hostile = pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())


@hostile
def test_no_library_makes_the_reader_lenient(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """As face_recognition does when it is imported."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(UnreadableImage):
        open_image(content)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@hostile
def test_hostile_images_are_refused_wherever_they_are_read(
    tmp_path: Path, ghostscript: list[Any], content: bytes
) -> None:
    with pytest.raises(UnreadableImage):
        open_image(content)
    with pytest.raises(pictures.Unusable):
        pictures.decode("there", content)
    (tmp_path / "a.png").write_bytes(content)
    found = ImageFiles(tmp_path, upright=True).read(["a.png"])["a.png"]
    assert isinstance(found, UnusableImage) and found.reason == "broken-media"
    # Annotators are shown such a file as it is: browsers have limits of their own.
    assert in_one_form([content, jpeg(Image.new("RGB", (8, 8)))])[0] == content
    assert ghostscript == []


@pytest.mark.parametrize("name", ["EPS", "truncated", "empty", "scans"])
def test_blind_probes_measure_no_hostile_image(ghostscript: list[Any], name: str) -> None:
    assert _measured(HOSTILE[name]) is None and ghostscript == []


def test_what_lies_behind_a_photo_does_not_count_as_its_scans() -> None:
    assert open_image(many_scans(MOST_SCANS)).size == (64, 64)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_its_first_frame(kind: str) -> None:
    stream = io.BytesIO()
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    first.save(stream, kind, save_all=True, append_images=[second], **({"lossless": True} if kind == "WEBP" else {}))
    assert open_image(stream.getvalue(), (kind,)).convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_an_image_is_upright_where_that_is_asked_for() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    content = jpeg(Image.new("RGB", (8, 4)), exif=exif)
    assert open_image(content).size == (8, 4) and open_image(content, upright=True).size == (4, 8)


#: Where images of others may be opened; PyAV reads video.
OPENERS = {"shards/media/decode.py": {"Image.open"}}
FORBIDDEN = ("Image.open", "cv2.imread", "cv2.imdecode", "cv2.imreadmulti", "cv2.VideoCapture", "io.read_image")
FORBIDDEN_MODULES = ("imageio", "torchvision.io", "matplotlib.image", "matplotlib.pyplot.imread", "skimage.io")


def drawing(mode: str) -> Image.Image:
    """A black disc on a transparent ground, below which everything is black; its rim is half transparent."""
    seen = Image.new("LA", (40, 40), (0, 0))
    seen.putpixel((20, 20), (0, 255))
    seen.putpixel((21, 20), (0, 128))
    return seen.convert("RGBA").quantize(4) if mode == "P" else seen.convert(mode)


@pytest.mark.parametrize(
    ("mode", "kind"), [("RGBA", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("RGBA", "WEBP"), ("P", "GIF")]
)
def test_what_is_transparent_lies_on_white(mode: str, kind: str) -> None:
    stream = io.BytesIO()
    drawing(mode).convert(mode if kind == "PNG" else "RGBA").save(stream, kind, lossless=True)
    opened = open_image(stream.getvalue(), (kind,))
    assert (opened.mode, opened.format, opened.size) == ("RGB", kind, (40, 40))
    assert opened.getpixel((2, 2)) == (255, 255, 255) and opened.getpixel((20, 20)) == (0, 0, 0)
    assert kind == "GIF" or opened.getpixel((21, 20)) == (127, 127, 127)
    if kind != "GIF":
        assert decode(stream.getvalue(), "k").getpixel((2, 2)) == (255, 255, 255)
        assert pictures.decode("here", stream.getvalue()).getpixel((2, 2)) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["L", "1", "RGB"])
def test_a_colour_that_stands_for_transparent_is_white(mode: str) -> None:
    stream, black = io.BytesIO(), (0, 0, 0) if mode == "RGB" else 0
    Image.new(mode, (4, 4), black).save(stream, "PNG", transparency=black)
    assert open_image(stream.getvalue()).getcolors() == [(16, (255, 255, 255))]


def test_an_alpha_that_hides_nothing_changes_no_pixel() -> None:
    stream, noise = io.BytesIO(), Image.effect_noise((30, 20), 90).convert("RGB")
    noise.convert("RGBA").save(stream, "PNG")
    assert open_image(stream.getvalue()).tobytes() == noise.tobytes()


def test_pillow_does_not_warn_of_what_is_refused() -> None:
    header = struct.pack(">IIBBBBB", 9_000, 10_001, 8, 2, 0, 0, 0)  # more pixels than Pillow warns of
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    program = "import sys; from twinset.shards.media.decode import *\ntry: open_image(sys.stdin.buffer.read())\n"
    child = subprocess.run(
        [sys.executable, "-c", f"{program}except UnreadableImage as error: print(error)"],
        input=b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT",
        capture_output=True,
        check=True,
    )
    assert (child.stdout.decode().strip(), child.stderr) == ("9000 x 10001 pixels, at most 64,000,000 are read", b"")


def test_no_other_place_in_the_product_opens_images() -> None:
    opened: dict[str, set[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Attribute):
                names = [ast.unparse(node)]
            elif isinstance(node, ast.Import | ast.ImportFrom):
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                names = [f"{module}{one.name}" for one in node.names]
            for name in names:
                if name.endswith(FORBIDDEN) or name.startswith(FORBIDDEN_MODULES):
                    opened.setdefault(str(path.relative_to(PACKAGE)), set()).add(name)
    assert opened == OPENERS


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
