"""Random numbers that depend on seed, subset and number alone.

Relations as they are loaded from a finished stage of scene graphs.
Names as numbers equal a dictionary's, also where hashes fail to tell them apart.
The report of what was mined: its numbers are counted again here.
What captions leave out: other names of things, words that imply them, and how many photos show them unsaid.
"""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.finished_stage import finish
from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.source import TEXTS, SceneGraphs
from twinset.generators.triplets import graphs
from twinset.generators.triplets.captions import FILE, PRIOR, Spoken, concepts, forms_of, mentions_of, not_repeated
from twinset.generators.triplets.draws import NONE, Draws, below, uniform
from twinset.generators.triplets.graphs import WORDS, Names, load_relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings, Rules
from twinset.generators.triplets.report import SAMPLE, UNKNOWN, make_report
from twinset.generators.triplets.source import Triplets
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage


def test_random_numbers_are_even_and_unrelated() -> None:
    """By neighbouring numbers, attempts and slots, which are all that tells them apart."""
    draws, index = Draws(3, "triplets"), np.arange(1 << 16)
    states = draws.states(index, np.zeros_like(index))
    grid = np.stack(
        [
            uniform(states, 0),
            uniform(states, 1),
            uniform(draws.states(index, np.ones_like(index)), 0),
            uniform(draws.states(index + 1, np.zeros_like(index)), 0),
        ]
    )
    assert ((grid >= 0) & (grid < 1)).all()
    counts = np.stack([np.histogram(one, bins=64, range=(0, 1))[0] for one in grid])
    chi_square = ((counts - 1024) ** 2 / 1024).sum(axis=1)  # 63 degrees of freedom: 130 is a chance of 1e-6
    assert (chi_square < 130).all()
    related = np.corrcoef(grid) - np.eye(len(grid))
    assert np.abs(related).max() < 0.025  # 1/256 is its standard deviation
    whole = below(states, 0, np.full(len(states), 3, dtype=np.int32))
    assert set(whole.tolist()) == {0, 1, 2}


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


def column(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_numbers_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(graphs, "BLOCK", size)
    texts = [f"http://a.org/{number}.jpg" for number in np.random.default_rng(7).integers(300, size=1000)]
    named, expected = Names(column(texts)), column(texts).dictionary_encode()
    assert named.numbers.tolist() == expected.indices.to_pylist() and named.different == len(expected.dictionary)
    others = column(["absent", texts[500], "", texts[0]])
    assert named.find(others).tolist() == [NONE, int(named.numbers[500]), NONE, 0]


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def poor(text: str) -> Any:
        asked.append(text)
        return hash(text) if text.startswith("1") else len(text)

    monkeypatch.setattr(graphs, "hash", poor, raising=False)
    named = Names(column(["ab", "cd", "ab", "e"]))
    assert named.numbers.tolist() == [0, 1, 0, 2] and "1cd" in asked
    assert named.find(column(["cd", "e", "fg"])).tolist() == [1, 2, NONE]


def test_a_name_that_is_not_there_is_not_found_by_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "hash", len, raising=False)
    named = Names(column(["a", "bb"]))
    assert named.find(column(["c", "bb"])).tolist() == [NONE, 1]


DRAWS = Draws(5, "triplets")


def mining(rules: Rules, min_images: int, threshold: float, distractors: bool) -> Triplets:
    settings = {"min_images": min_images, "threshold": threshold, "distractors": distractors, "licence": "CC0-1.0"}
    settings["min_support"] = 1
    return Triplets(kind="genecis-triplets", graphs="graphs", concreteness=Path("r.txt"), rules=rules, **settings)


def test_own_captions(own_said: list[Said], own_ratings: Ratings) -> None:
    relations = relations_of(own_said)
    report = make_report(relations, own_ratings, mining("strict", 5, 4.6, True), DRAWS)
    funnel = report["funnel"]
    assert funnel["relations"] == len(own_said)
    assert funnel["relations with both words rated"] == len(own_said) - 1  # the thingummy
    assert funnel["eligible subjects"] == 4
    assert funnel["subjects"] == len({said[1] for said in own_said})
    relations = list(funnel.values())[list(funnel).index("relations") : list(funnel).index("subjects")]
    assert relations == sorted(relations, reverse=True) and len(relations) > 5
    assert (
        0 < report["refused"]["object unsaid of the reference"] < 1 and report["refused"]["one grammatical number"] == 0
    )
    assert report["mined"] == SAMPLE and report["left_out"] == 0
    assert sum(report["subjects"].values()) == SAMPLE and list(report["subjects"].values()) == sorted(
        report["subjects"].values(), reverse=True
    )


def test_nothing_to_mine_is_refused(own_said: list[Said]) -> None:
    with pytest.raises(WrongUse, match="under the strict rules"):
        make_report(relations_of(own_said), Ratings(RATED, RATED), mining("strict", 1000, 4.6, True), DRAWS)


@pytest.mark.parametrize("distractors", [True, False])
def test_the_card_speaks_of_distractors_where_they_are_stored(
    own_said: list[Said], own_ratings: Ratings, distractors: bool
) -> None:
    source = mining("strict", 5, 4.6, distractors)
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    said = source.how_made({"mining.json": report})
    for words in ("6. The *distractor*", "distractor's image"):
        assert (words in said) == distractors


def test_the_funnel_is_in_the_order_of_the_work(own_said: list[Said], own_ratings: Ratings) -> None:
    source = mining("strict", 5, 4.6, False)
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    said = source.how_made({"mining.json": report})
    table = said[said.index("| all | ") : said.index("more rules lost nothing")]
    (all_of_them, *rows) = [
        [one.strip() for one in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line
    ]
    counts = report["funnel"]
    rules = [one for one in counts if one.startswith("relations ") and one != "relations of eligible subjects"]
    order = [f"relations {name}" for name, *_ in rows[:-2]]
    before = dict(zip(rules, ["relations", *rules], strict=False))
    assert order == [one for one in rules if counts[one] < counts[before[one]]] and len(rules) - len(order) > 5
    assert f"{len(rules) - len(order)} more rules lost nothing" in said
    left = [int(count.replace(",", "")) for _, count, _ in (all_of_them, *rows)]
    assert left[0] == counts["relations"] and left[-1] == counts["references within reach of the threshold"]
    assert [one - two for one, two in pairwise(left)] == [int(lost or 0) for _, _, lost in rows]


@pytest.mark.parametrize(("max_unsaid", "limited"), [(0.03, True), (1.0, False)])
def test_the_card_claims_no_limit_that_is_not_set(max_unsaid: float, limited: bool) -> None:
    source = mining("strict", 5, 4.6, False).model_copy(update={"max_unsaid": max_unsaid})
    said, unknown = (source.how_made({"mining.json": {"funnel": {step: 1}}}) for step in ("captions", UNKNOWN))
    assert ("captions often leave out" in said) == limited and "could not be estimated" not in said
    assert ("objects that are worn are" in unknown) == limited and "could not be estimated here" in unknown
    assert "captions often leave out" not in unknown


def test_the_funnel_names_a_limit_as_it_is_set(
    own_said: list[Said], own_ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PHOTOS", 0), ("SEVERAL", 1), ("PRIOR", 0.0)):
        monkeypatch.setattr(f"twinset.generators.triplets.captions.{name}", value)
    monkeypatch.setattr("twinset.generators.triplets.rules.RELIABLE", np.inf)
    source = mining("strict", 5, 4.0, False).model_copy(update={"max_unsaid": 0.995})
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    assert any("at most 99.5% of the references" in step for step in report["funnel"])


def test_a_limit_of_uses_is_told_and_what_it_costs(own_said: list[Said], own_ratings: Ratings) -> None:
    rule = "one photo as reference or as target at most 2 times in 1,000"
    source = mining("strict", 5, 4.6, False)
    limited = source.model_copy(update={"max_uses": 2, "balance": "subjects"})
    whole, few = (make_report(relations_of(own_said), own_ratings, one, DRAWS) for one in (source, limited))
    assert rule not in whole["refused"] and whole["mined"] == SAMPLE
    assert few["mined"] == round(SAMPLE * (1 - few["refused"][rule])) < 100 and few["left_out"] == 0
    assert few["mined"] == sum(few["subjects"].values())
    said, told = (one.how_made({}) for one in (source, limited))
    assert "at most 2 have one image" in told and "all of them equally often" in told
    assert "at most 2" not in said and "more images show it" in said
    published = mining("published", 5, 4.6, False).model_copy(update={"max_uses": 2, "balance": "subjects"})
    assert "at most 2" not in published.how_made({}) and "more images show it" in published.how_made({})


def test_draws_that_a_limit_refuses_are_not_left_out(own_said: list[Said], monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"max_uses": 2, "max_unsaid": 1.0}
    made = mining("strict", 5, 4.6, False).model_copy(update=limits).open(Context("triplets"))
    assert isinstance(made, Triplets)
    monkeypatch.setattr(Triplets, "_relations", relations_of(own_said))
    monkeypatch.setattr("twinset.generators.triplets.source.load_ratings", lambda *_: Ratings(RATED, RATED))
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)  # refused draws lie on both sides of its end
    planned = list(made.plan())
    assert 0 < len(planned) < 100 and planned[-1].number > len(planned) and not made.excluded
    for part in (0, 1):
        assert max(Counter(one.image_ids[part] for one in planned).values()) == 2


RATINGS = Ratings({**RATED, "jacket": 4.9, "frisbee": 4.9}, RATED)


def miner(said: list[Said], others: list[tuple[str, str]], max_unsaid: float = 1.0) -> Miner:
    return Miner(Pool(relations_of(said, others), RATINGS, "strict", 1), 4.0, False, max_unsaid)


def triplets(said: list[Said], others: list[tuple[str, str]], max_unsaid: float = 1.0) -> set[tuple[int, int]]:
    table = miner(said, others, max_unsaid).mine(Draws(1, "t"), 0, 400)
    assert set(table.distractor.tolist()) == {NONE}
    return set(zip(table.reference.tolist(), table.target.tolist(), strict=True))


def test_lists_of_words() -> None:
    """Every line has both halves and no word twice, and a word of two lines has the names of both."""
    of = concepts().by_noun
    for line in load_yaml(FILE.read_text("utf-8"))["concepts"]:
        names, others = (part.split() for part in line.split(":"))
        assert names and len({*names, *others}) == len(names) + len(others), line
        assert all({*names} <= of[name].names and {*others} <= of[name].implied_by for name in names)
    assert {"bicycle", "bike"} <= of["bike"].names and of["bike"] == of["bicycle"]
    assert {"stool", "park"} <= of["bench"].names | of["bench"].implied_by
    assert concepts().of_noun("zyzzyva").names == {"zyzzyva"}
    assert forms_of(frozenset({"pony"})) == {"pony", "ponys", "ponyes", "ponies"}


SAID: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "ball"), ("c", "man", "with", "hat")]


@pytest.mark.parametrize("caption", ["Two PONIES", "At the rodeo", "a jockey"])
def test_other_names_and_what_implies_a_thing_bar_a_reference(caption: str) -> None:
    assert (1, 0) in triplets(SAID, [("b", "The coward waits")])
    assert triplets(SAID, [("b", caption)]) == triplets(SAID, []) - {(1, 0)}


def test_two_captions_of_a_target_name_both_words_where_it_has_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caption in three that alone names a horse is not believed; one in two is."""
    others = [("a", "A guy rides"), ("a", "A gentleman waits")]
    assert (1, 0) in triplets(SAID, others), "where no photo has as many, or a few"
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 1)
    assert (1, 0) in triplets(SAID, others[:1])
    assert (1, 0) not in triplets(SAID, others)
    assert (1, 0) in triplets(SAID, [("a", "A guy rides a pony"), *others[1:]])
    assert (1, 0) not in triplets(SAID, [("a", "A pony"), ("a", "Look, a pony")])


def test_estimate_of_what_is_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 40 photos of three captions; noun 1 is one caption's in 10, two captions' in 4, all three's in 6."""
    times = {0: [3] * 30, 1: [1] * 10 + [2] * 4 + [3] * 6}
    named = [photo << 32 | noun for noun, counts in times.items() for photo, n in enumerate(counts) for _ in range(n)]
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 40)
    few = [40 << 32 | 1]  # of a photo of two captions, which is not counted
    found = mentions_of(np.sort(np.array([-1, *named, *few])), np.array([3] * 40 + [2]), 3)
    assert found is not None
    odds = [(PRIOR**2 / 2) / 30, ((10 + PRIOR) ** 2 / (2 * 5)) / 20, PRIOR**2 / 2]
    assert found.odds.tolist() == pytest.approx(odds)
    subject, object_ = np.array([0, 1, 0], dtype=np.int32), np.array([1, 0, 2], dtype=np.int32)
    # 20 of the 30 photos that say 0 say 1 as well; 10 do not. All that say 1 say 0; none says 2.
    assert found.unsaid(subject, object_).tolist() == pytest.approx([min(20 * odds[1] / 10, 1), 1, 0])
    assert mentions_of(np.sort(np.array(named)), np.array([3] * 39 + [2, 2]), 3) is None


def shown(name: str, photos: int, times: int) -> list[tuple[str, str]]:
    """Two captions more of photos of men, so that as many of the three name a thing; all of them name the man."""
    texts = ["A man x" + f" {name}" * (times > 1), "A man y" + f" {name}" * (times > 2)]
    return [(f"{name}{n}", text) for n in range(photos) for text in texts]


def test_what_captions_leave_out_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frisbees are named by all three captions, jackets by one: as many men again wear one unsaid."""
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 41)
    said: list[Said] = [(f"frisbee{n}", "man", "with", "frisbee") for n in range(20)]
    said += [(f"jacket{n}", "man", "with", "jacket") for n in range(20)] + [("ball0", "man", "with", "ball")]
    others = shown("frisbee", 20, 3) + shown("jacket", 6, 2) + shown("jacket", 20, 1)[12:] + shown("ball", 1, 1)
    targets = {said[target][3] for _, target in triplets(said, others, 0.3)}
    assert targets == {"frisbee"}
    strict = miner(said, others, 0.3).rules
    assert strict.estimated and sorted(strict.reliable.tolist()) == [False, False, True]  # type: ignore[union-attr]
    with pytest.raises(WrongUse, match=r"captions leave out too much .*\(max_unsaid 0\).* or raise max_unsaid"):
        miner(said, others, 0.0)


def test_one_caption_a_photo_tells_nothing_of_what_is_unsaid() -> None:
    """So nothing that is worn is a target's, and a place only for references that say one; being in a hat is none."""
    rules = miner(SAID, [], 0.0).rules
    assert not rules.estimated and sorted(rules.reliable.tolist()) == [False, True, True]  # type: ignore[union-attr]
    every = {(one, other) for one in range(3) for other in range(3) if one != other}
    for predicate in ("with", "in"):
        said: list[Said] = [*SAID[:2], ("c", "man", predicate, "hat")]
        assert triplets(said, []) == every, "where no limit is set"
        assert triplets(said, [], 0.99) == {(0, 1), (1, 0)}
    deeds: list[Said] = [*SAID[:2], ("c", "man", "wearing", "hat"), ("d", "man", "chewing", "stick")]
    assert triplets(deeds, [], 0.99) == {(0, 1), (1, 0), (0, 3), (1, 3), (2, 3)}
    ends: list[Said] = [("a", "man", "riding on", "horse"), ("b", "man", "next to", "ball"), deeds[3]]
    assert triplets(ends, [], 0.99) == {(0, 1), (1, 0), (0, 2), (1, 2)}


def test_one_caption_under_two_data_sets_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 1)
    photos = np.array([0, 0, 1, 0, 1], dtype=np.int32)
    captions = pa.chunked_array([["A man .", "a  man", "A man."], ["A man on a horse", "A man!"]])
    assert not_repeated(photos, captions).tolist() == [True, False, True, True, False]
    for last, known in (("A MAN", False), ("Two men", True)):
        three = pa.chunked_array([*captions.chunks, [last]])
        spoken = Spoken(["man"], {("man", "man")}, np.append(photos, np.int32(0)), three)
        assert (spoken.mentions is not None) == known
