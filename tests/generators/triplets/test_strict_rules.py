"""What the strict rules ask of relations and of captions, one rule at a time; the file of ratings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.generators.finished_stage import finish
from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets import mentions as captions_of
from twinset.generators.triplets.concepts import FILE, concepts, forms_of
from twinset.generators.triplets.draws import NONE, Draws
from twinset.generators.triplets.mentions import PRIOR, Mentions
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.ratings import UNKNOWN, Ratings, load_ratings
from twinset.generators.triplets.relations import Relations, load_relations
from twinset.generators.triplets.strict import StrictRules
from twinset.generators.triplets.strict_relations import judged

CONCRETE = (
    "pair",
    "photo",
    "side",
    "hand",
    "jeans",
    "ground",
    "night",
    "city",
    "countryside",
    "son",
    "daughter",
    "window",
)
RATINGS = Ratings({**RATED, **dict.fromkeys((*CONCRETE, "jacket", "frisbee"), 4.9)})


def mined(relations: Relations, min_support: int = 1, ratings: Ratings = RATINGS) -> list[int]:
    """The rows that are mined."""
    return judged(relations, ratings, min_support)[0]["row"].to_list()


@pytest.mark.parametrize(
    ("subject", "predicate", "object_"),
    [
        ("pair", "of", "hat"),
        ("man", "with", "pair"),
        ("man", "on", "side"),
        ("man", "for", "photo"),
        ("photo", "of", "dog"),
        ("man", "with", "hand"),
        ("dog", "is", "ball"),
        ("dog", "with", "dog"),
        ("man", "during", "ball"),
        ("man", "while", "dog"),
        ("man", "for", "dog"),
        ("man", "of", "dog"),
        ("man", "in", "jeans"),
        ("man", "sit", "horse"),
        ("man", "around on", "horse"),
        ("man", "with", "ground"),
        ("man", "in", "night"),
        ("city", "with", "tree"),
        ("man", "in", "countryside"),
        ("ground", "near", "tree"),
        ("man", "along", "tree"),
        ("man", "to", "tree"),
        ("man", "visit", "tree"),
        ("man", "having", "ball"),
        ("son", "with", "ball"),
        ("man", "with", "daughter"),
        ("window", "near", "tree"),
    ],
)
def test_words_that_no_relation_is_mined_of(subject: str, predicate: str, object_: str) -> None:
    said = [("a", "man", "on", "horse"), ("b", subject, predicate, object_), ("c", "tennis side", "on", "tree")]
    lemmas = ["be" if words[2] == "is" else words[2] for words in said]
    assert mined(relations_of(said, predicate_lemma=lemmas)) == [0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subject_pos", "PRON"),
        ("negated", True),
        ("backdrop", True),
        ("contested", True),
        ("stand_in", True),
        ("subject_start", 4),
        ("verb", "look"),
        ("confirmed", False),
    ],
)
def test_grammar_that_no_relation_is_mined_of(name: str, value: Any) -> None:
    said: list[Said] = [("a", "man", "at", "tree"), ("b", "dog", "at", "tree")]
    usual = relations_of(said).index.collect()[name][0]
    assert mined(relations_of(said, **{name: [usual, value]})) == [0]


def test_what_a_sentence_begins_with_needs_no_second_parser() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "dog", "with", "ball")]
    assert mined(relations_of(said, confirmed=[False, True])) == [1]
    assert mined(relations_of(said, confirmed=[False, True], plain=[True, False])) == [0, 1]


@pytest.mark.parametrize(
    ("caption", "told"),
    [
        ("Illustrations: a dog", False),
        ("a dog, vector", False),
        ("My dog with a ball", False),
        ("the dog with 'a ball'", True),
        ("the dog ''with'' a ball", False),
        ("Is this a dog?", False),
        ("a dog in a forest will", False),
        ("a dog with a willow myrtle, drawnly", True),
        ("PAINTINGS", False),
        ("a dog ... with a ball", False),
        ("a dog with a ball.", True),
    ],
)
def test_captions_that_no_relation_is_mined_of(caption: str, told: bool) -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "dog", "with", "ball")]
    assert mined(relations_of(said, caption=["a man on a horse", caption])) == [0, 1][: 1 + told]


def test_verbs_of_the_past_tell_stories_or_were_misread() -> None:
    said: list[Said] = [("a", "man", "wore", "hat"), ("b", "dog", "chewing", "ball"), ("c", "man", "has", "dog")]
    assert mined(relations_of(said, predicate_lemma=["wear", "chew", "have"])) == [1, 2]


def test_support_counts_photos() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("a", "man", "riding", "horse"), ("b", "dog", "with", "ball")]
    said += [("c", "dog", "with", "ball"), ("d", "tree", "with", "bird"), ("e", "king", "with", "bird")]
    assert mined(relations_of(said), 2) == [2, 3]
    with pytest.raises(WrongUse, match="0 relations of pairs of words that 2 photos"):
        mined(relations_of(said, photo=["a"] * len(said)), 2)


def test_support_counts_photos_of_what_conditions_say() -> None:
    """Of any subject: a dog's that one photo has counts for a man's that two have."""
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "horse"), ("c", "dog", "on", "horse")]
    said += [("d", "man", "riding", "horse"), ("e", "man", "have", "horse"), ("f", "man", "chewing", "horse")]
    said += [("g", "dog", "riding", "ball"), ("h", "tree", "have", "ball")]
    assert mined(relations_of(said), 2) == [0, 3], "a verb needs photos, not of the same object, unless it is with"
    plain = [row == 2 for row in range(len(said))]
    assert mined(relations_of(said, plain=plain), 2) == [0, 2, 3]
    low = Ratings({**RATINGS.rated, "riding": 2.9})
    assert mined(relations_of(said), 2, Ratings({**RATINGS.rated, "riding": 3.0})) == [0, 3]
    assert mined(relations_of(said), 2, low) == [0]
    more: list[Said] = [*said, ("i", "man", "riding", "ground"), ("j", "man", "riding on", "ground")]
    kept = mined(relations_of(more, plain=[True] * len(more)), 2)
    assert (8 in kept, 9 in kept) == (False, True), "grounds are where, seldom what"
    twice: list[Said] = [*said, ("i", "king", "riding", "horse")]
    assert 3 in mined(relations_of(twice), 2, low), "as many photos say the same of a horse"


def test_images_of_a_subject_count_in_all_relations_with_rated_words() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "tree"), ("c", "man", "of", "ball")]
    said += [("d", "man", "x", "x")]
    assert StrictRules(relations_of(said), RATINGS, 4.0, 3, 1).pool.eligible.tolist() == [True]
    with pytest.raises(WrongUse, match="0 eligible subjects"):
        StrictRules(relations_of(said), RATINGS, 4.0, 4, 1)


def rules_of(
    said: list[Said], others: Sequence[tuple[str, str]] = (), unsaid: float = 1.0, **settings: Any
) -> StrictRules:
    return StrictRules(relations_of(said, others), RATINGS, 4.0, 1, 1, unsaid, **settings)


def triplets(
    relations: Relations | list[Said], others: Sequence[tuple[str, str]] = (), unsaid: float = 1.0, **settings: Any
) -> set[tuple[int, ...]]:
    """Rows of reference and target, and of the distractor where one is asked for."""
    relations = relations_of(relations, others) if isinstance(relations, list) else relations
    rules = StrictRules(relations, RATINGS, 4.0, 1, 1, unsaid, **settings)
    table = Miner(rules).mine(Draws(1, "t"), 0, 400)
    assert settings or set(table.distractor.tolist()) == {NONE}
    parts = (table.reference, table.target, *((table.distractor,) if settings else ()))
    return set(zip(*(rules.pool.row[part].tolist() for part in parts), strict=True))


def test_subjects_have_one_grammatical_number() -> None:
    assert triplets([("a", "man", "on", "horse"), ("b", "men", "with", "hat"), ("c", "man", "near", "tree")]) == {
        (0, 2),
        (2, 0),
    }


def test_no_caption_of_the_reference_names_the_object(tmp_path: Path) -> None:
    """Not even one without a relation, of the same photo under another name, in the plural."""
    captions = [("1000268201_693b08cb0e.jpg", "A man on a horse"), ("1000268201.jpg", "Look, hats!")]
    captions += [("b.jpg", "A man with a hat"), ("c.jpg", "A man near a tree")]
    lines = [json.dumps({"image": image, "caption": caption}) for image, caption in captions]
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    graphs = finish(SceneGraphs(kind="scene-graphs", captions=(tmp_path / "captions.jsonl",)), tmp_path)
    relations = load_relations(graphs, tmp_path)
    assert judged(relations, RATINGS, 1)[1]["photos, each of one name or more"] == 3
    assert triplets(relations) == {(0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}


def test_a_stage_without_relations_is_refused(tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").write_text(json.dumps({"image": "a.jpg", "caption": "Look, hats!"}))
    graphs = finish(SceneGraphs(kind="scene-graphs", captions=(tmp_path / "captions.jsonl",)), tmp_path)
    with pytest.raises(WrongUse, match="no relation in its 1 captions"):
        load_relations(graphs, tmp_path)


def test_no_caption_of_the_distractor_names_the_subject() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "tree"), ("c", "bird", "near", "tree")]
    said += [("d", "dog", "near", "tree"), ("d", "ball", "behind", "man"), ("e", "bird", "on", "horse")]
    drawn = triplets(said, distractors=True)
    assert (0, 1, 2) in drawn and not {(0, 3), (1, 3)} & {parts[1:] for parts in drawn}


def test_lists_of_words() -> None:
    """Every line has both halves and no word twice, and a word of two lines has the names of both."""
    of = concepts().by_noun
    for line in load_yaml(FILE.read_text("utf-8"))["concepts"]:
        names, others = (part.split() for part in line.split(":"))
        assert names and len({*names, *others}) == len(names) + len(others), line
        assert all({*names} <= of[name].names and {*others} <= of[name].implied_by for name in names)
    assert {"bicycle", "bike"} <= of["bike"].names and of["bike"] == of["bicycle"]
    assert concepts().of_noun("zyzzyva").names == {"zyzzyva"}
    assert forms_of(frozenset({"pony"})) == {"pony", "ponys", "ponyes", "ponies"}


SAID: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "ball"), ("c", "man", "with", "hat")]


@pytest.mark.parametrize("caption", ["Two PONIES", "At the rodeo", "a jockey", "One horse-man."])
def test_other_names_and_what_implies_a_thing_bar_a_reference(caption: str) -> None:
    assert (1, 0) in triplets(SAID, [("b", "The coward waits, unhorsed")])
    assert triplets(SAID, [("b", caption)]) == triplets(SAID) - {(1, 0)}


def test_two_captions_of_a_target_name_both_words_where_it_has_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caption in three that alone names a horse is not believed; one in two is. Equal captions count once."""
    others = [("a", "A guy rides"), ("a", "A gentleman waits")]
    assert (1, 0) in triplets(SAID, others), "where no photo has as many, or a few"
    monkeypatch.setattr(captions_of, "PHOTOS", 1)
    assert (1, 0) in triplets(SAID, [others[0], ("a", "a  guy rides!")])
    assert (1, 0) not in triplets(SAID, others)
    assert (1, 0) in triplets(SAID, [("a", "A guy rides a pony"), *others[1:]])
    assert (1, 0) not in triplets(SAID, [("a", "A pony"), ("a", "Look, a pony")])


def test_estimate_of_what_is_unsaid() -> None:
    """By hand: 40 photos of three captions; noun 1 is one caption's in 10, two captions' in 4, all three's in 6."""
    times = {0: [3] * 30, 1: [1] * 10 + [2] * 4 + [3] * 6}
    named = [(photo, noun, count) for noun, counts in times.items() for photo, count in enumerate(counts)]
    named += [(39, 0, 0), (40, 1, 1)]  # a word that implies it; a photo of two captions, which is not counted
    of_photo = pl.DataFrame(named, {"image": pl.UInt64, "noun": pl.Int32, "captions": pl.UInt32}, orient="row")
    mentions = Mentions(of_photo, pl.DataFrame({"image": range(40)}, {"image": pl.UInt64}))
    pairs = pl.DataFrame({"subject": [0, 1, 0], "object": [1, 0, 2]}, {"subject": pl.Int32, "object": pl.Int32})
    unsaid = mentions.unsaid(pairs)
    odds = [((10 + PRIOR) ** 2 / (2 * 5)) / 20, (PRIOR**2 / 2) / 30, PRIOR**2 / 2]
    assert unsaid["odds"].to_list() == pytest.approx(odds)
    # 20 of the 30 photos that say 0 say 1 as well; 10 do not. All that say 1 say 0; none says 2.
    assert unsaid["share"].to_list() == pytest.approx([min(20 * odds[0] / 10, 1), 1, 0])
    assert not mentions.estimable


def shown(name: str, photos: int, times: int) -> list[tuple[str, str]]:
    """Two captions more of photos of men, so that as many of the three name a thing; all of them name the man."""
    texts = ["A man x" + f" {name}" * (times > 1), "A man y" + f" {name}" * (times > 2)]
    return [(f"{name}{number}", text) for number in range(photos) for text in texts]


def test_what_captions_leave_out_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frisbees are named by all three captions, jackets by one: as many men again wear one unsaid."""
    monkeypatch.setattr(captions_of, "PHOTOS", 41)
    said: list[Said] = [(f"frisbee{n}", "man", "with", "frisbee") for n in range(20)]
    said += [(f"jacket{n}", "man", "with", "jacket") for n in range(20)] + [("ball0", "man", "with", "ball")]
    others = shown("frisbee", 20, 3) + shown("jacket", 6, 2) + shown("jacket", 20, 1)[12:] + shown("ball", 1, 1)
    assert {said[target][3] for _, target in triplets(said, others, 0.3)} == {"frisbee"}
    strict = rules_of(said, others, 0.3)
    assert strict.estimated and sorted(strict.reliable.tolist()) == [False, False, True]
    with pytest.raises(WrongUse, match=r"captions leave out too much .*\(max_unsaid 0\).* or raise max_unsaid"):
        rules_of(said, others, 0.0)


def test_one_caption_a_photo_tells_nothing_of_what_is_unsaid() -> None:
    """So nothing that is worn is a target's, and a place only for references that say one; being in a hat is none."""
    rules = rules_of(SAID, [], 0.0)
    assert not rules.estimated and sorted(rules.reliable.tolist()) == [False, True, True]
    every = {(reference, target) for reference in range(3) for target in range(3) if reference != target}
    for predicate in ("with", "in"):
        said: list[Said] = [*SAID[:2], ("c", "man", predicate, "hat")]
        assert triplets(said) == every, "where no limit is set"
        assert triplets(said, [], 0.99) == {(0, 1), (1, 0)}
    deeds: list[Said] = [*SAID[:2], ("c", "man", "wearing", "hat"), ("d", "man", "chewing", "stick")]
    assert triplets(deeds, [], 0.99) == {(0, 1), (1, 0), (0, 3), (1, 3), (2, 3)}
    ends: list[Said] = [("a", "man", "riding on", "horse"), ("b", "man", "next to", "ball"), deeds[3]]
    assert triplets(ends, [], 0.99) == {(0, 1), (1, 0), (0, 2), (1, 2)}


HEADER = "Word\tBigram\tConc.M\tConc.SD\n"
WORDS = "glass\t0\t4.82\t0.1\nglasses\t0\t4.86\t0.1\nHat\t0\t5\t0\nfire truck\t1\t4.9\t0.2\nthen\t0\t1.4\t0.9\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.txt"
    path.write_text(HEADER + WORDS, "utf-8")
    return path


def test_ratings_of_a_file(file: Path) -> None:
    ratings = load_ratings(file)
    assert ratings.rated == {"glass": 4.82, "glasses": 4.86, "hat": 5.0, "fire truck": 4.9, "then": 1.4}
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert load_ratings(file) == ratings
    pytest.importorskip("inflect", reason="plurals of the published rules: pip install 'twinset[text]'")
    published = [ratings.published.get(word, UNKNOWN) for word in ("glass", "glasses", "hats", "Hat")]
    assert published == [4.82, 4.82, 5.0, UNKNOWN], "plurals overwrite"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word,conc\nhat,5\n", "line 1: no columns"),
        (HEADER, "no word in it"),
        (HEADER + WORDS + "cap\t0\n", "line 7: .*Conc.M"),
        (HEADER + "cap\t0\thigh\t0\n", "line 2: .*Conc.M"),
        (HEADER + "cap\t0\tnan\t0\n", "line 2: 'cap' rated nan"),
        (HEADER + f"{'z' * 3_000_000}\t0\t4.8\t0\n", "line 2: 'z{200}' rated 4.8"),
        (HEADER + WORDS + "hat\t0\t3\t0\n", "line 7: 'hat'"),
        (HEADER.encode() + b"caf\xe9\t0\t4.8\t0\n", "line 2: .*UTF-8"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_place(file: Path, content: str | bytes, message: str) -> None:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WrongUse, match=message):
        load_ratings(file)
