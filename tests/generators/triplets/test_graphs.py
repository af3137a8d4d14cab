"""Relations as they are loaded from a folder of ``twinset parse``, and folders that are none or not whole."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from generators.scene_graphs.parse import parse_captions
from generators.scene_graphs.record import Index
from generators.triplets.graphs import TEXTS, WORDS, load_relations
from manifests.errors import WrongUse

CAPTIONS = [
    ("a man with a hat on a horse", "m0"),
    ("a dog with a ball", "d0"),
    ("snow", "s0"),
    ("a man in a hat", "m1"),
    ("two dogs chewing a stick near a tree", "d0"),
    ("a bird on a tree", "t0"),
    ("rain", "r0"),
]


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of two captions, the last of one without a relation."""
    folder = tmp_path_factory.mktemp("graphs")
    lines = [
        json.dumps({"id": f"c{n}", "image_id": image, "caption": caption, "image": f"{image}.jpg"})
        for n, (caption, image) in enumerate(CAPTIONS)
    ]
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    parse_captions([folder / "captions.jsonl"], str(folder / "graphs"), shard_size=2)
    return folder / "graphs"


@pytest.fixture
def graphs(parsed: Path, tmp_path: Path) -> Path:
    """A copy of one's own to break."""
    return Path(shutil.copytree(parsed, tmp_path / "graphs"))


def test_columns_are_those_of_the_files(parsed: Path) -> None:
    relations = load_relations(str(parsed))
    files = [path.as_posix() for path in sorted((parsed / "relations").iterdir())]
    written = pa.dataset.dataset(files).to_table().to_pylist()
    texts = relations.texts.to_pylist()
    found = [
        {name: relations.words[getattr(relations, name)[row]] for name in WORDS}
        | {name: texts[relations.caption[row]][name] for name in ("caption_id", "image_id")}
        for row in range(len(relations))
    ]
    assert found == [{name: row[name] for name in (*WORDS, "caption_id", "image_id")} for row in written]
    images = {
        (texts[caption]["image_id"], image) for caption, image in zip(relations.caption, relations.image, strict=True)
    }
    assert len(images) == len({one for one, _ in images}) == len({image for _, image in images}) > 1
    assert relations.words == sorted(relations.words)
    assert relations.captions == len(CAPTIONS) > len(texts) == len({row["caption_id"] for row in written})
    index = Index.model_validate_json((parsed / "_meta/index.json").read_bytes())
    assert relations.digest == index.digest and len(relations) == index.relations
    assert set(texts[0]) == set(TEXTS) and texts[0]["image"] == "m0.jpg"


def test_a_folder_and_a_url_give_the_same_relations(parsed: Path) -> None:
    one, other = (load_relations(place) for place in (str(parsed), parsed.as_uri()))
    for name in (*WORDS, "caption", "image"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.texts == other.texts and (one.words, one.digest) == (other.words, other.digest) and len(one) > 2


def test_what_is_no_finished_parse_is_refused(graphs: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no folder of twinset parse"):
        load_relations(str(tmp_path / "elsewhere"))
    with pytest.raises(WrongUse, match="no folder of twinset parse"):
        load_relations(str(graphs / "relations"))
    index = graphs / "_meta/index.json"
    whole = index.read_bytes()
    index.unlink()
    with pytest.raises(WrongUse, match="not parsed to the end; run the same twinset parse again"):
        load_relations(str(graphs))
    index.write_bytes(whole.replace(b'"relations":', b'"relations":1'))
    with pytest.raises(WrongUse, match=r"index.json: not what the receipts add up to"):
        load_relations(str(graphs))
    (graphs / "_meta/stage.json").unlink()
    with pytest.raises(WrongUse, match=r"stage.json: absent.*run the same twinset parse"):
        load_relations(str(graphs))


def test_files_that_changed_since_are_refused(graphs: Path) -> None:
    relations, captions = graphs / "relations/00000.parquet", graphs / "captions/00000.parquet"
    whole, said = captions.read_bytes(), load_relations(str(graphs)).texts["caption"].to_pylist()
    captions.write_bytes((graphs / "captions/00001.parquet").read_bytes())
    with pytest.raises(WrongUse, match=r"captions/00000.parquet: other captions than were planned; remove"):
        load_relations(str(graphs))
    for at in range(4, len(whole), len(whole) // 40):  # pyarrow has many errors for a bit that turned over
        captions.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with suppress(WrongUse):
            assert load_relations(str(graphs)).texts["caption"].to_pylist() == said
    captions.write_bytes(whole[:20] + bytes(9) + whole[29:])
    with pytest.raises(WrongUse, match=r"captions/00000.parquet: cannot be read .*; remove"):
        load_relations(str(graphs))
    captions.write_bytes(whole)
    pq.write_table(pq.read_table(relations).slice(1), relations)
    with pytest.raises(WrongUse, match=r"shard 00000: relations/00000.parquet has .* run the same twinset parse"):
        load_relations(str(graphs))
    relations.unlink()
    with pytest.raises(WrongUse, match=r"shard 00000: relations/00000.parquet is absent"):
        load_relations(str(graphs))


def test_captions_without_relations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "captions.tsv").write_text("snow\thttp://localhost/0\nrain\thttp://localhost/1\n", "utf-8")
    parse_captions([tmp_path / "captions.tsv"], str(tmp_path / "graphs"))
    with pytest.raises(WrongUse, match="no relation in its 2 captions"):
        load_relations(str(tmp_path / "graphs"))
