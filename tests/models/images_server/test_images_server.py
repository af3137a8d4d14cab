"""Pictures from a server of OpenAI's images API, against one on loopback: asked, kept, paid once, looked at."""

import base64
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

import twinset
from tests.models.language_models.chat_server import Body, ChatServer, Reply, failure, serving
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.recipe import parse_recipe
from twinset.models.image_engine import Drawn, Request
from twinset.models.images_server.engine import ServedPainter
from twinset.models.images_server.settings import ServedImages
from twinset.models.language_models.answers import Answers

SIZE = (48, 32)
Answer = Callable[[Body, int], Reply]


def png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def painted(words: str, size: tuple[int, int] = SIZE) -> Any:
    """A picture that its words alone decide."""
    seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)


def reply(content: bytes) -> Reply:
    """As the API's published schema has it."""
    found = Reply(json.dumps({"created": 0, "data": [{"b64_json": base64.b64encode(content).decode()}]}).encode())
    found.answers = True
    return found


def drawing(body: Body, number: int) -> Reply:
    return reply(png(painted(f"{body['prompt']} {body.get('seed')}")))


def settings(url: str, folder: Path, **more: Any) -> dict[str, Any]:
    given = {"kind": "images-server", "model": "m", "base_url": url, "answers": folder, "licence": "CC0-1.0"}
    return {**given, "timeout": 300.0, "longest_wait": 0.01, "concurrency": 4, **more}


def painter(server: ChatServer, folder: Path, **more: Any) -> ServedPainter:
    painting = ServedImages.model_validate(settings(server.url, folder, size="48x32", **more)).open()
    assert isinstance(painting, ServedPainter)
    return painting


def requests(count: int, first: int = 0) -> list[Request]:
    return [Request(f"k{n}", f"caption {n}", f"prompt {n}", 2**40 + n) for n in range(first, first + count)]


def shown(found: Any) -> list[str]:
    """Keys of what was drawn, keys and reasons of what was not."""
    return [one.key if isinstance(one, Drawn) else f"{one.key} {one.reason}" for one in found]


def test_pictures_come_in_order_are_asked_for_once_and_again_without_the_server(tmp_path: Path) -> None:
    with serving(drawing) as server:
        first = list(painter(server, tmp_path, options={"steps": 4}).draw(requests(9)))
        assert all(isinstance(one, Drawn) for one in first) and len(server.bodies) == 9
        body = next(one for one in server.bodies if one["prompt"] == "prompt 3")
        assert body == {
            "model": "m", "prompt": "prompt 3", "n": 1, "size": "48x32", "response_format": "b64_json", "steps": 4,
            "seed": 3, "path": "/v1/images/generations",
        }  # fmt: skip
    moved = shutil.move(tmp_path, tmp_path.with_name("elsewhere"))
    again = list(painter(server, Path(moved), options={"steps": 4}).draw(requests(9)[::-1]))[::-1]
    for one, same, asked in zip(first, again, requests(9), strict=True):
        assert isinstance(one, Drawn) and isinstance(same, Drawn) and one.provenance == same.provenance
        assert (one.pixels == same.pixels).all() and (
            one.pixels == painted(f"{asked.prompt} {asked.seed % 2**31}")
        ).all()
    assert len({*shown(again)}) == 9


def test_what_openais_own_models_do_not_take_is_left_out(tmp_path: Path) -> None:
    with serving(drawing) as server:
        (one,) = painter(server, tmp_path, plain=True).draw(requests(1))
    assert server.bodies == [
        {"model": "m", "prompt": "prompt 0", "n": 1, "size": "48x32", "path": "/v1/images/generations"}
    ]
    assert isinstance(one, Drawn) and one.provenance["seed"] is None
    with pytest.raises(ValidationError, match="options: seed is said by the engine itself"):
        ServedImages.model_validate(settings(server.url, tmp_path, options={"seed": 1}))
    with pytest.raises(ValidationError, match="max_cost needs price"):
        ServedImages.model_validate(settings(server.url, tmp_path, max_cost=1))


@pytest.mark.parametrize("fault", ["429", "500", "html", "truncated", "half a picture", "a place", "cut", "slow"])
def test_faults_are_tried_again_and_nothing_is_lost(tmp_path: Path, fault: str) -> None:
    def faulty(body: Body, number: int) -> Reply:
        content = png(painted("x"))
        if number >= 2:
            return drawing(body, number)
        if fault == "slow":
            threading.Event().wait()
        encoded = base64.b64encode(content).decode()
        half = base64.b64encode(content[: len(content) // 2]).decode()
        return {
            "429": failure(429, "slow down", retry_after="0"),
            "500": failure(500, "out of memory"),
            "html": Reply(b"<html>busy</html>"),
            "truncated": Reply(json.dumps({"data": [{"b64_json": encoded[:-3]}]}).encode()),
            "half a picture": Reply(json.dumps({"data": [{"b64_json": half}]}).encode()),
            "a place": Reply(b'{"data": [{"url": "http://127.0.0.1:1/x.png", "b64_json": null}]}'),
            "cut": Reply(content, cut=10),
        }[fault]

    with serving(faulty) as server:
        found = list(painter(server, tmp_path, timeout=5.0 if fault == "slow" else 300.0).draw(requests(6)))
        assert shown(found) == [f"k{n}" for n in range(6)]
        assert (len(server.bodies), Answers(tmp_path).spent("m").answers) == (8, 6)
        assert len(list(tmp_path.rglob("*.bin"))) == 6


def test_pictures_of_another_size_black_ones_and_refusals_are_reasons(tmp_path: Path) -> None:
    def odd(body: Body, number: int) -> Reply:
        kind = int(body["prompt"].split()[1])
        if kind == 1:
            return reply(png(painted("x", (32, 32))))
        if kind == 2:
            return reply(png(np.zeros((32, 48, 3))))
        return failure(400, "not in good taste") if kind == 3 else drawing(body, number)

    with serving(odd) as server:
        found = list(painter(server, tmp_path, concurrency=1).draw(requests(5)))
        assert shown(found) == ["k0", "k1 other-size", "k2 blank", "k3 refused", "k4"]
        assert isinstance(found[1], Rejected) and found[1].detail == "32x32 instead of 48x32"
        assert isinstance(found[3], Rejected) and "not in good taste" in found[3].detail
        assert {one.reason for one in found if isinstance(one, Rejected)} <= {*ServedImages.reasons}
        list(painter(server, tmp_path).draw(requests(5)))
        assert len(server.bodies) == 6  # what was paid for stays; a refusal costs nothing, and is asked again


def test_the_ceiling_on_cost_holds_for_requests_side_by_side(tmp_path: Path) -> None:
    with serving(drawing) as server:
        with pytest.raises(BuildFailed, match=r"max_cost is 0\.1; .* took 2 answers.* next one could cost 0\.0400"):
            list(painter(server, tmp_path, price=0.04, max_cost=0.1).draw(requests(9)))
        assert len(server.bodies) == 2
        assert len(list(painter(server, tmp_path, price=0.04, max_cost=1).draw(requests(9)))) == 9
        assert len(server.bodies) == 9 and set(server.answered.values()) == {1}


def test_a_picture_that_was_changed_on_disk_is_not_taken(tmp_path: Path) -> None:
    with serving(drawing) as server:
        list(painter(server, tmp_path).draw(requests(1)))
        (file,) = tmp_path.rglob("*.bin")
        file.write_bytes(png(painted("other")))
        with pytest.raises(BuildFailed, match=rf"{file.name}: is not the picture that was paid for; restore it"):
            list(painter(server, tmp_path).draw(requests(1)))
        assert len(server.bodies) == 1


KILLED = """
import sys
from twinset.models.images_server.settings import ServedImages
from twinset.models.image_engine import Request
given = dict(kind="images-server", model="m", base_url=sys.argv[1], answers=sys.argv[2], licence="CC0-1.0")
asked = [Request(f"k{n}", f"caption {n}", f"prompt {n}", 2**40 + n) for n in range(12)]
list(ServedImages.model_validate({**given, "size": "48x32", "concurrency": 1}).open().draw(asked))
"""


def test_a_killed_build_goes_on_where_it_was(tmp_path: Path) -> None:
    process: list[subprocess.Popen[bytes]] = []

    def deadly(body: Body, number: int) -> Reply:
        if number == 5:
            os.kill(process[0].pid, signal.SIGKILL)
            process[0].wait()
        return drawing(body, number)

    with serving(deadly) as server:
        process.append(subprocess.Popen([sys.executable, "-c", KILLED, server.url, str(tmp_path)]))
        assert process[0].wait() == -signal.SIGKILL
        assert Answers(tmp_path).spent("m").answers == 5
        found = list(painter(server, tmp_path).draw(requests(12)))
        assert shown(found) == [f"k{n}" for n in range(12)]
        # The five that were kept are not asked again; the sixth never arrived.
        assert len(server.bodies) == 6 + 7


def test_a_dataset_is_built_with_reasons_and_built_again_from_the_answers_alone(tmp_path: Path) -> None:
    (tmp_path / "negatives.csv").write_text(
        "image_filename,caption,negative_caption,type,subtype\n"
        + "".join(f"{n}.png,a photo of a cat {n},a photo of a dog {n},replace,obj\n" for n in range(4))
    )

    def odd(body: Body, number: int) -> Reply:
        kind = body["prompt"].split()[-1]
        special = {"1": np.zeros((32, 48, 3)), "2": painted("x", (32, 32))}
        return reply(png(special[kind])) if kind in special else drawing(body, number)

    def build(url: str, out: str) -> dict[str, Any]:
        engine = {**settings(url, tmp_path), "size": "48x32", "answers": str(tmp_path / "answers")}
        stages = {
            "negatives": {"source": {"kind": "replayed-negatives", "captions": str(tmp_path / "negatives.csv")}},
            "prompts": {"source": {"kind": "negative-prompts", "negatives": "negatives", "suffix": ""}},
        }
        source = {
            "kind": "negative-images",
            "negatives": "prompts",
            "engine": {**engine, "answers": str(tmp_path / "answers")},
        }
        recipe = parse_recipe({"name": "served", "stages": stages, "subsets": {"drawn": {"source": source}}})
        found: dict[str, Any] = twinset.build(recipe, str(tmp_path / out))["subsets"]["drawn"]
        return found

    with serving(odd) as server:
        counts = build(server.url, "a")
        assert (counts["kept"], counts["rejected"], len(server.bodies)) == (2, {"blank": 1, "other-size": 1}, 4)
    assert build(server.url, "b")["kept"] == 2  # its server is gone
    first, second = (next((tmp_path / out / "drawn").rglob("*.tar")).read_bytes() for out in ("a", "b"))
    assert first == second
    assert "an image model on a server" in (tmp_path / "b/drawn/README.md").read_text()


def test_a_key_is_sent_where_it_is_bound_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sesame")
    with serving(drawing) as server:
        monkeypatch.setenv("TWINSET_KEYS", "example.org=A_KEY")
        source = ServedImages.model_validate(settings(server.url, tmp_path, api_key_variable="A_KEY"))
        with pytest.raises(Exception, match=r"^source\.engine\.api_key_variable: .*A_KEY"):
            source.check_inputs("source.engine", {"media"})
        monkeypatch.setenv("TWINSET_KEYS", f"{server.url.removesuffix('/v1')}=A_KEY")
        list(painter(server, tmp_path, api_key_variable="A_KEY").draw(requests(1)))
        assert server.keys == ["Bearer sesame"]
