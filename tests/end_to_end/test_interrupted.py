"""Kill -9 of a part while others run, and of a build between two answers of a language model, which were paid for."""

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import contents
from tests.models.language_models.chat_server import Body, Reply, asked, completion, serving
from tests.waiting import wait_until

PARTS, SEED = 8, 29
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


@pytest.mark.slow
def test_eight_parts_two_of_them_twice_and_one_killed_make_what_a_build_makes(
    start_twinset: Any, dag_recipe: Path, dag_reference: Path, twinset: Any, tmp_path: Path
) -> None:
    chance, out = random.Random(SEED), tmp_path / "out"
    command = ("build", dag_recipe, "--out", out, "--workers", "1")
    for stage, home in (("scene-graphs", "_stages/scene-graphs"), ("triplets", "triplets"), ("focus-object",) * 2):
        result = twinset(*command, "--stage", stage, "--plan-only")
        assert result.returncode == 0, result.stderr

        def start(part: int, stage: str = stage) -> Any:
            return start_twinset(*command, "--stage", stage, "--part", f"{part}/{PARTS}")

        order = chance.sample(range(PARTS), PARTS)
        killed = start(order[0])
        wait_until(lambda home=home: any(out.glob(f"{home}/_meta/rows/*")) or any(out.glob("_spool/*")), pause=0.002)
        killed.kill()
        killed.wait()
        twice = chance.sample(order, 2)
        for first, second in zip(order[::2], order[1::2], strict=True):
            running = [start(part) for part in (first, second) for _ in range(1 + (part in twice))]
            assert [process.wait() for process in running] == [0] * len(running), (tmp_path / "log").read_text()[-2000:]
    result = twinset(*command, "--finish")
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(dag_reference)
