"""Negative captions by exchanged words: the plan, what is written, a build of the table; on real captions too."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.recipe import parse_recipe
from twinset.generators.negative_captions.changes import problem, words
from twinset.generators.negative_captions.exchange.sites import reading
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.source import ALONE, NegativeCaptions
from twinset.generators.scene_graphs.relations import parser_of
from twinset.generators.words_alone.probe import probed
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here

pytest.importorskip("sng_parser")
COLOURS, ANIMALS = ("red", "black", "white"), ("dog", "cat", "horse")
CAPTIONS = [
    f"A {one} {animal} {verb} {place} a {other} bench."
    for one in COLOURS
    for other in COLOURS
    for animal in ANIMALS
    for verb in ("sits", "stands", "lies")
    for place in ("behind", "in front of")
]


def write(folder: Path, captions: Iterable[tuple[str, str]]) -> Path:
    """Captions of images, by the images' ids."""
    path = folder / "captions.jsonl"
    records = ({"caption_id": str(at), "image_id": image, "caption": text} for at, (image, text) in enumerate(captions))
    path.write_text("".join(f"{json.dumps(one)}\n" for one in [*records, {"caption": " "}]))
    return path


def source(captions: Path, **settings: Any) -> NegativeCaptions:
    return NegativeCaptions(kind="negative-captions", captions=(captions,), **settings)


def written(captions: Path, seed: int = 0, **settings: Any) -> list[dict[str, Any]]:
    generator = source(captions, **settings).open(Context("negatives", seed=seed))
    made = generator.make(list(generator.plan()))
    return [row for one in made if isinstance(one, TableRows) for row in one.rows]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return write(tmp_path, ((f"image{number}", text) for number, text in enumerate(CAPTIONS)))


def test_each_caption_is_asked_for_each_kind_beside_the_others_of_its_image(tmp_path: Path) -> None:
    texts = ["A black dog sleeps on a red bench.", "Nothing at all", "A dog sleeps."]
    captions = write(tmp_path, zip(("a", "b", "a"), texts, strict=True))
    generator = source(captions).open(Context("negatives"))
    planned = list(generator.plan())
    assert [one.caption_id for one in planned] == [number for number in "021" for _ in KINDS]
    assert [one.negative_kind for one in planned] == list(KINDS) * 3
    assert len({one.group for one in planned}) == 2 and generator.report_files() == {ALONE: b"1"}
    assert generator.excluded.examples == [("empty-caption", "captions.jsonl line 4")]
    results = list(generator.make(planned))[-7:]
    assert {one.reason for one in results if isinstance(one, Rejected)} == {"nothing-to-change"}


def test_words_come_in_about_as_often_as_they_go_out(world: Path) -> None:
    rows = written(world)
    assert {f"{row['type']}_{row['subtype']}" for row in rows} >= {"replace_obj", "replace_att", "replace_rel"}
    assert not any(problem(row["type"], row["caption"], row["negative_caption"]) for row in rows)
    colours = [row for row in rows if (row["type"], row["subtype"]) == ("replace", "att")]
    out, come = (
        Counter(word for row in colours for word in words(row[side]) if word in COLOURS)
        for side in ("caption", "negative_caption")
    )
    assert len(colours) > 20 and all(abs(out[word] - come[word]) <= 0.25 * len(colours) for word in COLOURS)


def test_what_is_written_is_of_its_seed_and_of_its_image_alone(world: Path) -> None:
    first, again, other = ([row["negative_caption"] for row in written(world, seed)] for seed in (1, 1, 2))
    assert first == again != other
    generator = source(world).open(Context("negatives"))
    planned = list(generator.plan())[: 7 * 20]
    together = list(generator.make(planned))
    assert [one for at in range(0, len(planned), 7) for one in generator.make(planned[at : at + 7])] == together


def test_blanks_of_captions_stay(tmp_path: Path) -> None:
    (tmp_path / "spaced").mkdir()
    wide = [text.replace(" ", " \u00a0") for text in CAPTIONS]
    plain, spaced = (
        [row["negative_caption"] for row in written(write(folder, zip(CAPTIONS, texts, strict=True)))]
        for folder, texts in ((tmp_path, CAPTIONS), (tmp_path / "spaced", wide))
    )
    assert plain == [text.replace("\u00a0", "") for text in spaced] != []
    assert all(text.count("\u00a0") >= 7 for text in spaced)


def test_what_another_caption_of_the_image_says_is_not_put_in(tmp_path: Path) -> None:
    def negatives(*texts: str) -> set[str]:
        path = write(tmp_path, (("a", text) for text in texts))
        rows = [row for seed in range(40) for row in written(path, seed) if row["caption"] == texts[0]]
        return {word for row in rows for word in words(row["negative_caption"])}

    caption = "A dog on a red couch."
    new = negatives(caption) - {*words(caption)}
    assert len(new) > 1 and not new & negatives(caption, f"It is {' and '.join(sorted(new))}.")


def test_captions_without_words_to_exchange_give_none(tmp_path: Path) -> None:
    texts = ("ein Hund läuft über die Straße", "собака бежит по улице", ".")
    assert written(write(tmp_path, [(text, text) for text in texts] * 5)) == []


@pytest.mark.parametrize(
    ("caption", "kind", "expected"),
    [
        ("A woman and her dog sit on a bench.", "replace_obj", {"dog", "bench"}),  # "her" says woman too
        ("A man in long sleeve shirts.", "replace_att", set()),  # no long shirts
        ("A black and white cat.", "replace_att", set()),
        ("Two dogs on a red couch.", "replace_att", {"two", "red"}),
        ("A red car in front of a church.", "replace_rel", {"in front of"}),
        ("A dog and a cat on a mat.", "swap_obj", set()),
        ("A black dog and a white cat on a mat.", "swap_obj", {"dog"}),
        ("A red bus is next to a white car.", "swap_att", {"red"}),
        ("A red train car is next to a white car.", "swap_att", set()),  # what it says of the other car is still true
        ("A man with a toy car.", "replace_obj", {"man"}),
        ("An orange tree in a yard.", "replace_att", set()),  # another thing
        ("How to paint a red car.", "replace_att", set()),  # does not describe
    ],
)
def test_places_that_can_change(caption: str, kind: str, expected: set[str]) -> None:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp(caption)
    assert {site.word for site in reading(doc, vocabulary()).of(kind)} == expected


@pytest.mark.slow
def test_a_build_makes_a_table_that_later_stages_read(world: Path, tmp_path: Path) -> None:
    raw = {"name": "n", "subsets": {"negatives": {"source": source(world).model_dump(mode="json"), "shard_size": 300}}}
    counts = build_here(parse_recipe(raw), str(tmp_path / "out"), 1)["subsets"]["negatives"]
    assert counts["planned"] == 7 * len(CAPTIONS) == counts["kept"] + sum(counts["rejected"].values())
    table = FinishedStage(Store(str(tmp_path / "out")), "negatives").read(["caption", "subtype"])
    assert len(table) == counts["kept"] and set(counts["rejected"]) == {"nothing-to-change"}
    card = (tmp_path / "out/negatives/README.md").read_text("utf-8")
    assert f"{len(CAPTIONS)} captions are the only ones of their image" in card
    build_here(parse_recipe(raw), str(tmp_path / "again"), 2)
    for path in (tmp_path / "out").rglob("*.parquet"):
        if not {"log"} & {*path.parts}:
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "out")).read_bytes()


COCO = Path(__file__).resolve().parents[4] / "shared" / "data" / "captions" / "coco_captions_val2017.json"


@pytest.mark.slow
@pytest.mark.skipif(not COCO.exists(), reason="../shared/data is not here")
def test_words_alone_do_not_tell_negatives_of_real_captions() -> None:
    rows = written(COCO, seed=7)
    for kind in ("replace_obj", "replace_att", "replace_rel"):
        of_kind = [row for row in rows if f"{row['type']}_{row['subtype']}" == kind]
        told = probed([row["caption"] for row in of_kind], [row["negative_caption"] for row in of_kind], 0)
        assert told.pairs >= 400 and told.auc is not None and told.auc <= 0.6, (kind, told)
