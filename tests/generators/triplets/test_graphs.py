"""Relations as they are loaded from a finished stage of scene graphs."""

import json
from pathlib import Path

import pytest

from tests.generators.finished_stage import finish
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.generators.scene_graphs.source import TEXTS, SceneGraphs
from twinset.generators.triplets.graphs import WORDS, load_relations
from twinset.shards.finished_stage import FinishedStage

CAPTIONS = [
    ("a man with a hat on a horse", "m0"),
    ("a dog with a ball", "d0"),
    ("snow", "s0"),
    ("a man in a hat", "m1"),
    ("two dogs chewing a stick near a tree", "d0"),
    ("a bird on a tree", "t0"),
    ("rain", "r0"),
]


def parsed(folder: Path, row_group: int) -> FinishedStage:
    lines = [
        json.dumps({"id": f"c{n}", "image_id": image, "caption": caption, "image": f"{image}.jpg"})
        for n, (caption, image) in enumerate(CAPTIONS)
    ]
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return finish(SceneGraphs(kind="scene-graphs", captions=(folder / "captions.jsonl",)), folder, row_group=row_group)


@pytest.mark.parametrize("row_group", [1, 2, 1000])  # relations of one caption lie in one row group or in several
def test_columns_are_those_of_the_stage(tmp_path: Path, row_group: int) -> None:
    earlier = parsed(tmp_path, row_group)
    relations, rows = load_relations(earlier), earlier.read((*TEXTS, *TERMS, *WORDS)).to_pylist()
    rows = [{"terms": Terms.taken(row).packed, **row} for row in rows]
    texts = relations.texts.to_pylist()
    found = [
        {name: relations.words[getattr(relations, name)[row]] for name in WORDS} | texts[relations.caption[row]]
        for row in range(len(relations))
    ]
    assert found == rows and len(rows) > len(texts)
    images = {
        (texts[caption]["image_id"], image) for caption, image in zip(relations.caption, relations.image, strict=True)
    }
    assert len(images) == len({one for one, _ in images}) == len({image for _, image in images}) > 1
    assert relations.words == sorted(relations.words)
    assert relations.captions == len(CAPTIONS) > len(texts) == len({row["caption_id"] for row in rows})
    assert list(texts[0]) == [*TEXTS, "terms"] and texts[0]["image"] == "m0.jpg"


def test_captions_without_relations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "captions.tsv").write_text("snow\thttp://localhost/0\nrain\thttp://localhost/1\n", "utf-8")
    earlier = finish(SceneGraphs(kind="scene-graphs", captions=(tmp_path / "captions.tsv",)), tmp_path)
    with pytest.raises(WrongUse, match="scene-graphs: no relation in its 2 captions; name other captions"):
        load_relations(earlier)
