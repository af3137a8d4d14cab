"""What the strict rules ask of relations and of captions, one rule at a time; the file of ratings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.generators.finished_stage import finish
from tests.generators.triplets.conftest import RATED, numbered, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.ratings import load_ratings, with_plurals
from twinset.generators.triplets.relations import Relations, load_relations
from twinset.generators.triplets.strict import StrictRules, judged

RATINGS = {**RATED, **dict.fromkeys(("pair", "photo", "hand", "ground", "city", "son", "jacket", "frisbee"), 4.9)}
SAID = "a man on horse, b man near ball, c man under tree"
HEADER = "Word\tBigram\tConc.M\tConc.SD\n"
WORDS = "glass\t0\t4.82\t0.1\nglasses\t0\t4.86\t0.1\nHat\t0\t5\t0\nfire truck\t1\t4.9\t0.2\nthen\t0\t1.4\t0.9\n"


def mined(said: str, min_support: int = 1, ratings: dict[str, float] = RATINGS, **columns: list[Any]) -> list[int]:
    """The rows that are mined."""
    return judged(relations_of(said, **columns), ratings, min_support)[0]["row"].to_list()


def test_words_that_no_relation_is_mined_of() -> None:
    said = (
        "a man on horse, b pair of hat, b man for photo, b man with hand, b dog with dog, b man while dog, "
        "b man to tree, b man sit horse, b man around on horse, b man with ground, b ground near tree, "
        "b city with tree, b man visit tree, b man having ball, b son with ball"
    )
    assert mined(said) == [0]
    lemmas = ["be", "wear", "chew", "have"]  # verbs of the past tell stories, or were misread
    assert mined("a dog is ball, b man wore hat, c dog chewing ball, d man has dog", predicate_lemma=lemmas) == [2, 3]


def test_grammar_that_no_relation_is_mined_of() -> None:
    plain = {"subject_pos": "NOUN", "negated": False, "subject_start": 0, "verb": "", "confirmed": None}
    wrong = {"subject_pos": "PRON", "negated": True, "subject_start": 4, "verb": "look", "confirmed": False}
    for name in plain:
        assert mined("a man at tree, b dog at tree", **{name: [plain[name], wrong[name]]}) == [0], name
    columns = {"confirmed": [False, True], "plain": [True, False]}  # what a sentence begins with needs no parser more
    assert mined("a man on horse, b dog with ball", **columns) == [0, 1]


def test_captions_that_no_relation_is_mined_of() -> None:
    """Those that comment, or tell of what is drawn; "will" and "drawn" may be parts of words."""
    shown = ["the dog with 'a ball'", "a dog with a willow myrtle, drawnly", "a dog with a ball."]
    others = [
        "PAINTINGS",
        "a dog, vector",
        "My dog with a ball",
        "Is this a dog?",
        "the dog ''with'' a ball",
        "a ... x",
    ]
    assert mined(numbered("a", "man on horse", 9), caption=[*shown, *others]) == [0, 1, 2]


def test_support_counts_photos_of_what_conditions_say() -> None:
    """Of any subject: a dog's that one photo has counts for a man's that two have."""
    said = "a man on horse, a man riding horse, b dog with ball, c dog with ball, d tree with bird, e king with bird"
    assert mined(said, 2) == [2, 3]
    assert mined(said, 2, photo=["a"] * 6) == []
    said = "a man on horse, b man near horse, c dog on horse, d man riding horse, e man have horse, f man chewing horse"
    said += ", g dog riding ball, h tree have ball"
    assert mined(said, 2) == [0, 3], "a verb needs photos, not of the same object, unless it is with"
    low = {**RATINGS, "riding": 2.9}
    assert mined(said, 2, low) == [0], "raters call it abstract"
    assert 3 in mined(f"{said}, i king riding horse", 2, low), "as many photos say the same of a horse"
    kept = mined(f"{said}, i man riding ground, j man riding on ground", 2, plain=[True] * 10)
    assert (8 in kept, 9 in kept) == (False, True), "grounds are where, seldom what"


def triplets(said: Relations | str, others: Sequence[tuple[str, str]] = (), **settings: Any) -> set[tuple[int, ...]]:
    """Rows of reference and target, and of the distractor where one is asked for."""
    relations = relations_of(said, others) if isinstance(said, str) else said
    table = StrictRules(relations, RATINGS, 4.0, 1, 1, **settings).mine(Draws(1, "t"), 0, 400)
    parts = table.drop_nulls("passes").select("reference", "target", "distractor")
    return set((parts if settings else parts.drop("distractor")).iter_rows())


def test_subjects_have_one_number_and_captions_of_the_distractor_do_not_name_theirs() -> None:
    assert triplets("a man on horse, b men near ball, c man near tree") == {(0, 2), (2, 0)}
    said = "a man on horse, b man near tree, c bird near tree, d dog near tree, d ball behind man, e bird on horse"
    drawn = triplets(said, distractors=True)
    assert (0, 1, 2) in drawn and not {(0, 3), (1, 3)} & {parts[1:] for parts in drawn}


def graphs_of(folder: Path, *captions: tuple[str, str]) -> Relations:
    """The relations of captions, given as image and text."""
    lines = [json.dumps({"image": image, "caption": caption}) for image, caption in captions]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    graphs = finish(SceneGraphs(kind="scene-graphs", captions=(folder / "captions.jsonl",)), folder)
    return load_relations(graphs, folder)


def test_no_caption_of_the_reference_names_the_object(tmp_path: Path) -> None:
    """Not even one without a relation, in the plural."""
    captions = [("a.jpg", "A man on a horse"), ("a.jpg", "Look, balls!")]
    relations = graphs_of(tmp_path, *captions, ("b.jpg", "A man near a ball"), ("c.jpg", "A man near a tree"))
    assert judged(relations, RATINGS, 1)[1]["photos, each of one name or more"] == 3
    assert triplets(relations) == {(0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}
    with pytest.raises(WrongUse, match="no relation in its 1 captions"):
        graphs_of(tmp_path, captions[1])


def test_other_names_and_what_implies_a_thing_bar_a_reference() -> None:
    assert (1, 0) in triplets(SAID, [("b", "The coward waits, unhorsed")])
    for caption in ("Two PONIES", "At the rodeo", "a jockey", "One horse-man."):
        assert triplets(SAID, [("b", caption)]) == triplets(SAID) - {(1, 0)}


def test_what_captions_leave_out_is_no_target() -> None:
    """Nothing that is worn, and a place only for references that say one; being in a hat is none."""
    for said in (
        "a man riding horse, b man near ball, c man with hat",
        "a man riding horse, b man near ball, c man in hat",
    ):
        assert triplets(said) == {(1, 0), (2, 0)}
    deeds = "a man on horse, b man near ball, c man wearing hat, d man chewing stick"
    assert triplets(deeds) == {(0, 1), (1, 0), (0, 3), (1, 3), (2, 3)}
    ends = "a man riding on horse, b man next to ball, d man chewing stick"
    assert triplets(ends) == {(0, 1), (1, 0), (0, 2), (1, 2)}


def test_ratings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ratings.txt"
    expected = {"glass": 4.82, "glasses": 4.86, "hat": 5, "fire truck": 4.9, "then": 1.4}
    for content in (HEADER + WORDS, "\ufeff" + (HEADER + WORDS).replace("\n", "\r\n") + "\r\n"):
        path.write_text(content, "utf-8", newline="")
        assert load_ratings(path) == expected
    pytest.importorskip("inflect", reason="plurals of the published rules: pip install 'twinset[text]'")
    published = with_plurals(expected)
    assert [published[word] for word in ("glass", "glasses", "hats")] == [4.82, 4.82, 5.0], "plurals overwrite"


def test_a_file_of_another_shape_is_refused_with_its_place(tmp_path: Path) -> None:
    for content, message in (
        (b"word,conc\nhat,5\n", "has no columns 'Word' and 'Conc.M'"),
        (HEADER.encode(), "no word in it"),
        (f"{HEADER}{'z' * 300}\t0\t4.8\t0\n".encode(), "line 2: 'z{200}' rated 4.8"),
        (f"{HEADER}{WORDS}".encode() + b"caf\xe9\t0\t4.8\t0\n", "line 7: .*UTF-8"),
    ):
        (tmp_path / "ratings.txt").write_bytes(content)
        with pytest.raises(WrongUse, match=rf"ratings\.txt.*{message}"):
            load_ratings(tmp_path / "ratings.txt")
