"""What a stranger's tar holds in place of an image is refused by the sample's name, and never run."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import EpsImagePlugin, Image

from tests.made_datasets import MadeDataset
from twinset.cards.sheet import Block, Cell, contact_sheet
from twinset.shards.export.eqben import export_eqben
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
        contact_sheet([Block(pair.key, [Cell(image=image)], 1, "")], 1, "title", "subtitle")

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
