"""Models on a server on loopback: where it is, faults, kills, and nothing paid twice."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.evaluation.scorers.shown_images import (
    BLUE,
    CAPTIONS,
    RED,
    asked,
    chooser,
    likely,
    looks,
    matching,
    seen,
    shades,
)
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.run import run
from twinset.evaluation.scorers.openai_server import ADDRESS, KEY, SETTINGS

CHECKOUT = Path(__file__).resolve().parents[3]


def test_faults_that_pass_are_waited_out(environment: Callable[..., None]) -> None:
    faults = [
        failure(429, "slow down", retry_after="0"),
        failure(500, "oops"),
        Reply(completion("(2)").content, cut=40),
        Reply(b'{"choices": ['),
    ]

    def reply(body: Body, number: int) -> Reply:
        return faults[number] if number < len(faults) else looks(body, number)

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        assert chooser().choose(asked([RED, BLUE])) == [(0,), (1,)]
        assert len(server.bodies) == 6 and set(server.answered.values()) == {1}


KILLED = """
from tests.evaluation.scorers.shown_images import asked, chooser, shades
from tests.waiting import wait_until
chooser().choose(asked(shades()))
"""


@pytest.mark.slow  # answers on disk and kills: tests/models/language_models/test_answers.py
def test_what_was_answered_before_a_kill_is_not_paid_for_again(environment: Callable[..., None]) -> None:
    reached, killed = threading.Event(), threading.Event()

    def reply(body: Body, number: int) -> Reply:
        if number == 4:
            reached.set()
            killed.wait()
            return failure(500, "nobody waits for this")
        return completion("(1)")

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=CHECKOUT)
        wait_until(reached.is_set, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed.set()
        assert chooser().choose(asked(shades())) == [(0,)] * 6
        assert len(server.answered) == 6 and set(server.answered.values()) == {1}


def test_of_a_server_that_dies_what_was_answered_is_kept_and_the_wait_is_shown_at_once(
    environment: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead = True

    def reply(body: Body, number: int) -> Reply:
        return failure(503, "gone") if dead and number >= 3 else completion("(1)")

    def score() -> Path:
        return run([SmallBenchmark(lambda: [matching("both")])], ["openai-chooser:m"], tmp_path, tmp_path)[0].path

    with serving(reply) as server, caplog.at_level(logging.WARNING):
        environment(server.url, concurrency=1, retries=1)
        with pytest.raises(BuildFailed, match=r"tried 2 times, last: 503: gone.*what was answered stays"):
            score()
        assert "503: gone; asked again in 0.01 s, at most 1 times more" in caplog.text
        assert not [*tmp_path.glob("scores/*/*")]
        dead, asked_before = False, len(server.bodies)
        assert pq.read_table(score()).column("ipos2t").to_pylist() == [0.5]
        assert len(server.bodies) == asked_before + 5, "of 8 questions 3 were answered"


def test_the_environment_leads_to_the_server(environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(looks) as server:
        environment(server.url, max_cost=1e-9, price_in=1)
        monkeypatch.setenv(KEY, "sesame")
        with pytest.raises(BuildFailed, match="max_cost is 1e-09"):
            chooser().choose(asked([RED]))
        monkeypatch.setenv(SETTINGS, json.dumps({"answers": json.loads(os.environ[SETTINGS])["answers"]}))
        chooser().choose(asked([RED]))
        assert server.keys == ["Bearer sesame"]


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        (ADDRESS, "", f"--model openai-chooser:m: there is no environment variable {ADDRESS}; set it to"),
        (ADDRESS, "here", "base_url: .*write the address of a server"),
        (SETTINGS, "{", f"{SETTINGS} is not JSON"),
        (SETTINGS, "[1]", f"{SETTINGS} is not a JSON object"),
        (SETTINGS, '{"prize_in": 1}', "prize_in: Extra inputs"),
        (SETTINGS, '{"max_cost": 1}', "max_cost needs price_in"),
        (SETTINGS, '{"model": "n"}', f"{SETTINGS} has model, which --model"),
        (SETTINGS, '{"temperature": 1}', "temperature: Input should be 0"),
    ],
)
def test_a_wrong_environment_is_said(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, problem: str
) -> None:
    environment("http://127.0.0.1:1/v1")
    monkeypatch.setenv(variable, value)
    with pytest.raises(WrongUse, match=problem):
        chooser()


def test_servers_are_models_of_a_run(environment: Callable[..., None], tmp_path: Path) -> None:
    examples = [matching("both"), matching("swapped", CAPTIONS[::-1])]

    def reply(body: Body, number: int) -> Reply:
        if len(body["messages"][0]["content"]) == 3:
            return completion("(1)")  # of two images it takes the first
        colour, text = seen(body)
        if "Does" in text:
            return likely(Yes=0.6, No=0.2) if ("red" in text) == (colour[0] == 255) else likely(yes=0.1, no=0.9)
        return looks(body, number) if colour[0] == 255 else completion("(1)")  # of blue it says what comes first

    models = ["openai-chooser:m", "openai-yesno:m", "openai-vqascore:m"]
    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):
            found = run([SmallBenchmark(lambda: examples)], models, tmp_path / "out", tmp_path / "cache")
            assert len(server.bodies) == 4 + 4 + 2 * 4, "each order of each image and each caption, each pair, once"
    names = [["ipos2t", "ineg2t", "tpos2i", "tneg2i"], *[["s00", "s01", "s10", "s11"]] * 2]
    tables = [pq.read_table(one.path).select(some).to_pylist() for one, some in zip(found, names, strict=True)]
    likelihood = {"s00": 0.75, "s01": pytest.approx(0.1), "s10": pytest.approx(0.1), "s11": 0.75}
    turned = {"s00": pytest.approx(0.1), "s01": 0.75, "s10": 0.75, "s11": pytest.approx(0.1)}
    tied = {"ineg2t": 0.5, "tpos2i": 0.5, "tneg2i": 0.5}
    assert tables[0] == [{"ipos2t": 1, **tied}, {"ipos2t": 0, **tied}]
    assert tables[1:] == [[likelihood, turned]] * 2
