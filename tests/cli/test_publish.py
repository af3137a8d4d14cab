"""`twinset publish`: into a folder, and to a server that speaks as the Hub does."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
import yaml
from huggingface_hub.errors import HfHubHTTPError

import twinset
from tests.cli.conftest import write_recipe
from tests.hub_server import READS, WRITES, Hub
from twinset.cli.main import main
from twinset.manifests.errors import BuildFailed
from twinset.shards.storage.hub import _explained, repository
from twinset.stages.publishing import publish

RESOLVE = "{repo_id}/resolve/{revision}/{filename}"
TO = "hf://datasets/lab/shades"
SAID = ('authors=["Doe, Jane", The shades group]', 'citation="@misc{shades, title = {Shades}}"')


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe that is built beside it, in ``out``, with all that a published dataset needs."""
    recipe = write_recipe(tmp_path_factory.mktemp("said"))
    twinset.build(str(recipe), recipe.parent / "out", settings=SAID)
    return recipe


@pytest.fixture
def out(said: Path, tmp_path: Path) -> Path:
    """A copy of that OUT."""
    return Path(shutil.copytree(said.parent / "out", tmp_path / "out"))


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


def run(*arguments: object) -> int:
    return main(["publish", *map(str, arguments)])


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether files are those that their checksums name, which are all but those of the Hub itself."""
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    return sums == {
        path: hashlib.sha256(content).hexdigest()
        for path, content in files.items()
        if path not in ("SHA256SUMS", ".gitattributes")
    }


def test_a_folder_is_laid_out_as_the_hub_shows_it(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = out.parent / "published"
    (out / "pairs/_meta/mine.txt").write_text("a note")
    (out / "pairs/_meta/look-4.png").write_bytes(b"a sheet")
    for name in ("mine.json", "mine.png", "rows/.mine", "rows/mine.parquet", "plan/mine.parquet", "receipts/mine.json"):
        (out / "pairs/_meta" / name).write_bytes(b"{}")
    assert run(out, "--to", to) == 0
    files = {path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert is_whole(files)
    assert "preview/pairs/data/test-00000-of-00001.parquet" in files
    assert not [path for path in files if "/log/" in path or "mine" in path or "look-4" in path]
    front = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    assert [(one["config_name"], one["data_files"]) for one in front["configs"]] == [
        ("pairs", [{"split": "test", "path": "pairs/test/*.tar"}])
    ]
    assert yaml.safe_load(files["CITATION.cff"])["authors"] == [
        {"family-names": "Doe", "given-names": "Jane"},
        {"name": "The shades group"},
    ]
    croissant = json.loads(files["pairs/_meta/croissant.json"])
    assert [one["name"] for one in croissant["creator"]] == ["Doe, Jane", "The shades group"]
    assert len(list(twinset.load(to, "pairs"))) == 6
    assert twinset.verify(out)["subsets"]["pairs"]["problems"] == []
    assert run(out, "--to", to) == 2
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["pairs/_meta/look.png", "pairs/_meta/rows", "look.html", "pairs"])
def test_links_are_not_published(out: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    (out / path).rename(out.parent / "elsewhere")
    (out / path).symlink_to(out.parent / "elsewhere")
    assert run(out, "--to", out.parent / "x") == 2
    assert f"{out / path}: a link" in capsys.readouterr().err
    assert not (out.parent / "x").exists()


def test_a_bucket_is_published_as_a_folder_is(out: Path, tmp_path: Path) -> None:
    bucket = fsspec.filesystem("memory")
    bucket.put(f"{out}/", "/publish/out/", recursive=True)
    for place, to in ((out, tmp_path / "a" / "same"), ("memory://publish/out", tmp_path / "b" / "same")):
        twinset.publish(place, to)
    sums = [(tmp_path / one / "same/SHA256SUMS").read_text() for one in "ab"]
    assert sums[0] == sums[1] and "pairs/test/00002.tar" in sums[0]


def test_what_is_missing_is_named_with_its_key(built: Path, recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(built, "--to", built.parent / "x") == 2
    said = capsys.readouterr().err
    assert "set authors" in said and "pairs: nothing to cite; set citation" in said
    (built / "pairs/test/00001.tar").unlink()
    twinset.build(str(recipe), built, settings=SAID)
    (built / "pairs/test/00001.tar").unlink()
    assert run(built, "--to", built.parent / "x") == 2
    assert "00001" in capsys.readouterr().err
    assert not (built.parent / "x").exists()


def test_licences_that_ask_for_a_credit_get_one(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, key = recipe.parent / "out", "subsets.pairs.source"
    twinset.build(str(recipe), out, settings=[*SAID, f"{key}.licence=CC-BY-4.0"])
    assert run(out, "--to", out.parent / "x") == 2
    assert f"6 samples have no credit; set {key}.credit" in capsys.readouterr().err
    twinset.build(str(recipe), out, settings=[*SAID, f"{key}.licence=CC-BY-4.0", f"{key}.credit=Roe"])
    assert run(out, "--to", out.parent / "x") == 0
    front = yaml.safe_load((out.parent / "x/README.md").read_text().split("---\n")[1])
    assert front["license"] == "cc-by-4.0"
    assert yaml.safe_load((out.parent / "x/CITATION.cff").read_text())["license"] == "CC-BY-4.0"


@pytest.mark.parametrize(
    ("citation", "right"),
    [
        ("Doe 2026", False),
        ("@misc{a, title = {x}}", True),
        ("@misc{no key}", False),
        ("@misc{a, t = {x}", False),
        ("@misc{a, t = {```}}", False),
    ],
)
def test_a_citation_is_bibtex(citation: str, right: bool, recipe: Path) -> None:
    settings = [f"citation={json.dumps(citation)}"]
    if right:
        assert twinset.load_recipe(str(recipe), settings).citation == citation
    else:
        with pytest.raises(twinset.WrongUse, match="citation"):
            twinset.load_recipe(str(recipe), settings)


@pytest.mark.parametrize("limit", ["LARGEST", "MOST_ENTRIES", "MOST_FILES"])
def test_limits_of_the_hub(
    out: Path, limit: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish, limit, 2)
    assert run(out, "--to", out.parent / "x") == 2
    assert "shard_size" in capsys.readouterr().err
    assert not (out.parent / "x").exists()


def test_a_path_that_somebody_wrote_into_a_card(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = out / "pairs/README.md"
    card.write_text(card.read_text() + f"\nMade from {out}/images.\n")
    assert run(out, "--to", out.parent / "x") == 2
    assert f"pairs/README.md: names {out}, a path of this machine" in capsys.readouterr().err


def test_a_full_disk_leaves_no_folder(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfileobj", full)
        assert run(out, "--to", out.parent / "x") == 1
    assert "free some room, or name another --to" in capsys.readouterr().err
    assert {path.name for path in out.parent.iterdir()} == {"out"}


def killed(at: str, *arguments: str) -> None:
    """Publish in a process that kills itself where a function is called. at: the function, as ``module:name``."""
    place, _, name = at.rpartition(".")
    code = (
        "import os, pkgutil\nfrom twinset.cli.main import main\n"
        f"setattr(pkgutil.resolve_name({place!r}), {name!r}, lambda *_, **__: os.kill(os.getpid(), 9))\n"
        f"main({['publish', *arguments]!r})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL


def test_a_killed_folder_is_begun_again(out: Path) -> None:
    killed("twinset.stages.publishing.publish.write_preview", str(out), "--to", str(out.parent / "x"))
    assert not (out.parent / "x").exists()
    assert run(out, "--to", out.parent / "x") == 0
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


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
    assert "contentUrl" in json.loads((out / "pairs/_meta/croissant.json").read_text())["distribution"][0]
    assert f"{hub.url}" not in (out / "pairs/_meta/croissant.json").read_text(), "the dataset's own stays as it was"
    sent = hub.sent()
    assert run(out, "--to", TO, "--public") == 0
    assert not dataset.private and len(dataset.commits) == 2 and hub.sent() == sent
    assert hub.unknown == []


def test_an_upload_that_is_cut_off_goes_on(out: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.fails = lambda method, path: method == "PUT" and len(hub.sent()) >= 5
    assert run(out, "--to", TO) == 1
    assert "run the same command again" in capsys.readouterr().err
    finished = hub.sent()
    assert len(hub.datasets["lab/shades"].commits) == 1
    hub.fails = lambda method, path: False
    assert run(out, "--to", TO) == 0
    again = hub.sent()[len(finished) :]
    assert 5 <= len(finished) < len(again) and not {*finished} & {*again}
    assert is_whole(published(hub))


def test_a_signed_address_is_not_shown(hub: Hub) -> None:
    url = "https://store.example/objects/1?X-Signature=secret"
    answer: Any = SimpleNamespace(status_code=403, headers={}, request=None, url=url)
    error = HfHubHTTPError(f"Forbidden for url '{url}'", response=answer)
    with pytest.raises(BuildFailed, match=r"objects/1'; nothing is half") as found, _explained(repository(TO)):
        raise error
    assert "secret" not in str(found.value)


def test_an_upload_that_is_killed_goes_on(out: Path, hub: Hub) -> None:
    killed("huggingface_hub:HfApi.create_commit", str(out), "--to", TO)
    assert len(hub.datasets["lab/shades"].commits) == 1
    sent = Counter(hub.sent())
    assert run(out, "--to", TO) == 0
    assert Counter(hub.sent()) == sent and {*sent.values()} == {1}
    assert is_whole(published(hub)) and not (out / "_spool").exists()


REQUESTS = {
    "create": ("POST", "/api/repos/create"),
    "info": ("GET", "/revision/main"),
    "tree": ("GET", "/tree/"),
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch"),
    "put": ("PUT", "/objects/"),
    "verify": ("POST", "/verify"),
    "validate": ("POST", "/validate-yaml"),
    "commit": ("POST", "/commit/"),
    "tag": ("POST", "/tag/"),
    "settings": ("PUT", "/settings"),
}


CUT = [*(("fails", name) for name in REQUESTS), *(("loses", name) for name in ("create", "commit", "tag", "settings"))]


@pytest.mark.parametrize(("how", "request_name"), CUT)
def test_a_connection_cut_at_any_request(
    out: Path, hub: Hub, how: str, request_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    method, part = REQUESTS[request_name]
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
    assert run(out, "--to", TO) == 2
    assert "--update" in capsys.readouterr().err
    assert "notes.txt" in published(hub)
    twinset.build(str(said), out, settings=[*SAID, "title=Other shades"])
    assert run(out, "--to", TO, "--update") == 0
    assert is_whole(published(hub)) and b"Other shades" in published(hub)["README.md"]
    assert len(hub.datasets["lab/shades"].commits) == 4
    assert [*dataset.tags.values()] == [dataset.commits[-1][0]], "the data are the same, so their tag moves"
    dataset.tags = dict.fromkeys(dataset.tags, dataset.commits[1][0])
    assert run(out, "--to", TO) == 2
    assert f"names another commit, {dataset.commits[1][0]}; --update moves it" in capsys.readouterr().err
    assert run(out, "--to", TO, "--update") == 0
    assert run(out, "--to", TO) == 0, "the same is there"
    assert len(hub.datasets["lab/shades"].commits) == 4


def test_two_publishers_at_once(out: Path, said: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(shutil.copytree(out, out.parent / "other"))
    twinset.build(str(said), other, settings=[*SAID, "title=Other shades"])
    met: list[int] = []

    def second(_: str, path: str) -> None:
        if "/commit/" in path and not met:
            met.append(0)
            met[0] = subprocess.run([sys.executable, "-m", "twinset.cli.main", "publish", other, "--to", TO]).returncode

    hub.before = second
    assert run(out, "--to", TO) == 1
    assert "somebody else changed it meanwhile" in capsys.readouterr().err
    assert met == [0] and len(hub.datasets["lab/shades"].commits) == 2
    assert is_whole(published(hub)) and b"Other shades" in published(hub)["README.md"]


@pytest.mark.parametrize("command", [["build", "RECIPE", "--out"], ["status"], ["publish", "--to", "x"]])
def test_out_on_the_hub_names_publish(command: list[str], said: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*(str(said) if one == "RECIPE" else one for one in command), TO]) == 2
    assert "twinset publish OUT --to hf://" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["hf://lab/shades", "hf://datasets/lab", "hf://datasets/lab/shades/data", "s3://x/y"])
def test_places_that_are_none(out: Path, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(out, "--to", to) == 2
    assert to in capsys.readouterr().err


READERS = """
import io, sys, datasets, mlcroissant, webdataset
endpoint, name, revision, tag = sys.argv[1:]
pairs = datasets.load_dataset(name, revision=revision)["test"]
assert len(pairs) == 6 and pairs[0]["image0.jpg"].size == (24, 16)
few = datasets.load_dataset(name, data_files="preview/pairs/data/*.parquet", revision=revision)["train"]
assert few[5]["image1"].size == (24, 16) and few[5]["caption1"] == pairs[5]["caption1.txt"]
at = f"{endpoint}/datasets/{name}/resolve/{revision}/pairs"
found = mlcroissant.Dataset(jsonld=f"{at}/_meta/croissant.json")
assert not found.metadata.ctx.issues.errors
assert {one["image0/content"].size for one in found.records("image0")} == {(24, 16)}
tars = webdataset.WebDataset(f"{at}/test/{{00000..00002}}.tar", shardshuffle=False).decode("pil")
assert [one["caption1.txt"] for one in tars] == pairs["caption1.txt"]
"""


@pytest.mark.slow
def test_everybody_reads_it_at_its_revision(out: Path, hub: Hub, tmp_path: Path) -> None:
    found = twinset.publish(out, TO, public=True)
    env = {**os.environ, "HF_TOKEN": "", "HOME": str(tmp_path / "home")}
    arguments: list[Any] = [hub.url, "lab/shades", found["revision"], found["tag"]]
    subprocess.run([sys.executable, "-c", READERS, *arguments], check=True, env=env)
    assert hub.unknown == []
