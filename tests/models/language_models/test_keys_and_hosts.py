"""A recipe of others names a server and an environment variable. Who gets which key, and where answers may lie."""

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.models.language_models.chat_server import Body, Reply, asked, completion, failure, serving
from tests.models.language_models.test_server_model import echo, model, requests
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import allowed
from twinset.contracts.recipe.allowed import allow_key, refuse_unbound_key
from twinset.models.language_models.server_model import _say_where
from twinset.stages.job import forget_workers
from twinset.stages.make import make_shard

SECRET, OWN = "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"
ENGINE = "subsets.negatives.source.engine"


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
        ("https://api.example.org=OTHER", "K", "https://api.example.org/v1", False),
        ("https://api.example.org=K", "K", "https://api.example.org.evil.net/v1", False),
        ("https://api.example.org=K", "K", "https://evil.net/api.example.org", False),
        ("https://api.example.org=K", "K", "http://api.example.org/v1", False),  # in plain text through the network
        ("https://a.org=X,http://[::1]:8000=K", "K", "http://[::1]:8000/v1", True),
        ("http://gpu:8000=K", "K", "http://gpu:8001/v1", False),
        ("", OWN, "https://api.openai.com/v1", True),
        ("", OWN, "http://api.openai.com/v1", False),
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
    """`answers: /any/where` made folders and a database there."""
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
