"""What the strict rules ask of relations and of captions, one rule at a time.

The file of ratings, what its words are worth under either rules, and files of another shape.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.finished_stage import finish
from tests.generators.triplets.conftest import LEMMAS, RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets.captions import Spoken
from twinset.generators.triplets.draws import NONE, Draws
from twinset.generators.triplets.graphs import Facts, Relations, load_relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool, funnel
from twinset.generators.triplets.ratings import UNKNOWN, Ratings, load_ratings
from twinset.shards.finished_stage import FinishedStage

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
RATINGS = Ratings({**RATED, **dict.fromkeys(CONCRETE, 4.9)}, RATED)


def pool(relations: Relations, min_support: int = 1) -> Pool:
    return Pool(relations, RATINGS, "strict", 1, min_support)


def facts_of(relations: Relations) -> Facts:
    assert relations.facts is not None
    return relations.facts


def mined(relations: Relations, pool_: Pool) -> set[tuple[str, str]]:
    rows = pool_.row.tolist()
    return {(relations.words[relations.subject[row]], relations.words[relations.object[row]]) for row in rows}


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
    relations = relations_of(said)
    be = relations.words.index("is") if "is" in relations.words else None
    if be is not None:  # the lemma of "is"
        words = [word if word != "is" else "be" for word in relations.words]
        relations = replace(relations, words=words)
    assert mined(relations, pool(relations)) == {("man", "horse")}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nouns", False),
        ("negated", True),
        ("backdrop", True),
        ("contested", True),
        ("stand_in", True),
        ("begins", False),
        ("verb", True),
        ("unplaced", True),
    ],
)
def test_grammar_that_no_relation_is_mined_of(name: str, value: bool) -> None:
    relations = relations_of([("a", "man", "at", "tree"), ("b", "dog", "at", "tree")])
    facts = facts_of(relations)
    column = getattr(facts, name).copy()
    column[1] = value
    judged = replace(relations, facts=replace(facts, **{name: column}))
    assert mined(judged, pool(judged)) == {("man", "tree")}


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
    relations = relations_of([("a", "man", "on", "horse"), ("b", "dog", "with", "ball")])
    captions = relations.texts["caption"].to_pylist()
    captions[relations.caption[1]] = caption
    texts = relations.texts.set_column(2, "caption", pa.array(captions))
    judged = replace(relations, texts=texts)
    assert mined(judged, pool(judged)) == {("man", "horse")} | ({("dog", "ball")} if told else set())


def test_verbs_of_the_past_tell_stories_or_were_misread() -> None:
    relations = relations_of([("a", "man", "wore", "hat"), ("b", "dog", "chewing", "ball"), ("c", "man", "has", "dog")])
    words = relations.words
    lemmas = np.array([words.index(word) for word in ("has", "has", "has")], dtype=np.int32)
    judged = replace(relations, predicate_lemma=lemmas)  # of which each is another form
    assert mined(judged, pool(judged)) == {("dog", "ball"), ("man", "dog")}


def test_the_second_parser_counts_where_there_is_one() -> None:
    relations = relations_of([("a", "man", "on", "horse"), ("b", "dog", "with", "ball")])
    assert mined(relations, pool(relations)) == {("man", "horse"), ("dog", "ball")}
    judged = replace(relations, facts=replace(facts_of(relations), confirmed=np.array([False, True])))
    assert mined(judged, pool(judged)) == {("dog", "ball")}
    plain = replace(facts_of(judged), plain=np.array([True, False]))
    assert len(mined(replace(judged, facts=plain), pool(replace(judged, facts=plain)))) == 2


PAIRS = "relations of pairs of words that 2 photos or more have, or that a sentence begins with"
DEEDS = (
    "relations whose verb is in the captions of 2 photos or more and rated 3 or more for concreteness, or whose verb "
    "and object are together in those of 2 photos or more"
)


def test_support_counts_photos() -> None:
    said = [("a", "man", "on", "horse"), ("a", "man", "riding", "horse"), ("b", "dog", "with", "ball")]
    said += [("c", "dog", "with", "ball"), ("d", "tree", "with", "bird"), ("e", "king", "with", "bird")]
    relations = relations_of(said)
    assert mined(relations, pool(relations, 2)) == {("dog", "ball")}
    assert funnel(pool(relations, 2))[PAIRS] == 2
    one = replace(relations, facts=replace(facts_of(relations), photo=np.zeros(len(said), dtype=np.int32)))
    assert mined(one, pool(one, 2)) == set()


def test_support_counts_photos_of_what_conditions_say() -> None:
    """Of any subject: a dog's that one photo has counts for a man's that two have."""
    said = [("a", "man", "on", "horse"), ("b", "man", "near", "horse"), ("c", "dog", "on", "horse")]
    said += [("d", "man", "riding", "horse"), ("e", "man", "have", "horse"), ("f", "man", "chewing", "horse")]
    said += [("g", "dog", "riding", "ball"), ("h", "tree", "have", "ball")]
    relations = relations_of(said)
    kept = sorted(pool(relations, 2).row.tolist())
    assert kept == [0, 3], "a verb needs photos, not of the same object, unless it says no more than with"
    steps = pool(relations, 2).steps
    assert (steps[PAIRS], steps[DEEDS]) == (5, 2)
    begins = replace(facts_of(relations), plain=np.arange(len(said)) == 2)
    assert sorted(pool(replace(relations, facts=begins), 2).row.tolist()) == [0, 2, 3]
    for rating, rows in ((3.0, [0, 3]), (2.9, [0])):
        ratings = Ratings({**RATINGS.rated, "riding": rating}, RATED)
        assert sorted(Pool(relations, ratings, "strict", 1, 2).row.tolist()) == rows
    ground: list[Said] = [("i", "man", "riding", "ground"), ("j", "man", "riding on", "ground")]
    more = relations_of([*said, *ground])
    where = replace(facts_of(more), plain=np.ones(len(more), dtype=np.bool_))
    kept = set(Pool(replace(more, facts=where), RATINGS, "strict", 1, 2).row.tolist())
    assert (8 in kept, 9 in kept) == (False, True), "grounds are where, seldom what"
    twice = relations_of([*said, ("i", "king", "riding", "horse")])
    assert 3 in Pool(twice, ratings, "strict", 1, 2).row.tolist(), "as many photos say the same of a horse"


def test_images_of_a_subject_count_in_all_relations_with_rated_words() -> None:
    said = [
        ("a", "man", "on", "horse"),
        ("b", "man", "near", "tree"),
        ("c", "man", "of", "ball"),
        ("d", "man", "x", "x"),
    ]
    relations = relations_of(said)
    assert [Pool(relations, RATINGS, "strict", least).eligible.tolist() for least in (3, 4)] == [[True], [False]]


def triplets(relations: Relations, distractors: bool = False) -> set[tuple[int, int, int]]:
    table = Miner(pool(relations), 4.0, distractors).mine(Draws(1, "t"), 0, 400)
    columns = (table.reference.tolist(), table.target.tolist(), table.distractor.tolist())
    return set(zip(*columns, strict=True))


def test_subjects_have_one_grammatical_number() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "men", "with", "hat"), ("c", "man", "near", "tree")]
    assert triplets(relations_of(said)) == {(0, 2, NONE), (2, 0, NONE)}


def parsed(folder: Path, captions: list[tuple[str, str]], **settings: Any) -> FinishedStage:
    lines = [json.dumps({"image": image, "caption": caption}) for image, caption in captions]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    source = SceneGraphs(kind="scene-graphs", captions=(folder / "captions.jsonl",), **settings)
    return finish(source, folder)


def test_captions_that_begin_with_the_subject(tmp_path: Path) -> None:
    said = ["A small man on a horse", "Here is a man on a horse", "the festival invites a man on a horse"]
    relations = load_relations(parsed(tmp_path, [(str(n), caption) for n, caption in enumerate(said)]))
    begins = dict.fromkeys(relations.texts["caption"].to_pylist(), False)
    for row in np.flatnonzero(relations.subject == relations.words.index("man")).tolist():
        begins[said[relations.caption[row]]] |= bool(facts_of(relations).begins[row])
    assert begins == dict(zip(said, (True, False, False), strict=True))


CAPTIONS = [
    ("1000268201_693b08cb0e.jpg", "A man on a horse"),
    ("1000268201.jpg", "Look, hats!"),
    ("b.jpg", "A man with a hat"),
    ("c.jpg", "A man near a tree"),
]


def test_no_caption_of_the_reference_names_the_object(tmp_path: Path) -> None:
    """Not even one without a relation, of the same photo under another name, in the plural."""
    relations = load_relations(parsed(tmp_path, CAPTIONS))
    facts = facts_of(relations)
    assert (len(relations), relations.names, facts.photos) == (3, 3, 3)
    assert triplets(relations) == {(0, 2, NONE), (1, 0, NONE), (1, 2, NONE), (2, 0, NONE), (2, 1, NONE)}


def test_no_caption_of_the_distractor_names_the_subject() -> None:
    said: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "tree"), ("c", "bird", "near", "tree")]
    said += [("d", "dog", "near", "tree"), ("d", "ball", "behind", "man"), ("e", "bird", "on", "horse")]
    assert triplets(relations_of(said), distractors=True) >= {(0, 1, 2)}
    assert not {(0, 3), (1, 3)} & {one[1:] for one in triplets(relations_of(said), distractors=True)}


def test_where_nothing_has_the_support_the_message_names_it(own_said: list[Said]) -> None:
    with pytest.raises(
        WrongUse, match=r"0 relations of pairs of words that 9000000 photos or more have, .* or min_support"
    ):
        Miner(pool(relations_of(own_said), min_support=9_000_000), 4.0)


def test_forms_of_a_noun_are_found_in_captions(own_said: list[Said]) -> None:
    relations = relations_of(own_said)
    photos = np.array([900, 901, 902], dtype=np.int32)
    captions = pa.chunked_array([["Two GLASSES, one dog-man.", "A manly glassblower"], ["a glass"]])
    spoken = Spoken(relations.words, LEMMAS.items() | {("man", "man")}, photos, captions)
    glass, man = (np.array([relations.words.index(word)] * 3) for word in ("glass", "man"))
    assert spoken.says(photos, glass).tolist() == [True, False, True]
    assert spoken.says(photos, man).tolist() == [True, False, False]


HEADER = "Word\tBigram\tConc.M\tConc.SD\n"
WORDS = "glass\t0\t4.82\t0.1\nglasses\t0\t4.86\t0.1\nHat\t0\t5\t0\nfire truck\t1\t4.9\t0.2\nthen\t0\t1.4\t0.9\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.txt"
    path.write_text(HEADER + WORDS, "utf-8")
    return path


def test_rated_words_keep_their_ratings_and_others_have_their_lemma_s(file: Path) -> None:
    ratings = load_ratings(file, "strict")
    assert ratings.published is None
    words = ["glasses", "Glass", "hats", "HATS", "fire trucks", "thingummy"]
    lemmas = ["glass", "glass", "hat", "hat", "fire truck", "thingummy"]
    found = ratings.strict_of(words, lemmas).tolist()
    assert found[:5] == [4.86, 4.82, 5.0, 5.0, 4.9] and math.isnan(found[5])


def test_published_plurals_overwrite(file: Path) -> None:
    pytest.importorskip(
        "inflect", reason="inflect makes the plurals of the published rules: pip install 'twinset[text]'"
    )
    ratings = load_ratings(file, "published")
    assert ratings.published_of(["glass", "glasses", "hats", "Hat", "thingummy"]).tolist() == [
        4.82,
        4.82,
        5.0,
        UNKNOWN,
        UNKNOWN,
    ]
    assert ratings.rated["glasses"] == 4.86


def test_line_ends_and_a_byte_order_mark_are_no_part_of_words(file: Path) -> None:
    before = load_ratings(file, "strict")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert load_ratings(file, "strict") == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: no columns"),
        ("word,conc\nhat,5\n", "line 1: no columns"),
        ("Word\tBigram\nhat\t0\n", "line 1: no columns"),
        (HEADER, "no word in it"),
        (HEADER + WORDS + "cap\t0\n", "line 7: 2 columns where the first line has 4"),
        (HEADER + "cap\t0\thigh\t0\n", "line 2: Conc.M is 'high', no number"),
        (HEADER + "cap\t0\tnan\t0\n", "line 2: 'cap' rated nan"),
        (HEADER + "cap\t0\t485\t0\n", "line 2: 'cap' rated 485; ratings are of words and go from 1 to 5"),
        (HEADER + " \t0\t4.8\t0\n", "line 2: '' rated 4.8"),
        (HEADER + f"{'z' * 3_000_000}\t0\t4.8\t0\n", "line 2: 'z{200}' rated 4.8; ratings are of words"),
        (HEADER + WORDS + "hat\t0\t3\t0\n", "line 7: 'hat' is rated in line 4 already"),
        (HEADER.encode() + b"caf\xe9\t0\t4.8\t0\n", "line 2: not UTF-8"),
        ((HEADER + WORDS).encode("utf-16"), "line 1: no columns"),
        (None, "No such file"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_place(
    file: Path, content: str | bytes | None, message: str
) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(WrongUse, match=message) as refused:
        load_ratings(file, "strict")
    assert str(file) in str(refused.value)
