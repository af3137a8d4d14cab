"""S2: a recipe of others names a server and an environment variable. Who gets which key, and where answers may lie."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.models.language_models.asked_server import SCHEMA, echo, model, requests
from tests.models.language_models.chat_server import Body, ChatServer, Reply, asked, completion, serving
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import allowed
from twinset.contracts.recipe.allowed import allow_key, refuse_unbound_key
from twinset.models.language_models.server_model import _say_where
from twinset.stages.job import forget_workers
from twinset.stages.make import make_shard

SECRET = "AWS_SECRET_ACCESS_KEY"
ENGINE = "subsets.negatives.source.engine"


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(allowed.KEYS, raising=False)
    monkeypatch.delenv(allowed.ANSWERS, raising=False)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(SECRET, "sesame")


def negative(body: Body, number: int) -> Reply:
    first, _, others = asked(body).partition(" ")
    return completion(f'{{"negative_caption": "{first} purple {others}"}}')


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(negative) as one:
        yield one


def recipe_of_others(folder: Path, url: str, **engine: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "captions.jsonl").write_text('{"caption_id": "1", "image_id": "1", "caption": "A dog on a bench."}\n')
    engine = {"kind": "openai", "model": "m", "base_url": url, "retries": 0, **engine}
    source = {"kind": "negative-captions", "captions": "captions.jsonl", "engine": engine}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({"name": "theirs", "subsets": {"negatives": {"source": source}}}))
    return str(path)


def test_a_recipe_sends_no_variable_that_nobody_bound(tmp_path: Path, server: ChatServer) -> None:
    """`base_url: http://attacker` with `api_key_variable: AWS_SECRET_ACCESS_KEY` sent that secret to the attacker."""
    theirs = recipe_of_others(tmp_path, server.url, api_key_variable=SECRET)
    host = server.url.removeprefix("http://").removesuffix("/v1")
    with pytest.raises(WrongUse) as refused:
        twinset.build(theirs, tmp_path / "out")
    assert f"the value of {SECRET} to http://{host}" in str(refused.value)
    assert f"set {allowed.KEYS}=http://{host}={SECRET}" in str(refused.value)
    with pytest.raises(WrongUse, match="nobody allowed"):  # the last place before it is sent
        model(server, tmp_path, api_key_variable=SECRET).answers(requests(1), SCHEMA)
    assert server.keys == []


def test_a_key_that_was_bound_for_a_run_is_not_bound_by_its_record(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_meta/log/recipe.json` of a bucket names the server and the variable; who resumes it did not."""
    out = tmp_path / "out"
    allow_key(server.url, SECRET)
    twinset.build(recipe_of_others(tmp_path, server.url), out, settings=[f"{ENGINE}.api_key_variable={SECRET}"])
    asked_before = len(server.keys)
    monkeypatch.delenv(allowed.KEYS)
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "another cache"))
    (out / "negatives/_meta/receipts/00000.json").unlink()
    forget_workers()
    with pytest.raises(WrongUse, match=rf"{SECRET} to http://127.*set {allowed.KEYS}=http://127"):
        make_shard(str(out), "negatives", 0)
    allow_key(server.url, SECRET)
    forget_workers()
    make_shard(str(out), "negatives", 0)
    assert len(server.keys) == 2 * asked_before and set(server.keys) == {"Bearer sesame"}


@pytest.mark.parametrize(
    ("bound", "url", "goes"),
    [
        ("", "https://api.example.org/v1", False),
        ("https://api.example.org=K", "https://api.EXAMPLE.org/v1", True),
        ("https://api.example.org=OTHER", "https://api.example.org/v1", False),
        ("https://api.example.org=K", "https://api.example.org.evil.net/v1", False),
        ("https://api.example.org=K", "https://evil.net/api.example.org", False),
        ("https://api.example.org=K", "http://api.example.org/v1", False),  # in plain text through the network
        ("https://a.org=X,http://gpu:8000=K", "http://gpu:8000/v1", True),
        ("http://gpu:8000=K", "http://gpu:8001/v1", False),
        ("http://[::1]:8000=K", "http://[::1]:8000/v1", True),
    ],
)
def test_a_binding_is_of_one_server(monkeypatch: pytest.MonkeyPatch, bound: str, url: str, goes: bool) -> None:
    """Names that look alike, other ports and plain http are other servers; the remedy of a refusal is exact."""
    monkeypatch.setenv(allowed.KEYS, bound)
    if not goes:
        with pytest.raises(WrongUse) as refused:
            refuse_unbound_key(url, "K")
        monkeypatch.setenv(allowed.KEYS, str(refused.value).rpartition(f"{allowed.KEYS}=")[2])
    refuse_unbound_key(url, "K")


def test_openais_own_key_goes_to_openai_alone(tmp_path: Path) -> None:
    refuse_unbound_key("https://api.openai.com/v1", "OPENAI_API_KEY")
    for url in ("http://api.openai.com/v1", "https://api.openai.com.evil.net/v1", "https://evil.net/v1"):
        with pytest.raises(WrongUse):
            refuse_unbound_key(url, "OPENAI_API_KEY")
    with pytest.raises(WrongUse):
        refuse_unbound_key("https://api.openai.com/v1", SECRET)


@pytest.mark.parametrize("host", ["a.org\\@evil.net", "a.org%2eevil.net", "a.org;evil.net", "a.org,evil.net"])
def test_a_host_that_readers_of_urls_disagree_on_is_refused(host: str, tmp_path: Path) -> None:
    theirs = recipe_of_others(tmp_path, f"https://{host}/v1")
    with pytest.raises(WrongUse, match=r"base_url"):
        twinset.load_recipe(theirs)


def test_what_openais_client_takes_from_the_environment_stays_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI's client adds OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS, whatever the server."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-sesame")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-sesame")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sesame\nX-Gateway: sesame")
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    with serving(echo) as server:
        model(server, tmp_path).answers(requests(1), SCHEMA)
    assert server.keys == ["Bearer none"]
    assert "sesame" not in str(server.headers)


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_takes_no_key_elsewhere(tmp_path: Path, status: int) -> None:
    with serving(echo) as other:
        onward = Reply(b"", status, {"location": f"{other.url}/chat/completions"})
        with serving(lambda body, number: onward) as server, pytest.raises(BuildFailed, match="set base_url"):
            allow_key(server.url, SECRET)
            model(server, tmp_path, api_key_variable=SECRET).answers(requests(1), SCHEMA)
        assert other.keys == []


def test_the_first_request_names_host_and_variable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _say_where.cache_clear()
    with serving(echo) as server, caplog.at_level(logging.WARNING, "twinset"):
        allow_key(server.url, SECRET)
        for _ in range(2):
            model(server, tmp_path, api_key_variable=SECRET).answers(requests(1), SCHEMA)
    assert [one.message for one in caplog.records] == [f"requests go to {server.url} with the key in {SECRET}"]


def test_answers_lie_below_out_or_in_the_cache(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`answers: /any/where` made folders and a database there."""
    out = tmp_path / "out"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for place in (tmp_path / "elsewhere", out / "../elsewhere", tmp_path / "link", tmp_path / "outer"):
        theirs = recipe_of_others(tmp_path, server.url, answers=str(place))
        with pytest.raises(WrongUse, match=r"engine\.answers: the recipe would write answers to .*, outside of OUT"):
            twinset.build(theirs, out)
    assert not (tmp_path / "elsewhere").exists() and server.bodies == []
    twinset.build(recipe_of_others(tmp_path, server.url, answers=str(out / "answers")), out)
    monkeypatch.setenv(allowed.ANSWERS, str(tmp_path / "elsewhere"))
    twinset.build(recipe_of_others(tmp_path, server.url, answers=str(tmp_path / "elsewhere")), tmp_path / "again")
    assert (tmp_path / "elsewhere/answers.sqlite").is_file()
