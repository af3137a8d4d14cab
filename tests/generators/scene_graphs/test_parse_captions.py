"""Relations on disk: the same bytes on any number of processes and after any interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset
import pytest

from cli.main import main
from generators.scene_graphs import caption_plan, workers
from generators.scene_graphs.caption_sources import caption_source
from generators.scene_graphs.captions import Caption
from generators.scene_graphs.parse import parse_captions
from generators.scene_graphs.relations import SceneGraphParser
from manifests.errors import BuildFailed, WrongUse
from shards.storage.store import Store
from tests.generators.scene_graphs.parsed_folders import SHARD, contents, parse


def test_relations_on_disk_are_those_of_the_captions(
    own_tsv: Path, whole: Path, small_parser: SceneGraphParser
) -> None:
    captions = [one for one in caption_source(own_tsv).read() if isinstance(one, Caption)]
    found = list(small_parser.relations([one.caption for one in captions]))
    expected = [(c.caption_id, c.image_id, r) for c, relations in zip(captions, found, strict=True) for r in relations]
    rows = pyarrow.dataset.dataset(whole / "relations").to_table().to_pylist()
    names = ("subject", "predicate", "object", "subject_lemma", "predicate_lemma", "object_lemma")
    spans = ("subject_start", "subject_end", "object_start", "object_end")
    assert [tuple(row[name] for name in ("caption_id", "image_id", *names, *spans)) for row in rows] == [
        (caption_id, image_id, *(getattr(r, name) for name in names), *r.subject_span, *r.object_span)
        for caption_id, image_id, r in expected
    ]
    index = json.loads((whole / "_meta/index.json").read_bytes())
    assert (index["captions"], index["relations"]) == (len(captions), len(expected))
    assert index["without"] == sum(not relations for relations in found) > 0
    assert index["left_out"] == {"empty-caption": 1}
    assert index["examples"] == [{"place": "line 2", "reason": "empty-caption"}]
    shards = [pyarrow.dataset.dataset(path).count_rows() for path in sorted((whole / "captions").iterdir())]
    assert shards == [SHARD] * (len(captions) // SHARD) + [len(captions) % SHARD]


@pytest.mark.parametrize("count", [2, 4])
def test_the_same_bytes_on_any_number_of_processes(own_tsv: Path, whole: Path, count: int, tmp_path: Path) -> None:
    parse(own_tsv, tmp_path / "out", count)
    assert contents(tmp_path / "out") == contents(whole)


def test_an_object_store_gets_the_same_bytes(own_tsv: Path, whole: Path) -> None:
    for _ in range(2):
        parse_captions([own_tsv], "memory://graphs/out", shard_size=SHARD)
        store = Store("memory://graphs/out")
        assert {name: store.read(name) for name in contents(whole)} == contents(whole)
    assert main(["verify", "memory://graphs/out"]) == main(["status", "memory://graphs/out"]) == 0


@pytest.mark.parametrize(
    ("name", "damage", "made_again"),
    [
        ("_meta/receipts/00003.json", "lost", 1),
        ("_meta/receipts/00003.json", "changed", 1),
        ("relations/00003.parquet", "lost", 1),
        ("relations/00003.parquet", "changed", 1),
        ("_meta/index.json", "lost", 0),
        ("_meta/index.json", "changed", 0),
        ("_meta/stage.json", "lost", 0),
        ("_meta/stage.json", "changed", 0),
        ("_meta/shards.parquet", "lost", 0),
        ("_meta/shards.parquet", "cut", 0),
        ("captions/00003.parquet", "lost", 0),
    ],
)
def test_what_is_lost_or_changed_is_made_again(
    own_tsv: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str, made_again: int
) -> None:
    out = tmp_path / "out"
    for path, data in contents(whole).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    (out / "_meta/log").mkdir()
    (out / "_meta/log/plan.json").write_bytes((whole / "_meta/log/plan.json").read_bytes())
    made: list[int] = []
    inner = workers.make_one
    monkeypatch.setattr(workers, "make_one", lambda *arguments: made.append(1) or inner(*arguments))
    if damage == "lost":
        (out / name).unlink()
    elif damage == "cut":
        (out / name).write_bytes((out / name).read_bytes()[:-9])
    else:
        (out / name).write_bytes(b"{}" + (out / name).read_bytes()[2:])
    parse(own_tsv, out)
    assert contents(out) == contents(whole) and len(made) == made_again


def test_other_captions_than_planned_are_refused(own_tsv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    parse(own_tsv, out, shard_size=600)
    (out / "captions/00001.parquet").write_bytes((out / "captions/00000.parquet").read_bytes())
    (out / "_meta/receipts/00001.json").unlink()
    with pytest.raises(BuildFailed, match=r"captions/00001\.parquet: other captions.*remove _meta/stage\.json"):
        parse(own_tsv, out, shard_size=600)
    assert not (out / "_meta/index.json").exists()


def test_other_captions_replace_those_before(tmp_path: Path) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    records = [json.dumps({"caption": f"a dog on {n} sofas", "image": f"{n}.jpg"}) for n in range(9)]
    path.write_text("\n".join(records))
    first = parse(path, out, shard_size=3)
    path.write_text("\n".join(records[:4]))
    second = parse(path, out, shard_size=3)
    assert (first.shards, second.shards, second.captions) == (3, 2, 4) and first.digest != second.digest
    folders = ("captions", "relations", "_meta/receipts")
    assert [len(list((out / folder).iterdir())) for folder in folders] == [2, 2, 2]
    assert pyarrow.dataset.dataset(out / "relations").count_rows() == second.relations


def test_captions_without_any_relation_are_counted(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"caption": "dogs", "image": "1"}\n{"caption": "hello", "image": "2"}\n')
    index = parse(tmp_path / "c.jsonl", tmp_path / "out")
    assert (index.captions, index.without, index.relations) == (2, 2, 0)
    assert pyarrow.dataset.dataset(tmp_path / "out/relations").count_rows() == 0


def test_repeated_ids_are_refused_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [f"{n}.jpg#{k}\ta dog on a sofa\n" for n in range(5) for k in range(3)]
    (tmp_path / "t.txt").write_text("".join([*tokens, tokens[4]]))
    with pytest.raises(WrongUse, match=r"t\.txt: caption id '1\.jpg#1' stands twice, at line 5 and line 16"):
        parse(tmp_path / "t.txt", tmp_path / "out", shard_size=4)
    monkeypatch.setattr(caption_plan, "_hash", lambda caption_id: 7)  # equal hashes of different ids are no repetition
    (tmp_path / "t.txt").write_text("".join(tokens))
    assert parse(tmp_path / "t.txt", tmp_path / "out", shard_size=4).captions == 15


def test_what_holds_no_caption_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.tsv").write_bytes(b"\x00\x01\n" * 3)
    assert main(["parse", str(tmp_path / "c.tsv"), "--to", str(tmp_path / "out"), "--workers", "1"]) == 2
    assert (
        "c.tsv: no caption in it can be read as tsv (3 lines or rows left out, first line 1" in capsys.readouterr().err
    )
    assert main(["parse", str(tmp_path / "gone.tsv"), "--to", str(tmp_path / "out")]) == 2
    assert "gone.tsv: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["captions/00000.parquet", "relations/mine.parquet", "_meta/stage.json"])
def test_files_of_others_are_not_replaced(own_tsv: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_bytes(b"mine")
    with pytest.raises(WrongUse, match=r"(captions|relations|_meta) holds files that twinset parse did not write"):
        parse(own_tsv, out)
    assert {path for path in out.rglob("*")} == {out / name, (out / name).parent}
    assert (out / name).read_bytes() == b"mine"


REPEATED = [json.dumps({"id": n % 7, "caption": "a dog on a sofa", "image": f"{n}.jpg"}) for n in range(8)]


@pytest.mark.parametrize(
    ("lines", "count", "there"),
    [(REPEATED, 1, False), (REPEATED, 1, True), (REPEATED, 2, False), (["no json"], 1, False), ([], 1, True)],
)
def test_a_parse_that_is_refused_leaves_nothing_behind(
    tmp_path: Path, lines: list[str], count: int, there: bool
) -> None:
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    out = tmp_path / "new/out"
    if there:
        out.mkdir(parents=True)
    with pytest.raises(WrongUse, match=r"c\.jsonl: (caption id '0' stands twice|no caption in it can be read)"):
        parse(tmp_path / "c.jsonl", out, count, shard_size=3)
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "c.jsonl", *([out, out.parent] if there else [])])


def test_a_parse_that_is_refused_changes_nothing_of_the_one_before(tmp_path: Path) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    path.write_text("\n".join(REPEATED[:7]))
    parse(path, out, shard_size=3)
    before = contents(out)
    path.write_text("\n".join(REPEATED))
    with pytest.raises(WrongUse, match="stands twice"):
        parse(path, out, shard_size=3)
    assert contents(out) == before and not (out / "_spool").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_a_pipeline_that_cannot_be_loaded_is_refused_before_anything_is_written(
    own_tsv: Path, tmp_path: Path, count: int
) -> None:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    (folder / "config.cfg").write_text("[nlp]\nlang = 'xx'\npipeline = [broken]\n")
    (folder / "meta.json").write_text('{"lang": "en", "name": "broken"}')
    with pytest.raises(WrongUse, match=r"--pipeline .*pipeline: spaCy cannot load it"):
        parse_captions([own_tsv], str(tmp_path / "out"), str(folder), count)
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.tsv").write_text("a dog on a sofa\thttp://x.org/1\nbroken\ndogs\thttp://x.org/2\n")
    command = ["parse", str(tmp_path / "c.tsv"), "--to", str(tmp_path / "out"), "--workers", "1"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.out == "2 captions, 1 relations, 1 captions without one\n1 left out: wrong-columns\n"
    assert said.err == f"{tmp_path}/c.tsv: line 2: left out, wrong-columns\n"
    assert main([*command, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["captions"], counts["relations"], counts["left_out"]) == (2, 1, {"wrong-columns": 1})
    assert main([*command, "--pipeline", "en_core_web_zz"]) == 2
    assert "--pipeline en_core_web_zz: neither an installed package nor a folder" in capsys.readouterr().err
