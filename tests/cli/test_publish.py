"""`twinset publish` into a folder and to a stand-in for the Hub, and what ``twinset plan`` prints."""

import getpass
import json
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

import twinset
from tests.cli.conftest import PUBLISHED, is_whole, run
from tests.cli.hub import READS, Files, Hub, answer
from twinset.cli.main import main

Printed = pytest.CaptureFixture[str]
CHECKOUT = Path(__file__).resolve().parents[2]
PRIVATE = ("_meta/log", "_review", "_spool")  # as docs/layout.md has it
TO = "hf://datasets/lab/shades"


def test_a_folder_is_laid_out_as_the_hub_shows_it(out: Path, capsys: Printed) -> None:
    to = out.parent / "published"
    (out / "pairs/_meta/mine.txt").write_text("a note")
    (out / "pairs/_meta/look-4.png").write_bytes(b"a sheet")
    for name in ("mine.json", "mine.png", "rows/.mine", "rows/mine.parquet", "plan/mine.parquet", "receipts/mine.json"):
        (out / "pairs/_meta" / name).write_bytes(b"{}")
    page = (out / "look.html").read_bytes()
    (out / "look.html").write_text("<script>")  # nothing vouches for it: it is written again
    assert run(out, "--to", to) == 0
    files = {path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert is_whole(files) and files["look.html"] == page
    assert "preview/pairs/data/test-00000-of-00001.parquet" in files
    assert not [path for path in files if "/log/" in path or "mine" in path or "look-4" in path]
    front = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    (config,) = front["configs"]
    assert (config["config_name"], config["data_files"]) == ("pairs", [{"split": "test", "path": "pairs/test/*.tar"}])
    assert len(list(twinset.load(to, "pairs"))) == 6
    assert twinset.verify(out)["subsets"]["pairs"]["problems"] == []
    assert run(out, "--to", to) == 2
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["pairs/_meta/look.png", "pairs"])
def test_links_are_not_published(out: Path, path: str, capsys: Printed) -> None:
    (out / path).rename(out.parent / "elsewhere")
    (out / path).symlink_to(out.parent / "elsewhere")
    assert run(out, "--to", out.parent / "x") == 2
    assert f"{out / path}: a link" in capsys.readouterr().err
    assert not (out.parent / "x").exists()


def test_what_is_missing_is_named_with_its_key(out: Path, recipe: Path, capsys: Printed) -> None:
    (out / "pairs/test/00001.tar").unlink()
    assert run(out, "--to", out.parent / "x") == 2
    assert "00001" in capsys.readouterr().err
    twinset.build(str(recipe), out)
    assert run(out, "--to", out.parent / "x") == 2
    printed = capsys.readouterr().err
    assert "set authors" in printed and "pairs: nothing to cite; set citation" in printed
    assert not (out.parent / "x").exists()


def test_a_card_that_would_load_other_files(out: Path, capsys: Printed) -> None:
    card = out / "pairs/README.md"
    card.write_text(card.read_text().replace("test/*.tar", "../../secrets/*.tar", 1))
    assert run(out, "--to", out.parent / "x") == 2
    assert "pairs/README.md: no card with the metadata of this build; remove it" in capsys.readouterr().err


def test_a_plan_prints_what_stages_take_and_whose_rates_these_are(recipe: Path, out: Path, capsys: Printed) -> None:
    assert main(["plan", str(recipe)]) == 0
    assert "not known; build a few samples, and name their folder with --like" in capsys.readouterr().out
    assert main(["plan", str(recipe), "--like", str(out)]) == 0
    header, row = capsys.readouterr().out.splitlines()[-2:]
    assert header.split()[:4] == ["stage", "candidates", "shards", "samples"]
    assert row.startswith("pairs  6 ") and row.endswith(f"6 candidates in {out}")
    assert main(["plan", str(recipe), "--like", str(recipe.parent / "nowhere")]) == 2


def contents(path: Path) -> Iterator[bytes]:
    """What can be read in a file: of tables and tars what is within."""
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pylist()).encode()
        yield repr(pq.read_schema(path).metadata).encode()
    elif path.suffix == ".tar":
        with tarfile.open(path) as tar:
            for member in tar:
                yield f"{member.name} {member.uname} {member.gname}".encode()
                stream = tar.extractfile(member)
                yield stream.read() if stream and member.name.endswith((".json", ".txt")) else b""
    else:
        yield path.read_bytes()


def test_nothing_published_names_a_path_a_person_or_a_host(recipe: Path) -> None:
    """`_meta/recipe.json` was published with the user's absolute paths, which name people, projects and machines."""
    folder = recipe.parent
    (folder / "images/0-0.png").write_bytes(b"no picture")  # a rejection, with its detail
    (folder / "images/1-1.png").unlink()
    out = folder / "out"
    twinset.build(str(recipe), out, settings=["max_missing=0.5", *PUBLISHED])
    twinset.look(out)
    twinset.publish(out, folder / "published")
    names = [str(folder), str(Path.home()), str(CHECKOUT), socket.gethostname(), f"/{getpass.getuser()}/"]
    secrets = [name.encode() for name in names if len(name) > 3]
    looked = 0
    for path in (*out.rglob("*"), *(folder / "published").rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_file() and not any(f"{part}/" in relative for part in PRIVATE):
            looked += 1
            for content in contents(path):
                assert not [name for name in secrets if name in content], relative
    assert looked > 40
    assert str(folder).encode() in (out / "pairs/_meta/log/recipe.json").read_bytes()  # which the test would have seen


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setattr("huggingface_hub.HfApi", hub := Hub())
    return hub


def published(hub: Hub) -> Files:
    """What the Hub shows."""
    return hub.at("main")[1]


def test_private_first_then_public(out: Path, hub: Hub, capsys: Printed) -> None:
    assert run(out, "--to", TO, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert hub.private and len(hub.commits) == 2
    assert hub.commits[1][0] == result["revision"] == hub.tags[result["tag"]]
    assert is_whole(published(hub))
    assert not (out / "_spool").exists()
    croissant = json.loads(published(hub)["pairs/_meta/croissant.json"])
    address = f"{hub.endpoint}/datasets/lab/shades/resolve/{result['tag']}/"
    assert croissant["distribution"][0]["contentUrl"].startswith(address)
    assert hub.endpoint not in (out / "pairs/_meta/croissant.json").read_text(), "the dataset's own stays as it was"
    assert run(out, "--to", TO, "--public") == 0
    assert not hub.private and len(hub.commits) == 2


CHANGES = ("create_repo", "create_commit", "create_tag", "update_repo_settings")


@pytest.mark.slow
@pytest.mark.parametrize("call", CHANGES)
@pytest.mark.parametrize("how", ["fails", "loses"])
def test_a_connection_cut_at_any_request(out: Path, hub: Hub, how: str, call: str, capsys: Printed) -> None:
    setattr(hub, how, lambda asked: asked == call)
    assert run(out, "--to", TO, "--public") == 1
    assert "nothing is half-published; run the same command again" in capsys.readouterr().err
    files = published(hub) if hub.commits else {}
    assert len(files) <= 1 or is_whole(files)
    setattr(hub, how, lambda asked: False)
    assert run(out, "--to", TO, "--public") == 0
    assert is_whole(published(hub)) and len(hub.commits) == 2 and not hub.private
    assert [*hub.tags.values()] == [hub.commits[1][0]]


def test_a_token_without_the_right(out: Path, hub: Hub, capsys: Printed) -> None:
    for token, remedy in ((READS, "write access"), ("hf_wrong", "hf auth login")):
        hub.token = token
        assert run(out, "--to", TO) == 2
        assert remedy in capsys.readouterr().err and hub.commits == []


def test_a_signed_address_is_not_shown(out: Path, hub: Hub, capsys: Printed) -> None:
    def refuse(call: str) -> bool:
        raise answer(403, "https://store.example/objects/1?X-Signature=secret")

    hub.fails = refuse
    assert run(out, "--to", TO) == 1
    printed = capsys.readouterr().err
    assert "objects/1'; nothing is half" in printed.replace(")", "") and "secret" not in printed


@pytest.mark.slow
def test_a_repository_with_other_files_needs_update(out: Path, shades: Path, hub: Hub, capsys: Printed) -> None:
    assert run(out, "--to", TO) == 0
    hub.private = False
    assert run(out, "--to", TO, "--update") == 2
    assert "lab/shades is public" in capsys.readouterr().err and len(hub.commits) == 2
    hub.private = True
    hub.commit({**published(hub), "notes.txt": b"mine"})
    assert run(out, "--to", TO) == 2 and "notes.txt" in published(hub)
    assert "--update" in capsys.readouterr().err
    twinset.build(str(shades), out, settings=[*PUBLISHED, "title=Other shades"])
    assert run(out, "--to", TO, "--update") == 0
    assert is_whole(published(hub)) and b"Other shades" in published(hub)["README.md"]
    assert len(hub.commits) == 4
    assert [*hub.tags.values()] == [hub.commits[-1][0]], "the data are the same, so their tag moves"
    assert run(out, "--to", TO) == 0 and len(hub.commits) == 4, "the same is there"
