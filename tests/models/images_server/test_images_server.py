"""Pictures from a server of OpenAI's images API, against one on loopback: asked, kept, paid once, looked at.

Patience, keys, ceilings and kills are those of all models on servers: `tests.models.language_models`.
"""

import base64
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.models.language_models.chat_server import Body, ChatServer, Reply, failure, serving
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Rejected
from twinset.models.image_engine import Drawn, Request
from twinset.models.images_server.settings import ServedImages
from twinset.models.language_models.answers import Answers


def png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def painted(words: str, size: tuple[int, int] = (48, 32)) -> Any:
    """A picture that its words alone decide."""
    seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)


def reply(content: bytes) -> Reply:
    """As the API's published schema has it."""
    answer = Reply(json.dumps({"created": 0, "data": [{"b64_json": base64.b64encode(content).decode()}]}).encode())
    answer.answers = True
    return answer


def drawing(body: Body, number: int) -> Reply:
    return reply(png(painted(f"{body['prompt']} {body.get('seed')}")))


def drawn(server: ChatServer, folder: Path, requests: list[Request], **more: Any) -> list[Any]:
    given = {"kind": "images-server", "model": "m", "base_url": server.url, "answers": folder, "licence": "CC0-1.0"}
    patience = {"timeout": 300.0, "longest_wait": 0.01, "concurrency": 4}
    settings = ServedImages.model_validate({**given, **patience, "size": "48x32", **more})
    return list(settings.open().draw(requests))


def requests(count: int) -> list[Request]:
    return [Request(f"k{n}", f"caption {n}", f"prompt {n}", 2**40 + n) for n in range(count)]


def test_pictures_come_in_order_and_are_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.models.language_models.server_faults.LONGEST_ANSWER", 100)  # of words, not pictures
    with serving(drawing) as server:
        first = drawn(server, tmp_path, requests(9), options={"steps": 4})
        body = next(body for body in server.bodies if body["prompt"] == "prompt 3")
        assert len(server.bodies) == 9 and body == {
            "model": "m", "prompt": "prompt 3", "n": 1, "size": "48x32", "response_format": "b64_json", "steps": 4,
            "seed": 3, "path": "/v1/images/generations",
        }  # fmt: skip
    moved = Path(shutil.move(tmp_path, tmp_path.with_name("elsewhere")))
    again = drawn(server, moved, requests(9)[::-1], options={"steps": 4})[::-1]
    for picture, kept, asked in zip(first, again, requests(9), strict=True):
        assert isinstance(picture, Drawn) and picture.key == asked.key and picture.provenance == kept.provenance
        expected = painted(f"{asked.prompt} {asked.seed % 2**31}")
        assert (picture.pixels == kept.pixels).all() and (picture.pixels == expected).all()


def test_pictures_that_are_not_whole_are_asked_for_again_others_are_not_and_all_are_counted(tmp_path: Path) -> None:
    content = png(painted("x"))
    faults = [base64.b64encode(content).decode()[:-3], base64.b64encode(content[: len(content) // 2]).decode(), None]
    broken = [Reply(json.dumps({"data": [{"b64_json": fault, "url": "http://x"}]}).encode()) for fault in faults]
    with serving(lambda body, number: broken[number] if number < 2 else drawing(body, number)) as server:
        assert [picture.key for picture in drawn(server, tmp_path, requests(4))] == ["k0", "k1", "k2", "k3"]
        assert (len(server.bodies), Answers(tmp_path).spent("m").answers) == (6, 6)
        for fault, times in ((broken[2], 1), (broken[0], 3)):
            server.reply = lambda body, number, fault=fault: fault
            with pytest.raises(BuildFailed, match=f"tried {times} times, last: no picture as b64_json"):
                drawn(server, tmp_path, requests(9), price=1, max_cost=10, retries=100, concurrency=1)
        assert len(server.bodies) == 10 == Answers(tmp_path).spent("m").answers


def test_pictures_of_another_size_black_ones_and_refusals_are_reasons(tmp_path: Path) -> None:
    special = {"1": reply(png(painted("x", (32, 32)))), "2": reply(png(np.zeros((32, 48, 3)))), "3": failure(400, "no")}

    def odd(body: Body, number: int) -> Reply:
        return special.get(body["prompt"].split()[1]) or drawing(body, number)

    with serving(odd) as server:
        first, *rejected, last = drawn(server, tmp_path, requests(5), concurrency=1)
        assert isinstance(first, Drawn) and isinstance(last, Drawn)
        assert rejected[0] == Rejected("k1", "other-size", "32x32 instead of 48x32")
        assert rejected[1] == Rejected("k2", "blank") and rejected[2].reason == "refused"
        assert {result.reason for result in rejected} <= {*ServedImages.reasons}
