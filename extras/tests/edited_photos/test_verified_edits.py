"""Edits that are tried again, proved by pixels and by questions, and exported with those that failed."""

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from PIL import Image

import twinset
from tests.models.images_server.test_images_server import png, reply, settings
from tests.models.language_models.chat_server import Body, ChatServer, Reply, completion, serving
from tests.stages.test_pipelines_build import build, kill_midway, tars
from twinset.contracts.errors import WrongUse
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

PHOTOS = 8
COLOURS = {"red": (200, 40, 30), "green": (20, 160, 40), "blue": (30, 50, 200)}
BOX = (slice(60, 124), slice(40, 104))
UNREADABLE = 7  # lightness of a corner by which the server knows a photo


def picture(content: str) -> Any:
    return np.array(Image.open(io.BytesIO(base64.b64decode(content.rpartition(",")[2]))))


def answering(body: Body, number: int) -> Reply:
    """An editor that moves the picture with every second seed, and paints photo 2 blue; and a model that sees colours,
    but gives no answer to photo 3."""
    if "messages" not in body:
        photo, mask = picture(body["image"]), picture(body["mask"])[..., 3] == 0
        colour = COLOURS["blue" if photo[4, 4, 0] // 20 == 2 else "green"]
        edited = np.where(mask[..., None], np.array(colour, np.uint8), photo)
        return reply(png(np.roll(edited, 3, axis=1) if int(body["seed"]) % 2 else edited))
    shown, asked = body["messages"][0]["content"]
    pixels = picture(shown["image_url"]["url"])
    if pixels[4, 4, 0] // 20 == 3:
        return completion("perhaps")
    mean = pixels[BOX].reshape(-1, 3).mean(0)
    seen = min(COLOURS, key=lambda one: float(np.abs(mean - COLOURS[one]).sum()))
    named = re.findall("|".join(COLOURS), asked["text"])
    return completion("yes" if not named or named == [seen] else "no")


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with serving(answering) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: ChatServer) -> Path:
    """Photos of red cars, and a recipe of their edits."""
    (tmp_path / "photos").mkdir()
    for number in range(PHOTOS):
        spots = np.random.default_rng(number).integers(60, 200, (32, 40, 3), dtype=np.uint8)
        pixels = np.array(Image.fromarray(spots).resize((320, 256), Image.Resampling.BICUBIC))
        pixels[BOX], pixels[:16, :16] = COLOURS["red"], number * 20 + 10
        Image.fromarray(pixels).save(tmp_path / f"photos/{number}.png")
    images = [{"id": number, "file_name": f"{number}.png"} for number in range(PHOTOS)]
    found = [{"image_id": number, "category_id": 1, "bbox": [40, 60, 64, 64]} for number in range(PHOTOS)]
    annotations = {"images": images, "categories": [{"id": 1, "name": "car"}], "annotations": found}
    (tmp_path / "instances.json").write_text(json.dumps(annotations))
    row = {"caption": "A red car on a road.", "negative_caption": "A green car on a road."}
    rows = [{"image": f"{n}.png", **row, "type": "replace", "subtype": "att"} for n in range(PHOTOS)]
    (tmp_path / "negatives.json").write_text(json.dumps(rows))
    edits = {"kind": "edited-photos", "negatives": "negatives", "photos": "photos", "instances": "instances.json"}
    model = {"kind": "openai", "model": "m", "base_url": server.url, "answers": "answers", "longest_wait": 0.01}
    verified = {"kind": "image-verification", "images": "edits", "engine": model, "threshold": 1.0}
    stages: dict[str, Any] = {
        "negatives": {"source": {"kind": "replayed-negatives", "captions": "negatives.json", "licence": "CC0-1.0"}},
        "edits": {"source": {**edits, "engine": settings(server.url, Path("answers")), "tries": 3}, "shard_size": 2},
        "verified": {"source": verified, "shard_size": 2},
    }
    twins = {"kind": "screened-pairs", "pairs": "edits", "decisions": "verified"}
    recipe = {"name": "edited", "stages": stages, "subsets": {"twins": {"source": twins, "shard_size": 2}}}
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe, default=str))
    return tmp_path


@pytest.mark.slow
def test_edits_are_proved_by_pixels_and_by_questions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    built = twinset.build("recipe.yaml", "out")["subsets"]["twins"]
    assert built["planned"] == built["kept"] + sum(built["rejected"].values()) and built["rejected"] == {"refuted": 2}
    status = twinset.status("out")["stages"]
    assert status["verified"]["rejected"] == {"no-answer": 1, "wrong-attribute": 1}
    edits = status["edits"]
    assert edits["planned"] == PHOTOS == edits["kept"] + sum(edits["rejected"].values())
    card = (folder / "out/twins/README.md").read_text()
    for words in (
        f"**A model, no person**, judged by questions {edits['kept']} of them and kept {built['kept']}; 2 were dropped",
        f"| wrong-attribute | 1 | {100 / edits['kept']:.1f}% |",
        f"| no-answer | 1 | {100 / edits['kept']:.1f}% |",
        "first wrong answer to a question about how something looks",
        "refuted",
    ):
        assert words in card, words
    detail = pq.read_table(folder / "out/twins/_meta/rejections.parquet")["detail"].to_pylist()
    assert any("of caption 1: Is the car green? yes 0.00 and 0.00 for image 0 and 1" in one for one in detail)
    assert [one["problems"] for part in twinset.verify("out").values() for one in part.values()] == [[]] * 4

    # Every pair that was edited more than once has the edit that failed before.
    failed = {
        pair.key: (pair, about)
        for pair in read_samples(Store("out"), "twins")
        if (about := pair.json.provenance["failed"])["reason"]  # type: ignore[index,call-overload]
    }
    assert failed and {about["reason"] for _, about in failed.values()} == {"moved"}
    assert export(Store("out"), ["twins"], "edit-preferences", folder / "exported") == len(failed)
    rows = load_dataset("parquet", data_files=str(folder / "exported/data/*.parquet"), split="train")
    for row, (pair, _) in zip(rows, failed.values(), strict=True):
        assert (row["prompt"], row["reason"]) == ("make the car green", "moved")
        chosen, rejected = (np.asarray(row[name]).astype(int) for name in ("chosen", "rejected"))
        assert np.abs(chosen - np.asarray(Image.open(io.BytesIO(pair.images["image1"])))).max() == 0
        assert np.abs(np.roll(chosen, 3, axis=1) - rejected).mean() < 6 < np.abs(chosen - rejected).mean()
    with pytest.raises(WrongUse, match="no sample of twins is under MIT alone"):
        export(Store("out"), ["twins"], "edit-preferences", folder / "none", ["MIT"])
    with pytest.raises(WrongUse, match="comes from edited-photos and says nothing of failed edits"):
        twinset.build("recipe.yaml", "plain", settings=["stages.edits.source.tries=1"])
        export(Store("plain"), ["twins"], "edit-preferences", folder / "none")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["_stages/edits", "_stages/verified", "twins"])
def test_a_build_that_is_killed_and_resumed_equals_one_that_was_not(folder: Path, part: str) -> None:
    whole = build(folder, "whole")
    assert whole.wait() == 0, whole.stdout and whole.stdout.read()
    kill_midway(folder, "killed", part)
    again = build(folder, "killed")
    assert again.wait() == 0, again.stdout and again.stdout.read()
    for one in ("_stages/edits", "twins"):
        made = tars(folder, "whole", one)
        assert len(made) > 1 and tars(folder, "killed", one) == made
    tables = [folder / out / "_stages/verified/_meta/index.parquet" for out in ("whole", "killed")]
    assert tables[0].read_bytes() == tables[1].read_bytes()
