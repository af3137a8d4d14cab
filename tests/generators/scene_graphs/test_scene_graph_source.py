"""Scene graphs as a table source: a candidate a caption, a row a relation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.generators.finished_stage import finish
from twinset.contracts import plan as repeated_ids
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption
from twinset.generators.scene_graphs import source
from twinset.generators.scene_graphs.relations import BATCH, Relation, SceneGraphParser, parser_of
from twinset.generators.scene_graphs.source import SPANS, TEXTS, WORDS, SceneGraphGenerator, SceneGraphs
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context


def graphs(*captions: Path, **settings: Any) -> SceneGraphGenerator:
    source = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": list(map(str, captions)), **settings})
    return source.open(Context("scene-graphs"))


def test_rows_are_the_relations_of_the_captions(own_tsv: Path, small_parser: SceneGraphParser, tmp_path: Path) -> None:
    captions = [one for one in caption_source(own_tsv).read() if isinstance(one, Caption)]
    found = list(small_parser.relations([one.caption for one in captions]))
    expected = [
        (*(getattr(c, name) for name in TEXTS), *r[:-1])
        for c, relations in zip(captions, found, strict=True)
        for r in relations
    ]
    earlier = finish(graphs(own_tsv).source, tmp_path)
    rows = earlier.read((*TEXTS, *WORDS, *SPANS)).to_pylist()
    assert [tuple(row.values()) for row in rows] == expected
    assert earlier.record.planned == len(captions) > earlier.record.kept > 3 * BATCH
    assert earlier.record.kept == sum(bool(relations) for relations in found)


def test_what_cannot_be_read_is_left_out_with_its_place(own_tsv: Path) -> None:
    made = graphs(own_tsv)
    planned = list(made.plan())
    assert planned[0].place == "captions.tsv line 1"
    assert made.excluded == {"empty-caption": 1}
    assert made.excluded.examples == [("empty-caption", "captions.tsv line 2")]


def test_a_caption_without_relations_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"caption": "dogs", "image": "1"}\n{"caption": "a dog on a sofa", "image": "2"}\n')
    made = graphs(path)
    without, found = made.make(list(made.plan()))
    assert isinstance(without, Rejected) and (without.reason, without.detail) == ("no-relation", "1\tdogs")
    assert isinstance(found, TableRows) and [row["object"] for row in found.rows] == ["sofa"]


def test_ids_with_tabs_and_line_breaks_name_one_photo_in_rows_and_rejections(tmp_path: Path) -> None:
    path, odd = tmp_path / "c.jsonl", "a\tb\nc\u2028d.jpg"
    texts = ("dogs\tand cats", "a dog on a sofa")
    path.write_text("\n".join(json.dumps({"caption": text, "image": odd}) for text in texts))
    made = graphs(path)
    without, found = made.make(list(made.plan()))
    assert isinstance(without, Rejected) and isinstance(found, TableRows)
    (row,) = found.rows
    # The triplets' rules look for the photo of a rejection before its first tab (`generators.triplets.graphs`).
    assert without.detail.partition("\t") == (row["photo"], "\t", "dogs\tand cats")
    assert row["image_id"] == odd


def test_the_pipeline_and_the_captions_are_part_of_what_is_made(own_tsv: Path, tmp_path: Path) -> None:
    made = graphs(own_tsv)
    assert made.weights() == {"pipeline": find_pipeline().digest}
    assert (made.device(), made.isolation, made.micro_batch) == ("cpu", "process", BATCH)
    other = tmp_path / "captions.tsv"
    other.write_text("a dog on a sofa\thttp://example.org/1.jpg\n")
    assert made.inputs() != graphs(other).inputs()


def test_a_second_parser_says_which_relations_it_finds_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.jsonl"
    captions = ["a man on a horse with a hat", "a dog on a sofa", "dogs"]
    lines = (json.dumps({"caption": caption, "image": str(number)}) for number, caption in enumerate(captions))
    path.write_text("\n".join(lines))
    made = graphs(path, confirm="en_ewt_sm")
    assert made.weights() == {"pipeline": find_pipeline().digest, "confirm": find_pipeline("en_ewt_sm").digest}

    class Other:
        def relations(self, captions: list[str]) -> Iterator[list[Relation]]:
            for found in parser_of(find_pipeline()).relations(captions):
                yield [one._replace(subject_lemma="x") for one in found if one.object != "hat"]

    monkeypatch.setattr(source, "parser_of", lambda one: Other() if one.name == "en_ewt_sm" else parser_of(one))
    rows = [row for one in made.make(list(made.plan())) if isinstance(one, TableRows) for row in one.rows]
    assert {(row["object"], row["confirmed"]) for row in rows} == {("horse", True), ("hat", False), ("sofa", True)}
    alone = graphs(path)
    rows = [row for one in alone.make(list(alone.plan())) if isinstance(one, TableRows) for row in one.rows]
    assert {row["confirmed"] for row in rows} == {None}


def test_duplicated_ids_are_refused_naming_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [f"{n}.jpg#{k}\ta dog on a sofa\n" for n in range(5) for k in range(3)]
    path = tmp_path / "t.txt"
    path.write_text("".join([*tokens, tokens[4]]))
    twice = r"caption id '1\.jpg#1' is duplicated, at t\.txt line 5 and t\.txt line 16; ids tell"
    with pytest.raises(WrongUse, match=twice):
        list(graphs(path).plan())
    monkeypatch.setattr(repeated_ids, "_hash", lambda identifier: 7)  # equal hashes are not yet a repetition
    path.write_text("".join(tokens))
    assert len(list(graphs(path).plan())) == 15


def test_several_files_are_one_source(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": 1, "caption": "a dog on a sofa", "image": "1"}))
    made = graphs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert [one.caption_id for one in made.plan()] == ["a/1", "b/1"]
    one = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": str(tmp_path / "a.jsonl")})
    assert one.captions == (tmp_path / "a.jsonl",) and one.locations == ("captions",)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"captions": "gone.tsv"},
            r"graphs\.source\.captions: there is no file or folder .*gone\.tsv; name it",
        ),
        ({"captions": "photo.jpg"}, r"stages\.graphs\.source\.captions: .*photo\.jpg: captions of an unknown kind"),
        ({"pipeline": "en_core_web_zz"}, r"stages\.graphs\.source\.pipeline: .*neither an installed package nor"),
        ({"confirm": "en_core_web_zz"}, r"stages\.graphs\.source\.confirm: .*neither an installed package nor"),
        ({"confirm": "en_captions_sm"}, r"stages\.graphs\.source\.confirm: .*name another one, or leave confirm out"),
    ],
)
def test_inputs_are_checked_before_any_work(tmp_path: Path, settings: dict[str, str], problem: str) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff")
    (tmp_path / "c.tsv").write_text("a dog\thttp://example.org/1.jpg\n")
    captions = tmp_path / settings.pop("captions", "c.tsv")
    source = graphs(captions, **settings).source
    with pytest.raises(WrongUse, match=problem):
        source.check_inputs("stages.graphs.source", ("annotations", "media", "models"))


def test_what_holds_no_caption_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_bytes(b"\x00\x01\n" * 3)
    with pytest.raises(
        WrongUse, match=r"c\.tsv: no caption in it can be read as tsv \(3 lines or rows left out, first line 1"
    ):
        list(graphs(tmp_path / "c.tsv").plan())


def test_a_pipeline_that_cannot_be_loaded_is_said(own_tsv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    (folder / "config.cfg").write_text("[nlp]\nlang = 'xx'\npipeline = [broken]\n")
    (folder / "meta.json").write_text('{"lang": "en", "name": "broken"}')
    made = graphs(own_tsv, pipeline=str(folder))
    with pytest.raises(WrongUse, match=r"pipeline .*pipeline: spaCy cannot load it"):
        list(made.make(list(made.plan())[:1]))
