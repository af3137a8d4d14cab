"""`twinset publish` into a folder: what it holds, and what is refused.

What ``twinset plan`` prints.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import yaml

import twinset
from tests.cli.published import SAID, is_whole, killed, run
from twinset.cli.main import main
from twinset.generators.image_pairs import ImagePairs, NamedPairCandidate
from twinset.stages.publishing import publish


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


@pytest.mark.parametrize("path", ["pairs/_meta/look.png", "pairs/_meta/rows", "pairs"])
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


def test_a_page_is_written_again(out: Path) -> None:
    """Nothing vouches for look.html: somebody may have written into it."""
    page = (out / "look.html").read_text()
    (out / "look.html").write_text("<script>")
    assert run(out, "--to", out.parent / "x") == 0
    assert (out.parent / "x/look.html").read_text() == page


@pytest.mark.parametrize("path", ["../../secrets/*.tar", "/etc/*.tar", "other/test/*.tar", "https://a.example/b.tar"])
def test_a_card_that_would_load_other_files(out: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    card = out / "pairs/README.md"
    card.write_text(card.read_text().replace("test/*.tar", path, 1))
    assert run(out, "--to", out.parent / "x") == 2
    assert "pairs/README.md: no card with metadata (configs is not" in capsys.readouterr().err


@pytest.mark.parametrize("damaged", [b"", b"PAR1 no index"])
def test_a_damaged_index_is_named(out: Path, damaged: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "pairs/_meta/index.parquet").write_bytes(damaged)
    assert run(out, "--to", out.parent / "x") == 2
    said = capsys.readouterr().err
    assert "pairs/_meta/index.parquet" in said and "is not published" in said and "Traceback" not in said


def test_a_place_that_cannot_be_written(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"{out.parent}/.x-host.7.tmp")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    assert run(out, "--to", out.parent / "x") == 2
    said = capsys.readouterr().err
    assert (
        f"{out.parent / 'x'}: cannot be made (Read-only file system); name another --to" in said and ".x-" not in said
    )


def test_a_dataset_is_called_as_its_recipe_is(out: Path) -> None:
    assert run(out, "--to", out.parent / "x") == 0
    assert "\n# shades\n" in (out.parent / "x/README.md").read_text()
    about = yaml.safe_load((out.parent / "x/CITATION.cff").read_text())
    assert (about["title"], str(about["date-released"])) == ("shades", "2026-11-26")


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


@pytest.mark.slow
def test_a_killed_folder_is_begun_again(out: Path) -> None:
    killed("twinset.stages.publishing.publish.write_preview", str(out), "--to", str(out.parent / "x"))
    assert not (out.parent / "x").exists()
    assert run(out, "--to", out.parent / "x") == 0
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("to", ["hf://lab/shades", "hf://datasets/lab", "hf://datasets/lab/shades/data", "s3://x/y"])
def test_places_that_are_none(out: Path, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(out, "--to", to) == 2
    assert to in capsys.readouterr().err


Said = pytest.CaptureFixture[str]


def printed(capsys: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_plan_shows_the_dag_with_states_and_whole_names(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    captions = recipe.parent / "captions.tsv"
    captions.write_text("image_id\tcaption\n1.png\tA dog is holding a ball.\n")
    ratings = recipe.parent / "ratings.txt"
    ratings.write_text("Word\tBigram\tConc.M\ndog\t0\t5.0\nball\t0\t5.0\n")
    recipe.write_text(
        recipe.read_text()
        + f"""
  triplets:
    source: {{kind: genecis-triplets, graphs: graphs, concreteness: {ratings}, images: images, licence: CC0-1.0}}
    count: 1
stages:
  graphs:
    source: {{kind: scene-graphs, captions: {captions}}}
"""
    )
    assert main(["plan", str(recipe), "--json"]) == 0
    found = printed(capsys)
    assert found["stages"]["graphs"]["planned"] == 1 and found["stages"]["graphs"]["reads"] == []
    assert found["subsets"]["triplets"]["reads"] == ["graphs"]
    assert found["subsets"]["triplets"]["state"] == "waits for graphs"
    assert (found["subsets"]["pairs"]["planned"], found["subsets"]["pairs"]["shards"]) == (6, 3)
    assert found["subsets"]["pairs"]["examples"] == []
    assert main(["plan", str(recipe)]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^triplets +graphs +\? +\? +waits for graphs$", table, re.M) and "kept" not in table
    assert "?: known once the stages that it reads are built" in table


def test_a_plan_names_models_and_gpus_that_are_not_here_and_what_left_out_means(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (recipe.parent / "pairs.jsonl").open("a").write("{}\n")
    model = recipe.parent / "no-model"
    drawn = f"{{kind: stable-diffusion, model: {model}, device: gpu, licence: CC0-1.0}}"
    recipe.write_text(f"{recipe.read_text()}  drawn: {{source: {drawn}, count: 1}}\n")
    assert main(["plan", str(recipe)]) == 0
    said = capsys.readouterr()
    lacking = [line for line in said.err.splitlines() if line.startswith("not found here: ")]
    assert f"there is no model folder {model}" in lacking[0] and "device is gpu, but torch finds no" in lacking[1]
    (left_out,) = [line for line in said.out.splitlines() if "left out by the plan" in line]
    assert left_out.endswith("1 left out by the plan: no-id (records without an id, which is text or a whole number)")


def test_plan_below_out_says_what_is_done(recipe: Path, built: Path, capsys: Said) -> None:
    (built / "pairs/_meta/receipts/00001.json").unlink()
    assert main(["plan", str(recipe), "--out", str(built), "--json"]) == 0
    assert printed(capsys)["subsets"]["pairs"]["state"] == "2 of 3 shards"
    assert main(["plan", str(recipe), "--out", str(built), "--set", "subsets.pairs.count=4"]) == 0
    assert not (built / "_spool").exists()


def test_a_plan_prints_what_stages_take_and_whose_rates_these_are(recipe: Path, built: Path, capsys: Said) -> None:
    assert main(["plan", str(recipe)]) == 0
    assert (
        "nothing was built to measure it by. Build a few samples and name their folder with --like"
        in capsys.readouterr().out
    )
    assert main(["plan", str(recipe), "--like", str(built)]) == 0
    header, row, together = capsys.readouterr().out.splitlines()[-3:]
    assert header.split()[:4] == ["stage", "candidates", "shards", "samples"] and together.startswith("Together: ")
    assert re.fullmatch(rf"pairs +6 +3 +6 +[\d.]+ kB +[\d.]+ s +6 candidates in {built}", row)
    assert main(["plan", str(recipe), "--like", str(recipe.parent / "nowhere")]) == 2


def test_planning_again_says_that_shards_go_stale(
    recipe: Path, built: Path, capsys: Said, caplog: pytest.LogCaptureFixture
) -> None:
    changed = ["--set", "subsets.pairs.encoding.quality=50"]
    assert main(["plan", str(recipe), "--out", str(built), *changed]) == 0
    assert "its 3 finished shards will be made again" in caplog.text


def test_a_plan_that_fails_is_one_line_and_a_traceback_where_it_is_asked_for(
    recipe: Path, capsys: Said, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(self: ImagePairs) -> Iterator[NamedPairCandidate]:
        yield dict[str, NamedPairCandidate]()["lost"]

    monkeypatch.setattr(ImagePairs, "plan", plan)
    assert main(["plan", str(recipe)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pairs: plan() of source 'image-pairs' failed: KeyError: 'lost' (" in line and "test_publish.py:" in line
    assert "Traceback" not in caplog.text
    with caplog.at_level("INFO", "twinset"):
        main(["--verbose", "plan", str(recipe)])
    assert "Traceback" in caplog.text
