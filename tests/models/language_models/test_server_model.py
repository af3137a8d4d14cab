"""Attack: the chat template of a model's folder, a program in Jinja that never ends or fills the memory.

The engine for servers, against one on loopback that fails in every way that servers do.

The engine for servers, against one on loopback: what is asked, kept, paid and held.
"""

import gzip
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from tests.models.language_models.asked_server import SCHEMA, echo, model, once, requests
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.models.language_models.answers import REFUSED, Answer, Answers, Message, Request
from twinset.models.language_models.chat_templates import bounded, check_template
from twinset.models.language_models.server_faults import BrokenAnswer, parsed
from twinset.shards.metering import Tally

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


def test_answers_come_in_order_and_are_asked_for_once(tmp_path: Path) -> None:
    with serving(echo) as server:
        asked = requests(20)
        first = model(server, tmp_path).answers(asked, SCHEMA)
        assert first == [Answer(f"to caption {number}", "stop", 10, 5) for number in range(20)]
        assert model(server, tmp_path).answers(asked[::-1], SCHEMA) == first[::-1]
        assert len(server.bodies) == 20 and set(server.answered.values()) == {1}
        twice = [Request((Message("user", "new"),), 7)] * 2
        assert len(set(model(server, tmp_path).answers(twice, SCHEMA))) == 1
        assert len(server.bodies) == 21


def test_what_a_request_says_decides_whether_it_is_asked_again(tmp_path: Path) -> None:
    with serving(echo) as server:
        asked = requests(1)
        model(server, tmp_path).answers(asked, SCHEMA)
        model(server, tmp_path, concurrency=9, retries=0, price_in=1).answers(asked, SCHEMA)
        assert len(server.bodies) == 1
        model(server, tmp_path, temperature=0.1).answers(asked, SCHEMA)
        model(server, tmp_path).answers(asked, {"type": "array"})
        model(server, tmp_path).answers([Request(asked[0].messages, 5)], SCHEMA)
        assert len(server.bodies) == 4


def test_requests_say_what_the_recipe_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sesame")
    with serving(echo) as server:
        monkeypatch.setenv("TWINSET_KEYS", f"{server.url.removesuffix('/v1')}=A_KEY")
        asked = requests(1)
        model(server, tmp_path, api_key_variable="A_KEY").answers(asked, SCHEMA)
        model(server, tmp_path, answer_format="text", top_p=0.5, token_limit="max_completion_tokens").answers(
            asked, SCHEMA
        )
        model(server, tmp_path, answer_format="json-object").answers(asked, SCHEMA)
    held = {"name": "answer", "strict": True, "schema": SCHEMA}
    same = {"model": "m", "temperature": 0.7, "seed": 0, "messages": [{"role": "user", "content": "caption 0"}]}
    assert server.bodies == [
        {**same, "max_tokens": 350, "response_format": {"type": "json_schema", "json_schema": held}},
        {**same, "max_completion_tokens": 350, "top_p": 0.5},
        {**same, "max_tokens": 350, "response_format": {"type": "json_object"}},
    ]
    assert server.keys == ["Bearer sesame", "Bearer none", "Bearer none"]
    assert all(b"sesame" not in path.read_bytes() for path in tmp_path.rglob("*"))


def test_no_more_requests_wait_than_asked(tmp_path: Path) -> None:
    def slow(body: Body, number: int) -> Reply:
        time.sleep(0.02)
        return echo(body, number)

    with serving(slow) as server:
        model(server, tmp_path, concurrency=3).answers(requests(12), SCHEMA)
    assert server.most == 3


def test_the_ceiling_on_cost_holds_also_for_requests_that_wait_side_by_side(tmp_path: Path) -> None:
    # 100 tokens written cost 0.1; a request could write 350, and the least that it reads is not free.
    prices = {"price_in": 1.0, "price_out": 1000.0, "max_tokens": 350}
    with serving(lambda body, number: completion("x", tokens=(10, 100))) as server:
        with pytest.raises(
            BuildFailed, match=r"max_cost is 1; the answers in .* took 7 answers, 70 tokens read and 700"
        ):
            model(server, tmp_path, max_cost=1.0, **prices).answers(requests(30), SCHEMA)
        assert len(server.bodies) == 7 == Answers(tmp_path).spent("m").answers
        with pytest.raises(BuildFailed, match="Raise max_cost and run the same command again"):
            model(server, tmp_path, max_cost=1.0, **prices).answers(requests(30), SCHEMA)
        assert len(server.bodies) == 7
        model(server, tmp_path, max_cost=4.0, **prices).answers(requests(30), SCHEMA)
        assert len(server.bodies) == 30 and set(server.answered.values()) == {1}
    assert Answers(tmp_path).spent("m") == Tally(30, 300, 3000)


def test_a_cost_that_cannot_be_counted_is_not_paid(tmp_path: Path) -> None:
    body = b'{"choices": [{"message": {"content": "x"}}]}'
    assert parsed(body, counted=False) == Answer("x", "")
    with pytest.raises(BrokenAnswer, match="does not count tokens"):
        parsed(body, counted=True)


def test_a_server_that_does_not_count_is_asked_once(tmp_path: Path) -> None:
    body = b'{"choices": [{"message": {"content": "x"}}]}'
    with serving(lambda _, number: Reply(body)) as server:
        with pytest.raises(BuildFailed, match=r"\(m\): the server does not count tokens"):
            model(server, tmp_path, concurrency=1, price_in=1.0, max_cost=1.0).answers(requests(3), SCHEMA)
        assert len(server.bodies) == 1


@pytest.mark.parametrize("status", [301, 307, 308])
def test_requests_are_sent_to_the_named_server_alone(tmp_path: Path, status: int) -> None:
    with serving(echo) as other:
        onward = {"location": f"{other.url}/chat/completions"}
        with (
            serving(lambda body, number: Reply(b"", status, onward)) as server,
            pytest.raises(BuildFailed, match=rf"sends requests on \({status}\) to {other.url}.*; set base_url"),
        ):
            model(server, tmp_path, concurrency=1).answers(requests(3), SCHEMA)
        assert (len(server.bodies), other.bodies) == (1, [])


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_end_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, packed: bool
) -> None:
    monkeypatch.setattr("twinset.models.language_models.server_faults.LONGEST_ANSWER", 10_000)
    content = gzip.compress(b" " * 1_000_000) if packed else b" " * 1_000_000
    headers = {"content-encoding": "gzip"} if packed else {}
    with (
        serving(lambda body, number: Reply(content, status, headers)) as server,
        pytest.raises(BuildFailed, match=r"tried 2 times, last: .*an answer of more than 10,000 bytes"),
    ):
        model(server, tmp_path, retries=1).answers(requests(1), SCHEMA)


def test_a_packed_answer_is_read(tmp_path: Path) -> None:
    def packed(body: Body, number: int) -> Reply:
        return Reply(gzip.compress(echo(body, number).content), 200, {"content-encoding": "gzip"})

    with serving(packed) as server:
        assert model(server, tmp_path).answers(requests(1), SCHEMA)[0].text == "to caption 0"


def test_a_key_may_end_with_a_line_break_and_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sesame\n")
    with serving(echo) as server:
        monkeypatch.setenv("TWINSET_KEYS", f"{server.url.removesuffix('/v1')}=A_KEY")
        model(server, tmp_path, api_key_variable="A_KEY").answers(requests(1), SCHEMA)
        assert server.keys == ["Bearer sesame"]
        for key in ("séssame", "ses\name"):
            monkeypatch.setenv("A_KEY", key)
            settings = model(server, tmp_path / "new", api_key_variable="A_KEY")
            with pytest.raises(WrongUse, match="variable A_KEY holds other characters") as shown:
                settings.answers(requests(1), SCHEMA)
            assert key not in str(shown.value)
            with pytest.raises(WrongUse, match=r"^source\.engine\.api_key_variable: .* A_KEY"):
                settings.settings.check_inputs("source.engine", ["media"])


def test_nothing_is_paid_for_while_the_disk_is_full(tmp_path: Path) -> None:
    with serving(echo) as server:
        full = model(server, tmp_path)
        full._answers._database.execute("PRAGMA max_page_count = 20")
        with pytest.raises(BuildFailed, match=r"answers\.sqlite: database or disk is full; see that"):
            full.answers(requests(3), SCHEMA)
        assert server.bodies == []
        assert len(model(server, tmp_path).answers(requests(3), SCHEMA)) == 3
        assert Answers(tmp_path).find([""]) == {}


def test_half_a_surrogate_pair_does_not_reach_the_disk(tmp_path: Path) -> None:
    body = b'{"choices": [{"message": {"content": "x\\ud800"}, "finish_reason": "\\udfff"}]}'
    assert parsed(body, counted=False) == Answer("x?", "?")

    def half(_: Body, number: int) -> Reply:
        return Reply(b'{"error": {"message": "bad \\ud800"}}', 400) if number else Reply(body)

    with serving(half) as server:
        assert model(server, tmp_path, concurrency=1).answers(requests(2), SCHEMA)[1].text.endswith("bad ?")
