"""Kill -9 of a build between two answers of a language model: what was answered is not asked for again."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import contents
from tests.models.language_models.chat_server import Body, Reply, asked, completion, serving
from tests.waiting import wait_until

CAPTIONS = 12
RECIPE = """
name: paid
subsets:
  negatives:
    source:
      kind: negative-captions
      captions: captions.jsonl
      engine: {{kind: openai, model: m, base_url: "{url}", answers: answers, concurrency: {concurrency}}}
    shard_size: 21
"""


def replies(body: Body, number: int) -> Reply:
    return completion(json.dumps({"negative_caption": f"{asked(body)} and a zebra"}))


def written(folder: Path, url: str, concurrency: int) -> Path:
    folder.mkdir()
    lines = [{"caption_id": str(n), "image_id": str(n), "caption": f"a dog and {n} cats"} for n in range(CAPTIONS)]
    (folder / "captions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "recipe.yaml").write_text(RECIPE.format(url=url, concurrency=concurrency))
    return folder / "recipe.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_killed_between_two_answers(start_twinset: Any, twinset: Any, tmp_path: Path, concurrency: int) -> None:
    gone = threading.Event()

    def until_killed(body: Body, number: int) -> Reply:
        """Answers 40 requests, in the second shard; those after them wait for a client that will be dead."""
        if number >= 40:
            gone.wait()
        return replies(body, number)

    with serving(until_killed) as server:
        recipe = written(tmp_path / "killed", server.url, concurrency)
        process = start_twinset("build", recipe, "--out", tmp_path / "out", "--workers", "2")
        wait_until(lambda: len(server.bodies) == 40 + concurrency)
        process.kill()
        assert process.wait() == -9
        paid = {json.dumps(body, sort_keys=True) for body in server.bodies[:40]}
        server.reply = replies
        gone.set()
        server.bodies.clear()
        result = twinset("build", recipe, "--out", tmp_path / "out", "--workers", "2")
        assert result.returncode == 0, result.stderr
        again = [json.dumps(body, sort_keys=True) for body in server.bodies]
        assert not paid & {*again} and len(again) == len({*again}) == 7 * CAPTIONS - 40
        server.bodies.clear()
        whole = written(tmp_path / "whole", server.url, concurrency)
        result = twinset("build", whole, "--out", tmp_path / "reference", "--workers", "2")
        assert result.returncode == 0, result.stderr
        assert len(server.bodies) == 7 * CAPTIONS
    assert contents(tmp_path / "out") == contents(tmp_path / "reference")
