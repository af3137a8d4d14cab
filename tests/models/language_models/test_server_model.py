"""The engine for servers, against one on loopback: what is asked, kept, paid and held, whatever fails on the way.

A recipe of others names a server and an environment variable: who gets which key, and where answers may lie.
"""

import base64
import gzip
import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.models.language_models.chat_server import Body, ChatServer, Reply, asked, completion, failure, serving
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import allowed
from twinset.contracts.recipe.allowed import allow_key, refuse_unbound_key
from twinset.models.language_models.answers import REFUSED, YES_NO, Answer, Answers, Message, Request, ShownImage
from twinset.models.language_models.server_model import ALTERNATIVES, ServerModel, _probability, _say_where
from twinset.models.language_models.settings import OpenAI
from twinset.shards.metering import Tally
from twinset.stages.job import forget_workers
from twinset.stages.make import make_shard

SCHEMA = {"type": "object"}


def requests(count: int, *texts: str) -> list[Request]:
    turns = texts or [f"caption {number}" for number in range(count)]
    return [Request((Message("user", text),), seed=number, schema=SCHEMA) for number, text in enumerate(turns)]


def model(server: ChatServer, folder: Path, **settings: Any) -> ServerModel:
    quick = {"timeout": 300.0, "longest_wait": 0.01, "concurrency": 4, **settings}
    return ServerModel(OpenAI(kind="openai", model="m", base_url=server.url, answers=folder, **quick))


def echo(body: Body, number: int) -> Reply:
    return completion(f"to {body['messages'][-1]['content']}")


def packed(reply: Reply) -> Reply:
    return Reply(gzip.compress(reply.content), headers={"content-encoding": "gzip"})


FAULTS: dict[str, Callable[[Body, int], Reply]] = {
    "429": lambda body, number: failure(429, "slow down", retry_after="0"),
    "503 of a proxy": lambda body, number: Reply(b"<html>busy</html>", 503, {"content-type": "text/html"}),
    "cut": lambda body, number: Reply(echo(body, number).content, cut=40),
    "200 of one that asks others": lambda body, number: Reply(b'{"error": {"message": "busy", "code": 502}}'),
    "packed without end": lambda body, number: packed(Reply(b" " * 20_000)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr("twinset.models.language_models.server_faults.LONGEST_ANSWER", 10_000)
    with serving(lambda body, number: (FAULTS[fault] if number < 2 else echo)(body, number)) as server:
        answers = model(server, tmp_path).ask(requests(3))
        assert [answer.text for answer in answers] == ["to caption 0", "to caption 1", "to caption 2"]
        server.reply = FAULTS[fault]
        with pytest.raises(BuildFailed, match=r"\(m\): tried 3 times, last: .*run the same command again"):
            model(server, tmp_path, retries=2, concurrency=1).ask(requests(9))
        assert len(server.bodies) == 5 + 3, "what is not asked yet stays unasked"
        server.reply = lambda body, number: packed(echo(body, number))
        assert len(model(server, tmp_path).ask(requests(9))) == 9 and len(server.bodies) == 8 + 6
    with pytest.raises(BuildFailed, match="tried 1 times, last: Connection error"):
        model(server, tmp_path, retries=0).ask(requests(10))


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    gone = threading.Event()

    def late(body: Body, number: int) -> Reply:
        gone.wait()
        return echo(body, number)

    with serving(late) as server:
        with pytest.raises(BuildFailed, match="tried 1 times, last: no answer within"):
            model(server, tmp_path, timeout=0.2, retries=0).ask(requests(1))
        gone.set()


@pytest.mark.parametrize(("asked", "longest", "least"), [("3600", 0.3, 0.6), ("0", 60, 1)])
def test_a_wait_that_a_server_asks_for_is_bounded(tmp_path: Path, asked: str, longest: float, least: float) -> None:
    slow = failure(429, "slow down", retry_after=asked)
    with serving(lambda body, number: slow if number < 2 else echo(body, number)) as server:
        began = time.monotonic()
        model(server, tmp_path, longest_wait=longest, concurrency=1).ask(requests(1))
    assert time.monotonic() - began >= least


def test_a_refusal_is_an_answer_of_its_own_and_a_server_that_accepts_nothing_fails_the_build(tmp_path: Path) -> None:
    def short(body: Body, number: int) -> Reply:
        return failure(400, "too long \ud800") if "long" in body["messages"][0]["content"] else echo(body, number)

    with serving(lambda body, number: failure(400, "response_format: unknown")) as server:
        for count in (1, 30):
            with pytest.raises(BuildFailed, match=rf"none of {count} requests .400: .*unknown.*set answer_format"):
                model(server, tmp_path).ask(requests(count))
        server.reply = short
        asked = requests(0, "a", "so long", "b")
        answers = model(server, tmp_path).ask(asked)
        assert [answer.finish for answer in answers] == ["stop", REFUSED, "stop"] and "too long ?" in answers[1].text
        assert model(server, tmp_path).ask(asked[1:2]) == answers[1:2]
        server.reply = echo  # with room for it, the next build gets an answer; what was answered is not paid again
        assert [answer.finish for answer in model(server, tmp_path).ask(asked)] == ["stop"] * 3
        assert len(server.bodies) == 31 + 5 and set(server.answered.values()) == {1}


def test_an_account_at_its_limit_is_no_refusal_of_a_caption(tmp_path: Path) -> None:
    limit = Reply(b'{"error": {"message": "Billing hard limit", "code": "billing_hard_limit_reached"}}', 400)
    with serving(lambda body, number: limit if number else echo(body, 0)) as server:
        with pytest.raises(BuildFailed, match=r"is not paid for .400: Billing hard limit"):
            model(server, tmp_path, concurrency=1).ask(requests(5))
        assert len(server.bodies) == 2


def test_what_a_request_says_decides_whether_it_is_asked_again(tmp_path: Path) -> None:
    with serving(echo) as server:
        asked = requests(20)
        first = model(server, tmp_path).ask(asked)
        assert first == [Answer(f"to caption {number}", "stop", 10, 5) for number in range(20)]
        assert model(server, tmp_path, concurrency=9, retries=0, price_in=1).ask(asked[::-1]) == first[::-1]
        assert len(server.bodies) == 20
        turns = asked[0].messages
        changed = [Request(turns, seed=7), Request(turns, seed=7), Request(turns * 2)]  # made twice, it is one
        assert [answer.text for answer in model(server, tmp_path).ask(changed)] == ["to caption 0"] * 3
        model(server, tmp_path, temperature=0.1).ask(changed)
        assert len(server.bodies) == 20 + 2 + 2
    with serving(lambda body, number: completion("of another model with this name")) as server:
        assert model(server, tmp_path).ask(asked[:1])[0].text == "of another model with this name"


def test_requests_say_what_the_recipe_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(echo) as server:
        monkeypatch.setenv("TWINSET_KEYS", f"{server.url.removesuffix('/v1')}=A_KEY")
        monkeypatch.setenv("A_KEY", "sesame\n")  # files of secrets end with a line break
        model(server, tmp_path, api_key_variable="A_KEY").ask(requests(1))
        changes = {"answer_format": "text", "top_p": 0.5, "token_limit": "max_completion_tokens", "max_tokens": 7}
        model(server, tmp_path, **changes).ask(requests(1))
        monkeypatch.setenv("A_KEY", "séssame")
        with pytest.raises(WrongUse, match=r"^source\.engine\.api_key_variable: .* A_KEY holds other") as shown:
            model(server, tmp_path, api_key_variable="A_KEY").settings.check_inputs("source.engine", ["media"])
        assert "séssame" not in str(shown.value)
    held = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    same = {"model": "m", "temperature": 0.7, "seed": 0, "messages": [{"role": "user", "content": "caption 0"}]}
    assert server.bodies == [
        {**same, "max_tokens": 350, "response_format": held},
        {**same, "max_completion_tokens": 7, "top_p": 0.5},
    ]
    assert server.keys == ["Bearer sesame", "Bearer none"]
    assert all(b"sesame" not in path.read_bytes() for path in tmp_path.rglob("*"))


def test_the_ceiling_on_cost_holds_also_for_requests_that_wait_side_by_side(tmp_path: Path) -> None:
    # 100 tokens written cost 0.1; a request could write 350, and the least that it reads is not free.
    prices = {"price_in": 1.0, "price_out": 1000.0, "max_tokens": 350}
    with serving(lambda body, number: completion("x", tokens=(10, 100))) as server:
        for _ in range(2):
            with pytest.raises(BuildFailed, match=r"max_cost is 1; .* took 7 answers, 70 tokens .*Raise max_cost"):
                model(server, tmp_path, max_cost=1.0, **prices).ask(requests(30))
            assert len(server.bodies) == 7 == Answers(tmp_path).spent("m").answers
        model(server, tmp_path, max_cost=4.0, **prices).ask(requests(30))
        assert len(server.bodies) == 30 and set(server.answered.values()) == {1}
        assert Answers(tmp_path).spent("m") == Tally(30, 300, 3000)
        # What waits for the ceiling is not asked after a failure.
        server.reply = lambda body, number: failure(401, "Incorrect API key")
        with pytest.raises(BuildFailed, match=r"refuses requests .401"):
            model(server, tmp_path / "new", max_cost=0.4, **prices).ask(requests(8))
        assert len(server.bodies) == 31
        # Half a surrogate pair can be in JSON, and in no file; a cost that cannot be counted is not paid twice.
        uncounted = b'{"choices": [{"message": {"content": "x\\ud800"}, "finish_reason": "\\udfff"}]}'
        server.reply = lambda body, number: Reply(uncounted)
        assert model(server, tmp_path / "new").ask(requests(1)) == [Answer("x?", "?")]
        with pytest.raises(BuildFailed, match="m: the server does not count tokens"):
            model(server, tmp_path / "new", concurrency=1, max_cost=1.0, **prices).ask(requests(3))
        assert len(server.bodies) == 33


def test_images_are_sent_once_and_yes_is_read_from_the_first_token(tmp_path: Path) -> None:
    reply = completion("Yes", likely={"Yes": 0.6, "yes": 0.1, "No": 0.2})
    images = [ShownImage(content, "image/jpeg") for content in (b"\xff\xd8 first", b"\xff\xd8 second")]
    asked = [Request((Message("user", "a dog?"),), (image,), words=YES_NO) for image in images]
    with serving(lambda body, number: reply) as server:
        for _ in range(2):
            answers = model(server, tmp_path, concurrency=1).ask(asked)
            assert [answer.probability for answer in answers] == [pytest.approx(0.7 / 0.9)] * 2
        assert len(server.bodies) == 2
        (turned,) = model(server, tmp_path).ask([Request(asked[0].messages, (images[0],), words=("no", "yes"))])
        assert turned.probability == pytest.approx(0.2 / 0.9), "other words are another question"
    body, url = server.bodies[0], f"data:image/jpeg;base64,{base64.b64encode(images[0].content).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "a dog?"}]
    assert body["messages"] == [{"role": "user", "content": parts}]
    assert (body["temperature"], body["max_tokens"], body["top_logprobs"]) == (0, 1, ALTERNATIVES)


@pytest.mark.parametrize(
    ("texts", "likely", "words", "expected"),
    [
        (["Yes, there is.", "yes"], [], YES_NO, 1.0),
        (["no."], [], YES_NO, 0.0),
        (["yes", "I"], [("I", -0.01), ("yes", -20.7), ("no", -1.0)], YES_NO, None),  # both together have 0.37
        (["no"], [("Yes", -69.07755), ("no", 0.0)], YES_NO, pytest.approx(1e-30, rel=1e-3)),
        (["A", "(a)", "A: a ball", "**A**", '"A"', "The answer is A."], [], ("a", "b"), 1.0),
        (["B) in a street", "the correct answer is (B)", "Answer: b"], [], ("a", "b"), 0.0),
        (["A kite is held", "Both", "", "C"], [], ("a", "b"), None),
    ],
)
def test_how_an_answer_is_read(texts: list[str], likely: Any, words: tuple[str, str], expected: Any) -> None:
    assert [_probability(likely, text, words) for text in texts] == [expected] * len(texts)


SECRET, OWN = "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in (allowed.KEYS, allowed.ANSWERS, "PREFECT_API_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(SECRET, "sesame")


def negative(body: Body, number: int) -> Reply:
    first, _, rest = asked(body).partition(" ")
    return completion(f'{{"negative_caption": "{first} purple {rest}"}}')


def recipe_of_others(folder: Path, url: str, **engine: Any) -> str:
    (folder / "captions.jsonl").write_text('{"caption_id": "1", "image_id": "1", "caption": "A dog on a bench."}\n')
    engine = {"kind": "openai", "model": "m", "base_url": url, "retries": 0, **engine}
    source = {"kind": "negative-captions", "captions": "captions.jsonl", "engine": engine}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({"name": "theirs", "subsets": {"negatives": {"source": source}}}))
    return str(path)


def test_a_key_goes_where_the_operator_bound_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`base_url: http://attacker` with `api_key_variable: AWS_SECRET_ACCESS_KEY` sent that secret to the attacker;
    `_meta/log/recipe.json` of a bucket names both, and who resumes it bound neither.
    """
    with serving(negative) as server:
        theirs = recipe_of_others(tmp_path, server.url, api_key_variable=SECRET)
        host = server.url.removesuffix("/v1")
        with pytest.raises(WrongUse, match=f"the value of {SECRET} to {host}.*set {allowed.KEYS}={host}={SECRET}"):
            twinset.build(theirs, tmp_path / "out")
        with pytest.raises(WrongUse, match="nobody allowed"):  # the last place before it is sent
            model(server, tmp_path, api_key_variable=SECRET).ask(requests(1))
        assert server.keys == []
        allow_key(server.url, SECRET)
        twinset.build(theirs, tmp_path / "out")
        first = len(server.keys)
        monkeypatch.delenv(allowed.KEYS)
        monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "another cache"))
        (tmp_path / "out/negatives/_meta/receipts/00000.json").unlink()
        forget_workers()
        with pytest.raises(WrongUse, match=rf"{SECRET} to {host}.*set {allowed.KEYS}={host}"):
            make_shard(str(tmp_path / "out"), "negatives", 0)
        allow_key(server.url, SECRET)
        forget_workers()
        make_shard(str(tmp_path / "out"), "negatives", 0)
    assert len(server.keys) == 2 * first and set(server.keys) == {"Bearer sesame"}


@pytest.mark.parametrize(
    ("bound", "variable", "url", "goes"),
    [
        ("https://api.example.org=K", "K", "https://api.EXAMPLE.org/v1", True),
        ("https://api.example.org=K", "K", "https://api.example.org.evil.net/v1", False),
        ("https://api.example.org=K", "K", "http://api.example.org/v1", False),  # in plain text through the network
        ("https://a.org=X,http://[::1]:8000=K", "K", "http://[::1]:8000/v1", True),
        ("http://gpu:8000=K", "K", "http://gpu:8001/v1", False),
        ("", OWN, "https://api.openai.com/v1", True),
        ("", SECRET, "https://api.openai.com/v1", False),
    ],
)
def test_a_key_has_one_server(monkeypatch: pytest.MonkeyPatch, bound: str, variable: str, url: str, goes: bool) -> None:
    """Names that look alike, other ports and plain http are other servers; the remedy of a refusal is exact."""
    monkeypatch.setenv(allowed.KEYS, bound)
    if not goes:
        with pytest.raises(WrongUse) as refused:
            refuse_unbound_key(url, variable)
        monkeypatch.setenv(allowed.KEYS, str(refused.value).rpartition(f"{allowed.KEYS}=")[2])
    refuse_unbound_key(url, variable)


@pytest.mark.parametrize("host", ["a.org\\@evil.net", "a.org%2eevil.net", "a.org;evil.net", "a.org,evil.net"])
def test_a_host_that_readers_of_urls_disagree_on_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"base_url"):
        twinset.load_recipe(recipe_of_others(tmp_path, f"https://{host}/v1"))


def test_nothing_else_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """OpenAI's client adds OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS, whatever the server."""
    for variable in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", OWN):
        monkeypatch.setenv(variable, "secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer secret\nX-Gateway: secret")
    _say_where.cache_clear()
    with serving(echo) as elsewhere, serving(echo) as server, caplog.at_level(logging.WARNING, "twinset"):
        for _ in range(2):
            model(server, tmp_path).ask(requests(2))
        assert {*server.keys} == {"Bearer none"} and "secret" not in str(server.headers)
        allow_key(server.url, SECRET)
        onward = Reply(b"", 307, {"location": f"{elsewhere.url}/chat/completions"})
        server.reply = lambda body, number: onward
        with pytest.raises(BuildFailed, match=rf"on \(307\) to {elsewhere.url}.*; set base_url"):
            model(server, tmp_path / "new", api_key_variable=SECRET).ask(requests(1))
    assert (len(server.bodies), elsewhere.bodies) == (3, [])
    messages = [f"requests go to {server.url} with {key}" for key in ("no key", f"the key in {SECRET}")]
    assert [record.message for record in caplog.records] == messages


def test_answers_lie_below_out_or_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (tmp_path / "link").symlink_to(elsewhere)
    with serving(negative) as server:
        for place in (elsewhere, out / "../elsewhere", tmp_path / "link", tmp_path / "outer"):
            theirs = recipe_of_others(tmp_path, server.url, answers=str(place))
            with pytest.raises(WrongUse, match=r"engine\.answers: the recipe would write answers to .*outside of OUT"):
                twinset.build(theirs, out)
        assert not elsewhere.exists() and server.bodies == []
        twinset.build(recipe_of_others(tmp_path, server.url, answers=str(out / "answers")), out)
        monkeypatch.setenv(allowed.ANSWERS, str(elsewhere))
        twinset.build(recipe_of_others(tmp_path, server.url, answers=str(elsewhere)), tmp_path / "again")
    assert (elsewhere / "answers.sqlite").is_file()


@pytest.mark.parametrize("status", [200, 301, 400, 401, 500])
def test_a_key_that_a_server_repeats_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    reason = "x" * 281 + " Bearer sesame"  # cut within the key, half of it would be shown
    with serving(lambda body, number: failure(status, reason, location=reason)) as server:
        monkeypatch.setenv(allowed.KEYS, f"{server.url.removesuffix('/v1')}={SECRET}")
        with caplog.at_level(logging.INFO), pytest.raises(BuildFailed) as failed:
            model(server, tmp_path, api_key_variable=SECRET, retries=1).ask(requests(1))
    shown = "".join(traceback.format_exception(failed.value)) + caplog.text
    assert "xxx Bearer " in shown and "sesa" not in shown
