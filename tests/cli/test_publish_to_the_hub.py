"""`twinset publish` to the Hub, by a stand-in for its client."""

import json
from pathlib import Path

import pytest

import twinset
from tests.cli.conftest import SAID, is_whole, run
from tests.cli.hub import READS, Files, Hub, answer

TO = "hf://datasets/lab/shades"
NAME = "lab/shades"
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setattr("huggingface_hub.HfApi", hub := Hub())
    return hub


def published(hub: Hub) -> Files:
    """What the Hub shows."""
    return hub.datasets[NAME].at("main")[1]


def test_private_first_then_public(out: Path, hub: Hub, capsys: Printed) -> None:
    assert run(out, "--to", TO, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    dataset = hub.datasets[NAME]
    assert dataset.private and len(dataset.commits) == 2
    assert dataset.commits[1][0] == result["revision"] == dataset.tags[result["tag"]]
    assert is_whole(published(hub))
    assert not (out / "_spool").exists()
    croissant = json.loads(published(hub)["pairs/_meta/croissant.json"])
    address = f"{hub.endpoint}/datasets/lab/shades/resolve/{result['tag']}/"
    assert croissant["distribution"][0]["contentUrl"].startswith(address)
    assert hub.endpoint not in (out / "pairs/_meta/croissant.json").read_text(), "the dataset's own stays as it was"
    assert run(out, "--to", TO, "--public") == 0
    assert not dataset.private and len(dataset.commits) == 2


CHANGES = ("create_repo", "create_commit", "create_tag", "update_repo_settings")


@pytest.mark.slow
@pytest.mark.parametrize("call", CHANGES)
@pytest.mark.parametrize("how", ["fails", "loses"])
def test_a_connection_cut_at_any_request(out: Path, hub: Hub, how: str, call: str, capsys: Printed) -> None:
    setattr(hub, how, lambda asked: asked == call)
    assert run(out, "--to", TO, "--public") == 1
    assert "nothing is half-published; run the same command again" in capsys.readouterr().err
    files = published(hub) if NAME in hub.datasets else {}
    assert len(files) <= 1 or is_whole(files)
    setattr(hub, how, lambda asked: False)
    assert run(out, "--to", TO, "--public") == 0
    dataset = hub.datasets[NAME]
    assert is_whole(published(hub)) and len(dataset.commits) == 2 and not dataset.private
    assert [*dataset.tags.values()] == [dataset.commits[1][0]]


@pytest.mark.parametrize(("token", "remedy"), [(READS, "write access"), ("hf_wrong", "hf auth login")])
def test_a_token_without_the_right(out: Path, hub: Hub, token: str, remedy: str, capsys: Printed) -> None:
    hub.token = token
    assert run(out, "--to", TO) == 2
    assert remedy in capsys.readouterr().err and hub.datasets == {}


def test_a_signed_address_is_not_shown(out: Path, hub: Hub, capsys: Printed) -> None:
    def refuse(call: str) -> bool:
        raise answer(403, "https://store.example/objects/1?X-Signature=secret")

    hub.fails = refuse
    assert run(out, "--to", TO) == 1
    printed = capsys.readouterr().err
    assert "objects/1'; nothing is half" in printed.replace(")", "") and "secret" not in printed


@pytest.mark.slow
def test_a_repository_with_other_files_is_refused_unless_updated(
    out: Path, said: Path, hub: Hub, capsys: Printed
) -> None:
    assert run(out, "--to", TO) == 0
    dataset = hub.datasets[NAME]
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
    assert len(dataset.commits) == 4
    assert [*dataset.tags.values()] == [dataset.commits[-1][0]], "the data are the same, so their tag moves"
    assert run(out, "--to", TO) == 0 and len(dataset.commits) == 4, "the same is there"
