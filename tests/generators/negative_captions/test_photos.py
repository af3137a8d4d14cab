"""Negative captions by a model that sees the photo: what is sent, what is kept, and photos that are not there."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.generators.negative_captions.test_written import TEXTS, captions, raw, recipe, tables
from tests.models.language_models.chat_server import Body, Reply, completion, serving
from twinset.contracts.errors import BuildFailed, TwinsetError
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.negative_captions.asking import SIDE
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models.language_models.answers import EncodedImage, Message, Request
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

__all__ = ["captions"]
NAMES = [f"image{number}.png" for number in range(len(TEXTS))]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (1000 + number, 100), (60 * number, 20, 90)).save(folder / name)
    return folder


def shown(body: Body) -> tuple[str, str]:
    """The image's data URL and the text of the last turn."""
    image, text = body["messages"][-1]["content"]
    assert (image["type"], text["type"]) == ("image_url", "text")
    return str(image["image_url"]["url"]), str(text["text"])


def seeing(body: Body, number: int) -> Reply:
    """Puts the colour of the photo behind the first word."""
    url, text = shown(body)
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    first, _, others = json.loads(text.splitlines()[-1])["caption"].partition(" ")
    red = picture.getpixel((0, 0))[0]  # type: ignore[index]
    return completion(json.dumps({"negative_caption": f"{first} red{round(red / 60)} {others}"}))


def settings(captions: Path, url: str, photos: Path, **others: Any) -> dict[str, Any]:
    return {**raw(captions, url), "kinds": ["add_att"], "photos": str(photos), **others}


def source(captions: Path, url: str, photos: Path, **others: Any) -> NegativeCaptions:
    return NegativeCaptions.model_validate(settings(captions, url, photos, **others))


def test_the_photo_goes_along_small_and_its_bytes_are_what_an_answer_is_kept_by(captions: Path, photos: Path) -> None:
    with serving(seeing) as server:
        generator = source(captions, server.url, photos).open(Context("negatives"))
        planned = list(generator.plan())
        made = list(generator.make(planned))
        first = made[0]
        assert isinstance(first, TableRows)
        assert first.rows[0]["negative_caption"] == "A red0 black dog sleeps on a red bench."
        url, _ = shown(server.bodies[0])
        assert url.startswith("data:image/jpeg;base64,")
        picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        assert max(picture.size) == SIDE and picture.format == "JPEG"
        assert "You also see the photo" in server.bodies[0]["messages"][0]["content"]
        assert all(isinstance(turn["content"], str) for body in server.bodies for turn in body["messages"][:-1])
        assert len({json.dumps(body) for body in server.bodies}) == 4 == len(planned)
        again = source(captions, server.url, photos).open(Context("negatives"))
        assert list(again.make(planned)) == made and len(server.bodies) == 4
        Image.new("RGB", (50, 50), (240, 20, 90)).save(photos / NAMES[0])
        changed = source(captions, server.url, photos).open(Context("negatives"))
        row = next(iter(changed.make(planned)))
        assert isinstance(row, TableRows) and " red4 " in str(row.rows[0]["negative_caption"])
        assert len(server.bodies) == 5, "one other photo, one more request"


def test_without_photos_the_same_table_is_another_one(captions: Path, photos: Path) -> None:
    blind = NegativeCaptions.model_validate({**raw(captions, "http://127.0.0.1:1/v1"), "kinds": ["add_att"]})
    assert [*blind.open(Context("n")).weights()] == ["prompts"]
    assert [*source(captions, "http://127.0.0.1:1/v1", photos).open(Context("n")).weights()] == ["prompts", "photos"]


def test_a_photo_that_is_absent_or_broken_is_told_and_made_when_it_comes(
    captions: Path, photos: Path, tmp_path: Path
) -> None:
    held = (photos / NAMES[3]).read_bytes()
    (photos / NAMES[3]).unlink()
    (photos / NAMES[2]).write_bytes(b"no image")
    with serving(seeing) as server:
        whole = recipe(settings(captions, server.url, photos), shard_size=1)
        whole = whole.model_copy(update={"max_missing": 1.0})
        build_here(whole, str(tmp_path / "out"), 1)
        stage = FinishedStage(Store(str(tmp_path / "out")), "negatives")
        assert stage.rejected(["reason"])["reason"].to_pylist() == ["broken-media", "missing-media"]
        assert "image3" in stage.rejected(["detail"])["detail"].to_pylist()[1]
        assert len(server.bodies) == 2, "nothing is asked about a photo that nobody sees"
        (photos / NAMES[3]).write_bytes(held)
        Image.new("RGB", (50, 50), (120, 20, 90)).save(photos / NAMES[2])
        build_here(whole, str(tmp_path / "out"), 1)
        assert len(server.bodies) == 4
    found = FinishedStage(Store(str(tmp_path / "out")), "negatives").read(["negative_caption"])
    assert found["negative_caption"].to_pylist()[3] == "A red3 man riding a horse."


def test_a_build_without_any_photo_is_refused_before_anything_is_asked(
    captions: Path, photos: Path, tmp_path: Path
) -> None:
    for name in NAMES:
        (photos / name).unlink()
    with serving(seeing) as server:
        with pytest.raises(TwinsetError, match="such as image0, image1, image2, none is in"):
            build_here(recipe(settings(captions, server.url, photos)), str(tmp_path / "out"), 1)
        assert not server.bodies
        blind = NegativeCaptions.model_validate({**raw(captions, server.url), "kinds": ["add_att"]})
        opened = blind.open(Context("n"))
        assert [opened.media_names(one) for one in opened.plan()] == [()] * 4


def test_a_build_that_failed_goes_on_where_it_was(captions: Path, photos: Path, tmp_path: Path) -> None:
    def dies(body: Body, number: int) -> Reply:
        return seeing(body, number) if number < 2 else Reply(b"{}", 500)

    with serving(dies) as server:
        one = settings(captions, server.url, photos)
        one["engine"] |= {"retries": 0, "concurrency": 1}
        with pytest.raises(BuildFailed, match="tried 1 times"):
            build_here(recipe(one, 2), str(tmp_path / "out"), 1)
        server.reply = seeing
        build_here(recipe(one, 2), str(tmp_path / "out"), 1)
        assert sum(server.answered.values()) == 4 == len(server.answered)
        one["engine"]["answers"] = str(tmp_path / "others")
        build_here(recipe(one, 2), str(tmp_path / "whole"), 1)
    assert tables(tmp_path / "out") == tables(tmp_path / "whole") != {}


@pytest.mark.parametrize("engine", [{"kind": "rules"}, {"kind": "transformers", "model": "./smol"}])
def test_an_engine_that_sees_nothing_is_refused(captions: Path, photos: Path, engine: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"photos: {engine['kind']} sees none; name openai or vlm"):
        source(captions, "http://127.0.0.1:1/v1", photos, engine=engine)


def test_rules_write_no_negated_captions(captions: Path) -> None:
    with pytest.raises(ValueError, match="negate_obj is for language models"):
        NegativeCaptions.model_validate({"kind": "negative-captions", "captions": [captions], "kinds": ["negate_obj"]})


def test_a_model_in_this_process_sees_too(captions: Path, photos: Path, tmp_path: Path) -> None:
    tiny = pytest.importorskip("tests.models.visual_questions.tiny_vision_language")
    engine = {"kind": "vlm", "model": str(tiny.save(tmp_path / "llava", "llava")), "max_tokens": 4}
    one = source(captions, "", photos, engine=engine)
    generator = one.open(Context("negatives"))
    assert (generator.isolation, generator.device(), generator.micro_batch) == ("process", "cpu", 1)
    assert [*generator.weights()] == ["language_model", "prompts", "photos"]
    planned = list(generator.plan())
    rejected = [made for made in generator.make(planned[:2]) if isinstance(made, Rejected)]
    assert [made.reason for made in rejected] == ["off-format"] * 2
    image = EncodedImage.jpeg(Image.open(photos / NAMES[0]), 32, 90)
    turns = (Message("user", "Describe"), Message("user", "this image"))
    seen, unseen = one.engine.open().answers([Request(turns, 0, (image,)), Request(turns, 0)], {})
    assert seen.prompt_tokens > unseen.prompt_tokens + 1 and unseen.completion_tokens == 4
