"""Captions exchange words: the plan on captions of a small world and on real ones, the contract, dirty tables."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.generators.finished_stage import finish, finished
from twinset.contracts.errors import WrongUse
from twinset.generators.exchanged_negatives.sites import sites_of
from twinset.generators.exchanged_negatives.source import ExchangedNegatives
from twinset.generators.exchanged_negatives.vocabulary import exchanges
from twinset.generators.exchanged_negatives.words import CaptionWords
from twinset.generators.negative_captions.changes import problem, words
from twinset.generators.negative_captions.kinds import NegativeCaption
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline
from twinset.shards.contracts import Context

COLOURS, ANIMALS = ("red", "blue", "green"), ("dog", "cat", "horse")
CAPTIONS = [
    f"A {one} {animal} {verb} {place} a {other} bench."
    for one in COLOURS
    for other in COLOURS
    for animal in ANIMALS
    for verb in ("sits", "stands", "lies")
    for place in ("behind", "in front of")
]


def write(folder: Path, captions: Sequence[str]) -> Path:
    path = folder / "captions.jsonl"
    lines = ({"id": str(at), "image": f"{at}.jpg", "caption": text} for at, text in enumerate(captions))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def planned(folder: Path, captions: Sequence[str] | Path, seed: int = 0, **settings: object) -> list[NegativeCaption]:
    source = CaptionWords(
        kind="caption-words", captions=captions if isinstance(captions, Path) else write(folder, captions)
    )
    finish(source, folder, "words")
    chosen = ExchangedNegatives.model_validate({"kind": "exchanged-negatives", "words": "words", **settings})
    return list(chosen.open(Context("negatives", seed=seed, earlier=finished(folder, "words"))).plan())


def test_words_of_the_world_change_places(tmp_path: Path) -> None:
    found = planned(tmp_path, CAPTIONS)
    kinds = Counter(one.counted_as for one in found)
    assert kinds.keys() == {"replace_obj", "replace_att", "replace_rel", "swap_att"}
    assert min(kinds["replace_obj"], kinds["replace_att"], kinds["replace_rel"]) > 0.7 * len(CAPTIONS)
    for one in found:
        assert not problem(one.type, one.caption, one.negative_caption)
        assert set(words(one.negative_caption)) <= {word for text in CAPTIONS for word in words(text)}
    # Of those that are replaced, each word goes in about as often as it comes out.
    replaced = [one for one in found if one.counted_as == "replace_att"]
    out, come = (
        Counter(
            word for one in replaced for word in words(one.caption if side else one.negative_caption) if word in COLOURS
        )
        for side in (1, 0)
    )
    assert all(abs(out[colour] - come[colour]) <= 0.1 * len(replaced) for colour in COLOURS)


def test_blanks_of_captions_change_no_negative_and_stay(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "spaced").mkdir()
    plain = planned(tmp_path / "plain", CAPTIONS)
    spaced = planned(tmp_path / "spaced", [caption.replace(" ", " \u00a0") for caption in CAPTIONS])
    assert (
        [one.negative_caption for one in plain]
        == [one.negative_caption.replace(" \u00a0", " ") for one in spaced]
        != []
    )
    assert all(one.negative_caption.count("\u00a0") >= 7 for one in spaced)


def test_the_plan_is_of_its_seed(tmp_path: Path) -> None:
    first, again, other = ([one.negative_caption for one in planned(tmp_path, CAPTIONS, seed)] for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    "captions",
    [
        ["ein Hund läuft über die Straße"] * 3,
        ["собака бежит по улице", "кошка спит"],
        ["A dog runs."] * 20,
    ],
)
def test_captions_without_words_to_exchange_are_refused(tmp_path: Path, captions: list[str]) -> None:
    with pytest.raises(WrongUse, match="no words of its captions can change places"):
        planned(tmp_path, captions)


def test_what_another_caption_of_the_photo_says_is_not_put_in(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    texts = [("0.jpg", "A dog on a beach."), ("0.jpg", "There is a cat too."), ("1.jpg", "A cat on a beach.")]
    path.write_text("".join(json.dumps({"image": image, "caption": text}) + "\n" for image, text in texts))
    with pytest.raises(WrongUse, match="no words of its captions"):
        planned(tmp_path, path, kinds=["replace_obj"])


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
    ],
)
def test_sites(caption: str, kind: str, expected: set[str]) -> None:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp(caption)
    assert {one.word for one in sites_of(doc, exchanges(), vocabulary()) if one.kind == kind} == expected


def test_words_know_what_is_at_both_ends() -> None:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp("A man walks down a street.")
    found = {one.word: one for one in sites_of(doc, exchanges(), vocabulary())}
    assert found["street"].head == "pobj down walk"
    assert found["walks"].other_head == "people prep down street" and found["down"].other_head == "people street"


def test_another_thing_goes_with_the_rest_of_the_caption(tmp_path: Path) -> None:
    """Boats and buses pass alike, but no bus a wave."""
    scenes = (("boat", "wave"), ("train", "wave"), ("bus", "street"))
    captions = [f"A {noun} passes with a {place}." for noun, place in scenes for _ in range(10)]
    found = planned(tmp_path, captions, kinds=["replace_obj"])
    pairs = {(one.caption.split()[1], one.negative_caption.split()[1]) for one in found}
    assert pairs == {("boat", "train"), ("train", "boat")}


def test_swapped_words_stand_beside_words_that_they_are_known_beside(tmp_path: Path) -> None:
    texts = ["A red car passes a flatbed truck.", "A red truck passes a small car."] * 30
    with pytest.raises(WrongUse, match="no words of its captions can change places"):
        planned(tmp_path, texts, kinds=["swap_obj"])
    known = [*texts, *["A man drives a flatbed car.", "A man drives a small truck."] * 30]
    found = planned(tmp_path, known, kinds=["swap_obj"])
    assert {one.negative_caption for one in found} == {
        "A red truck passes a flatbed car.",
        "A red car passes a small truck.",
    }


SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "captions" / "cc3m_validation.tsv"


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is not here")
def test_real_captions(tmp_path: Path) -> None:
    path = tmp_path / "cc3m.tsv"
    path.write_text("".join(SHARED.read_text("utf-8").splitlines(keepends=True)[:7500]), "utf-8")
    found = planned(tmp_path, path)
    kinds = Counter(one.counted_as for one in found)
    assert kinds["replace_obj"] > 8 and kinds["replace_att"] > 50 and kinds["replace_rel"] > 10
