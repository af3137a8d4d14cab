"""`twinset publish` to a server that speaks as the Hub does."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub.errors import HfHubHTTPError

import twinset
from tests.cli.conftest import SAID, is_whole, run
from tests.hub_server import READS, WRITES, Hub
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.hub import _explained, repository

RESOLVE = "{repo_id}/resolve/{revision}/{filename}"
TO = "hf://datasets/lab/shades"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A Hub that this process and its children know, with a token that may write; nobody waits before a new try."""
    server = Hub()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}/{RESOLVE}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    children = {"HF_ENDPOINT": server.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "hf")}
    for name, value in children.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_TOKEN", WRITES)
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(time=time.time, sleep=lambda _: None))
    monkeypatch.setattr("huggingface_hub.utils._http.close_session", lambda: None)
    yield server
    server.shutdown()
    server.server_close()


def published(hub: Hub, name: str = "lab/shades") -> dict[str, bytes]:
    """What the Hub shows."""
    return hub.datasets[name].at("main")[1]


def test_private_first_then_public(out: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(out, "--to", TO, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    dataset = hub.datasets["lab/shades"]
    assert dataset.private and len(dataset.commits) == 2
    assert dataset.commits[1][0] == found["revision"] == dataset.tags[found["tag"]]
    assert is_whole(published(hub))
    assert not (out / "_spool").exists()
    croissant = json.loads(published(hub)["pairs/_meta/croissant.json"])
    assert croissant["distribution"][0]["contentUrl"].startswith(
        f"{hub.url}/datasets/lab/shades/resolve/{found['tag']}/"
    )
    assert f"{hub.url}" not in (out / "pairs/_meta/croissant.json").read_text(), "the dataset's own stays as it was"
    sent = hub.sent()
    assert run(out, "--to", TO, "--public") == 0
    assert not dataset.private and len(dataset.commits) == 2 and hub.sent() == sent
    assert hub.unknown == []


def test_a_signed_address_is_not_shown(hub: Hub) -> None:
    url = "https://store.example/objects/1?X-Signature=secret"
    answer: Any = SimpleNamespace(status_code=403, headers={}, request=None, url=url)
    error = HfHubHTTPError(f"Forbidden for url '{url}'", response=answer)
    with pytest.raises(BuildFailed, match=r"objects/1'; nothing is half") as found, _explained(repository(TO)):
        raise error
    assert "secret" not in str(found.value)


#: Requests of a publication by part of their path: each may fail, and the answers of changes be lost.
CHANGES = ("POST /api/repos/create", "POST /commit/", "POST /tag/", "PUT /settings")
OTHERS = ("GET /revision/main", "GET /tree/", "POST /preupload/", "POST /objects/batch", "PUT /objects/")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "request_part"),
    [*(("fails", one) for one in (*CHANGES, *OTHERS)), *(("loses", one) for one in CHANGES)],
)
def test_a_connection_cut_at_any_request(
    out: Path, hub: Hub, how: str, request_part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    method, part = request_part.split()
    cut: Callable[[str, str], bool] = lambda asked, path: asked == method and part in path  # noqa: E731
    setattr(hub, how, cut)
    assert run(out, "--to", TO, "--public") == 1
    said = capsys.readouterr().err
    assert "nothing is half-published; run the same command again" in said
    files = published(hub) if "lab/shades" in hub.datasets else {}
    assert len(files) <= 1 or is_whole(files)
    setattr(hub, how, lambda asked, path: False)
    assert run(out, "--to", TO, "--public") == 0
    dataset = hub.datasets["lab/shades"]
    assert is_whole(published(hub)) and len(dataset.commits) == 2 and not dataset.private
    assert [*dataset.tags.values()] == [dataset.commits[1][0]]


@pytest.mark.parametrize(
    ("token", "remedy"), [(READS, "write access"), ("hf_wrong", "hf auth login"), ("", "HF_TOKEN")]
)
def test_a_token_without_the_right(
    out: Path, hub: Hub, token: str, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    assert run(out, "--to", TO) == 2
    assert remedy in capsys.readouterr().err
    assert hub.datasets == {} and hub.objects == {}


@pytest.mark.slow
def test_a_repository_with_other_files_is_refused_unless_updated(
    out: Path, said: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(out, "--to", TO) == 0
    dataset = hub.datasets["lab/shades"]
    dataset.private = False
    assert run(out, "--to", TO, "--update") == 2
    assert "lab/shades is public" in capsys.readouterr().err and len(dataset.commits) == 2
    dataset.private = True
    dataset.commit({**published(hub), "notes.txt": b"mine"})
    assert run(out, "--to", TO) == 2 and "notes.txt" in published(hub)
    assert "--update" in capsys.readouterr().err
    twinset.build(str(said), out, settings=[*SAID, "title=Other shades"])
    assert run(out, "--to", TO, "--update") == 0
    assert is_whole(published(hub)) and b"Other shades" in published(hub)["README.md"]
    assert len(hub.datasets["lab/shades"].commits) == 4
    assert [*dataset.tags.values()] == [dataset.commits[-1][0]], "the data are the same, so their tag moves"
    assert run(out, "--to", TO) == 0 and len(dataset.commits) == 4, "the same is there"
