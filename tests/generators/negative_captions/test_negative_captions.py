"""Negative captions by exchanged words: the plan and what is written; on real captions too."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.markdown import card_block
from twinset.generators.negative_captions.changes import problem, words
from twinset.generators.negative_captions.exchange.sites import reading
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.source import ALONE, NegativeCaptions
from twinset.generators.scene_graphs.relations import parser_of
from twinset.generators.words_alone.probe import probed
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline
from twinset.shards.contracts import Context

pytest.importorskip("sng_parser")
COLOURS, ANIMALS = ("red", "black", "white"), ("dog", "cat", "horse")
CAPTIONS = [
    f"A {colour} {animal} {verb} {place} a {second} bench."
    for colour in COLOURS
    for second in COLOURS
    for animal in ANIMALS
    for verb in ("sits", "stands", "lies")
    for place in ("behind", "in front of")
]


def write(folder: Path, captions: Iterable[tuple[str, str]]) -> Path:
    """Captions of images, by the images' ids."""
    path = folder / "captions.jsonl"
    records = ({"caption_id": str(at), "image_id": image, "caption": text} for at, (image, text) in enumerate(captions))
    path.write_text("".join(f"{json.dumps(record)}\n" for record in [*records, {"caption": " "}]))
    return path


def source(captions: Path, **settings: Any) -> NegativeCaptions:
    return NegativeCaptions(kind="negative-captions", captions=(captions,), **settings)


def written(captions: Path, seed: int = 0, **settings: Any) -> list[dict[str, Any]]:
    generator = source(captions, **settings).open(Context("negatives", seed=seed))
    made = generator.make(list(generator.plan()))
    return [row for result in made if isinstance(result, TableRows) for row in result.rows]


def world(folder: Path, texts: Iterable[str]) -> Path:
    """Captions, each of an image of its own."""
    return write(folder, ((f"image{number}", text) for number, text in enumerate(texts)))


def test_each_caption_is_asked_for_each_kind_beside_the_others_of_its_image(tmp_path: Path) -> None:
    texts = ["A black dog sleeps on a red bench.", "Nothing at all", "A dog sleeps."]
    captions = write(tmp_path, zip(("a", "b", "a"), texts, strict=True))
    generator = source(captions).open(Context("negatives"))
    planned = list(generator.plan())
    assert [candidate.caption_id for candidate in planned] == [number for number in "021" for _ in KINDS]
    assert [candidate.negative_kind for candidate in planned] == list(KINDS) * 3
    assert len({candidate.group for candidate in planned}) == 2 and generator.report_files() == {ALONE: b"1"}
    assert "1 captions are the only ones of their image" in card_block(generator, "how_made", {ALONE: 1})
    assert generator.excluded.examples == [("empty-caption", "captions.jsonl line 4")]
    results = list(generator.make(planned))[-7:]
    assert {result.reason for result in results if isinstance(result, Rejected)} == {"nothing-to-change"}


def test_words_come_in_about_as_often_as_they_go_out(tmp_path: Path) -> None:
    rows = written(world(tmp_path, CAPTIONS))
    assert {f"{row['type']}_{row['subtype']}" for row in rows} >= {"replace_obj", "replace_att", "replace_rel"}
    assert not any(problem(row["type"], row["caption"], row["negative_caption"]) for row in rows)
    colours = [row for row in rows if (row["type"], row["subtype"]) == ("replace", "att")]
    out, come = (
        Counter(word for row in colours for word in words(row[side]) if word in COLOURS)
        for side in ("caption", "negative_caption")
    )
    assert len(colours) > 20 and all(abs(out[word] - come[word]) <= 0.25 * len(colours) for word in COLOURS)


def test_blanks_of_captions_stay(tmp_path: Path) -> None:
    texts = CAPTIONS[::9]
    plain = [row["negative_caption"] for row in written(world(tmp_path, texts))]
    wide = world(tmp_path, (text.replace(" ", " \u00a0") for text in texts))
    spaced = [row["negative_caption"] for row in written(wide)]
    assert plain == [text.replace("\u00a0", "") for text in spaced] != []
    assert all(text.count("\u00a0") >= 7 for text in spaced)


def test_what_another_caption_of_the_image_says_is_not_put_in(tmp_path: Path) -> None:
    def negatives(*texts: str) -> set[str]:
        path = write(tmp_path, (("a", text) for text in texts))
        rows = [row for seed in range(12) for row in written(path, seed) if row["caption"] == texts[0]]
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
        ("A red car in front of a church.", "replace_rel", {"in front of"}),
        ("A black dog and a white cat on a mat.", "swap_obj", {"dog"}),
        ("A red bus is next to a white car.", "swap_att", {"red"}),
        ("A red train car is next to a white car.", "swap_att", set()),  # what it says of the other car is still true
        ("A man with a toy car.", "replace_obj", {"man"}),
        ("An orange tree in a yard.", "replace_att", set()),  # another thing
        ("How to paint a red car.", "replace_att", set()),  # does not describe
        ("Two men play and one blocks the other.", "replace_att", set()),  # of three there is no other
        ("Two men talk to each other.", "replace_att", {"two"}),
    ],
)
def test_places_that_can_change(caption: str, kind: str, expected: set[str]) -> None:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp(caption)
    assert {site.word for site in reading(doc, vocabulary()).of(kind)} == expected


COCO = Path(__file__).resolve().parents[4] / "shared" / "data" / "captions" / "coco_captions_val2017.json"


@pytest.mark.slow
@pytest.mark.skipif(not COCO.exists(), reason="../shared/data is not here")
def test_words_alone_do_not_tell_negatives_of_real_captions() -> None:
    rows = written(COCO, seed=7)
    for kind in ("replace_obj", "replace_att", "replace_rel"):
        of_kind = [row for row in rows if f"{row['type']}_{row['subtype']}" == kind]
        probe = probed([row["caption"] for row in of_kind], [row["negative_caption"] for row in of_kind], 0)
        assert probe.pairs >= 400 and probe.auc is not None and probe.auc <= 0.6, (kind, probe)
