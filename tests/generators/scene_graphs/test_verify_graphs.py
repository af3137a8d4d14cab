"""`twinset status` and `twinset verify` of scene graphs: what is done, and every problem with its remedy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.main import main
from generators.scene_graphs.parse import parse_captions
from manifests.errors import WrongUse

CAPTIONS = 10
SHARD = 3


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captions") / "c.tsv"
    lines = [f"a dog on a sofa\thttp://x.org/{n}\n" for n in range(CAPTIONS)]
    path.write_text("".join([*lines, "broken\n"]))
    return path


@pytest.fixture(scope="module")
def parsed(captions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parsed") / "out"
    parse_captions([captions], str(out), shard_size=SHARD)
    return out


@pytest.fixture
def out(parsed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(parsed, tmp_path / "out")


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_all_is_well(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relations = json.loads((out / "_meta/index.json").read_text())["relations"]
    for command in ("status", "verify"):
        assert main([command, str(out)]) == 0
        said = capsys.readouterr()
        assert said.out == (
            f"4 of 4 shards, 10 of 10 captions: {relations} relations, 0 captions without one\n"
            "1 left out: wrong-columns\n"
        )
        assert said.err == ""
        assert main([command, str(out), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["scene_graphs"] == {
            "planned": 10,
            "parsed": 10,
            "relations": relations,
            "without": 0,
            "left_out": {"wrong-columns": 1},
            "shards": 4,
            "done": 4,
            "missing": 0,
            "stale": {},
            "problems": [],
        }


def test_status_of_what_is_not_finished(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "_meta/receipts/00001.json").unlink()
    (out / "relations/00002.parquet").write_bytes(b"PAR1")
    assert main(["status", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("2 of 4 shards, 4 of 10 captions: ")
    assert said[2].startswith("shard 00002: stale, relations/00002.parquet has 4 bytes, its receipt says ")
    assert said[3] == "2 shards are not done; run the same twinset parse again"
    assert main(["status", str(out), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["scene_graphs"]
    assert (counts["parsed"], counts["done"], counts["missing"], list(counts["stale"])) == (4, 2, 1, ["00002"])


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    ("damage", "problems"),
    [
        (lambda out: (out / "_meta/receipts/00001.json").unlink(), ["shard 00001: not parsed yet; run the same"]),
        (lambda out: (out / "_meta/receipts/00001.json").write_text("{"), ["shard 00001: .*cannot be read; run the"]),
        (
            lambda out: shutil.copy(out / "_meta/receipts/00002.json", out / "_meta/receipts/00001.json"),
            ["shard 00001: _meta/receipts/00001.json is of another shard; run the same"],
        ),
        (
            lambda out: edit_json(out / "_meta/receipts/00001.json", slice="other"),
            ["shard 00001: the captions, the pipeline or a version changed; run the same"],
        ),
        (
            lambda out: edit_json(out / "_meta/receipts/00001.json", relations=7, without=1),
            [
                "relations/00001.parquet: not the relations .* its receipt counts; remove _meta/receipts/00001.json",
                "_meta/index.json: not what the receipts add up to; run the same",
            ],
        ),
        (
            lambda out: (out / "relations/00003.parquet").unlink(),
            ["shard 00003: relations/00003.parquet is absent; run the same"],
        ),
        (
            lambda out: shutil.copy(out / "captions/00000.parquet", out / "captions/00001.parquet"),
            [r"captions/00001.parquet: other captions than were planned; remove _meta/stage.json there and run"],
        ),
        (
            lambda out: [(out / f"captions/0000{n}.parquet").unlink() for n in (0, 2)],
            [r"captions/00000.parquet: cannot be read .*remove _meta/stage.json", r"captions/00002.parquet: cannot be"],
        ),
        (lambda out: (out / "_meta/index.json").unlink(), ["_meta/index.json: absent; run the same"]),
        (
            lambda out: edit_json(out / "_meta/index.json", relations=7),
            ["_meta/index.json: not what the receipts add up to; run the same"],
        ),
        (lambda out: (out / "_meta/stage.json").unlink(), ["_meta/stage.json: absent, or not a record of this ver"]),
        (lambda out: (out / "_meta/stage.json").write_text("[1]"), ["_meta/stage.json: absent, or not a record of"]),
        (
            lambda out: edit_json(out / "_meta/stage.json", facts={}, captions=11),
            [
                "_meta/stage.json: its digest is not that of its facts; remove it and run",
                "_meta/stage.json: not the counts that its shards add up to; remove it and run",
                "_meta/index.json: not what the receipts add up to",
            ],
        ),
        (lambda out: (out / "_meta/shards.parquet").unlink(), ["_meta/shards.parquet: absent, or not a list of sha"]),
        (
            lambda out: pq.write_table(
                pq.read_table(out / "_meta/shards.parquet").slice(0, 3), out / "_meta/shards.parquet"
            ),
            ["_meta/shards.parquet: not the shards that _meta/stage.json was written for; run the same"],
        ),
        (
            lambda out: pq.write_table(pa.table({"a": [1]}), out / "relations/00004.parquet"),
            ["relations/00004.parquet: not of these captions; move it elsewhere"],
        ),
    ],
)
def test_verify_names_every_problem(
    out: Path, capsys: pytest.CaptureFixture[str], damage: Damage, problems: list[str]
) -> None:
    damage(out)
    assert main(["verify", str(out), "--json"]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == json.loads(said.out)["scene_graphs"]["problems"]
    for found, expected in zip(said.err.splitlines(), problems, strict=True):
        assert re.match(expected, found)


def test_one_changed_byte_is_found_by_verify_and_mended_by_the_same_command(
    captions: Path, out: Path, parsed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "relations/00001.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert main(["status", str(out)]) == 0
    assert "4 of 4 shards" in capsys.readouterr().out  # by their sizes
    assert main(["verify", str(out)]) == 1
    assert "shard 00001: relations/00001.parquet has sha256 " in capsys.readouterr().err
    parse_captions([captions], str(out), shard_size=SHARD)
    assert path.read_bytes() == (parsed / "relations/00001.parquet").read_bytes()
    assert main(["verify", str(out)]) == 0


def test_wrong_use(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(out), "--media"]) == main(["verify", str(out), "--only", "x"]) == 2
    assert "holds scene graphs, not a dataset: leave out --only and --media" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["status", str(tmp_path / "empty")]) == main(["verify", str(tmp_path / "empty")]) == 2
    assert "holds no dataset" in capsys.readouterr().err
    with pytest.raises(WrongUse, match="no captions are named"):
        parse_captions([], str(out))
