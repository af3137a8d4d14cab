"""Attack: the chat template of a model's folder, a program in Jinja that never ends or fills the memory.

The engine for servers, against one on loopback that fails in every way that servers do.
"""

import logging
import re
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from tests.models.language_models.asked_server import SCHEMA, echo, model, once, requests
from tests.models.language_models.chat_server import Body, Reply, failure, serving
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.models.language_models.answers import REFUSED, Message, Request
from twinset.models.language_models.chat_templates import bounded, check_template

CHAT = [{"role": "user", "content": "hello"}]
HONEST = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if loop.index0 % 2 == 0 %}{{ m.content | trim }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NESTED = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    "template",
    ["{{ 10 ** 10 ** 10 }}", "{{ 'x' * 999999 }}", "{{ 'x' | center(99999999) }}", "x" * 300_000, "{{ 2 * 3 }}"],
)
def test_a_template_that_makes_things_huge_is_refused_before_it_is_compiled(template: str) -> None:
    for one in (template, {"default": HONEST, "tool": template}):
        with pytest.raises(WrongUse, match=r"model: its chat template .*name a model whose"):
            check_template(one, Path("model"))


@pytest.mark.parametrize("template", [NESTED, "{{ range(99999) | map('string') | map('upper') | list | length }}" * 30])
def test_a_template_that_does_not_end_is_stopped(template: str) -> None:
    check_template(template, Path("model"))
    with (
        pytest.raises(WrongUse, match="model: its chat template takes more than 1,000,000 steps"),
        bounded(Path("model")),
    ):
        render_jinja_template([CHAT], chat_template=template)


DOUBLED = (
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}"
)


@pytest.mark.parametrize("template", [DOUBLED, "{{ '{:999999999}'.format(3) }}", "{{ '%0999999999d' % 3 }}"])
def test_a_template_that_fills_the_memory_is_stopped(template: str) -> None:
    check_template(template, Path("model"))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(WrongUse, match="model: its chat template takes more than 256 MiB"), bounded(Path("model")):
        render_jinja_template([CHAT], chat_template=template)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_an_honest_template_is_rendered() -> None:
    check_template(HONEST, Path("model"))
    with bounded(Path("model")):
        rendered, _ = render_jinja_template([CHAT], chat_template=HONEST, add_generation_prompt=True)
    assert rendered == ["<|user|>hello<|assistant|>"]


def never(body: Body, number: int) -> Reply:
    threading.Event().wait()
    raise AssertionError("waits for ever")


FAULTS: dict[str, Callable[[Body, int], Reply]] = {
    "429": lambda body, number: failure(429, "slow down", retry_after="0"),
    "500": lambda body, number: failure(500, "oops"),
    "503 of a proxy": lambda body, number: Reply(b"<html>busy</html>", 503, {"content-type": "text/html"}),
    "cut": lambda body, number: Reply(echo(body, number).content, cut=40),
    "wrong JSON": lambda body, number: Reply(b'{"choices": ['),
    "another JSON": lambda body, number: Reply(b'{"choices": []}'),
    "no JSON": lambda body, number: Reply(b"hello", 200, {"content-type": "text/plain"}),
    "never answers": never,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_waited_out(tmp_path: Path, fault: str) -> None:
    with serving(once(FAULTS[fault])) as server:
        # Of 5 s, in which whoever answers does so on a busy machine too.
        patience = {"timeout": 5.0} if fault == "never answers" else {}
        found = model(server, tmp_path, **patience).answers(requests(3), SCHEMA)
    assert [one.text for one in found] == ["to caption 0", "to caption 1", "to caption 2"]
    assert len(server.bodies) == 5


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "never answers"])
def test_a_server_that_stays_away_fails_the_build_and_what_was_answered_stays(tmp_path: Path, fault: str) -> None:
    def later(body: Body, number: int) -> Reply:
        return echo(body, number) if number < 2 else FAULTS[fault](body, number)

    with serving(later) as server:
        with pytest.raises(BuildFailed, match=r"\(m\): tried 3 times, last: .*run the same command again"):
            model(server, tmp_path, retries=2, concurrency=1).answers(requests(9), SCHEMA)
        assert len(server.bodies) == 2 + 3, "what is not asked yet stays unasked"
        server.reply = echo
        assert len(model(server, tmp_path).answers(requests(9), SCHEMA)) == 9
        assert set(server.answered.values()) == {1}


def test_a_server_that_is_not_there_fails_the_build(tmp_path: Path) -> None:
    with serving(echo) as server:
        pass
    with pytest.raises(BuildFailed, match="tried 2 times, last: Connection error"):
        model(server, tmp_path, retries=1).answers(requests(3), SCHEMA)


def test_a_server_that_is_not_there_is_said_once_with_address_and_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(echo) as server:
        pass
    with caplog.at_level(logging.WARNING, "twinset"), pytest.raises(BuildFailed, match="tried 2 times"):
        model(server, tmp_path, retries=1, concurrency=9).answers(requests(9), SCHEMA)
    (said,) = [one.message for one in caplog.records if "asked again" in one.message]
    assert re.match(rf"{server.url} \(m\): Connection error.*; asked again in [\d.]+ s, at most 1 times more", said)


def test_a_wrong_key_is_told_at_once(tmp_path: Path) -> None:
    with (
        serving(lambda body, number: failure(401, "Incorrect API key")) as server,
        pytest.raises(BuildFailed, match=r"refuses requests .401: .*Incorrect API key.*; correct base_url, model or"),
    ):
        model(server, tmp_path, concurrency=1).answers(requests(3), SCHEMA)
    assert len(server.bodies) == 1


def test_what_waits_for_the_ceiling_is_not_asked_after_a_failure(tmp_path: Path) -> None:
    # One request at a time fits below the ceiling; the others wait.
    prices = {"price_in": 0.001, "price_out": 1000.0, "max_tokens": 350, "max_cost": 0.4}
    with serving(lambda body, number: failure(401, "Incorrect API key")) as server:
        with pytest.raises(BuildFailed, match=r"refuses requests .401"):
            model(server, tmp_path, concurrency=4, **prices).answers(requests(8), SCHEMA)
        assert len(server.bodies) == 1


def test_a_wait_that_the_server_asks_for_is_kept_and_bounded(tmp_path: Path) -> None:
    with serving(once(lambda body, number: failure(429, "slow down", retry_after="3600"))) as server:
        began = time.monotonic()
        model(server, tmp_path, longest_wait=0.3, concurrency=1).answers(requests(1), SCHEMA)
    assert time.monotonic() - began >= 0.6


def test_a_request_that_is_not_accepted_is_an_answer_of_its_own(tmp_path: Path) -> None:
    def short(body: Body, number: int) -> Reply:
        return failure(400, "too long") if "long" in body["messages"][0]["content"] else echo(body, number)

    with serving(short) as server:
        asked = requests(0, "a", "so long", "b")
        found = model(server, tmp_path, concurrency=1).answers(asked, SCHEMA)
        assert [one.finish for one in found] == ["stop", REFUSED, "stop"] and "too long" in found[1].text
        assert model(server, tmp_path).answers(asked, SCHEMA) == found and len(server.bodies) == 4
        # With room for it, the next build gets an answer; what was answered is not paid again.
        server.reply = echo
        answered = model(server, tmp_path).answers(asked, SCHEMA)
        assert [one.finish for one in answered] == ["stop"] * 3 and answered[::2] == found[::2]
        assert model(server, tmp_path).answers(asked, SCHEMA) == answered
        assert len(server.bodies) == 5 and set(server.answered.values()) == {1}


def test_a_server_that_no_longer_accepts_anything_fails_the_build(tmp_path: Path) -> None:
    with serving(echo) as server:
        model(server, tmp_path).answers(requests(3), SCHEMA)
        server.reply = lambda body, number: failure(400, "model not loaded")
        others = [Request((Message("user", f"other {number}"),), 0) for number in range(20)]
        with pytest.raises(BuildFailed, match=r"accepts none of 20 requests .400: .*model not loaded.*same command"):
            model(server, tmp_path).answers(others, SCHEMA)
        # A few, or some among others that were answered, are refused for what they say.
        refused = model(server, tmp_path).answers([*requests(3), *others], SCHEMA)
        assert [one.finish for one in refused] == ["stop"] * 3 + [REFUSED] * 20
        assert [one.finish for one in model(server, tmp_path).answers(others[:9], SCHEMA)] == [REFUSED] * 9


def test_a_server_that_accepts_nothing_fails_the_build(tmp_path: Path) -> None:
    with serving(lambda body, number: failure(400, "response_format: unknown")) as server:
        with pytest.raises(
            BuildFailed, match=r"accepts no request .400: .*response_format: unknown.*set answer_format"
        ):
            model(server, tmp_path, concurrency=1).answers(requests(30), SCHEMA)
        assert len(server.bodies) == 10
        with pytest.raises(BuildFailed, match="accepts no request"):
            model(server, tmp_path).answers(requests(1), SCHEMA)
        server.reply = echo
        assert len(model(server, tmp_path).answers(requests(30), SCHEMA)) == 30
