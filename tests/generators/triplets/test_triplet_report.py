"""The report of what was mined: its numbers are counted again here."""

from pathlib import Path

import numpy as np
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from tests.generators.triplets.published_procedure import Drawn, PublishedProcedure, table_of
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings, Rules
from twinset.generators.triplets.report import SAMPLE, MiningReport, make_report
from twinset.generators.triplets.source import Triplets
from twinset.manifests.errors import WrongUse

DRAWS = Draws(5, "triplets")


def mining(rules: Rules, min_images: int, threshold: float, distractors: bool) -> Triplets:
    settings = {"min_images": min_images, "threshold": threshold, "distractors": distractors, "licence": "CC0-1.0"}
    settings["min_support"] = 1
    return Triplets(kind="genecis-triplets", graphs="graphs", concreteness=Path("r.txt"), rules=rules, **settings)


def test_own_captions(own_said: list[Said], own_ratings: Ratings) -> None:
    relations = relations_of(own_said)
    report = make_report(relations, own_ratings, mining("strict", 5, 4.6, True), DRAWS)
    assert list(report.funnels) == ["published", "strict"]
    funnel = report.funnels["strict"]
    assert funnel["relations"] == len(own_said)
    assert funnel["relations with both words rated"] == len(own_said) - 1  # the thingummy
    assert funnel["eligible subjects"] == 4
    assert funnel["subjects"] == len({said[1] for said in own_said})
    relations = list(funnel.values())[list(funnel).index("relations") : list(funnel).index("subjects")]
    assert relations == sorted(relations, reverse=True) and len(relations) > 5
    assert 0 < report.refused["object unsaid of the reference"] < 1 and report.refused["one grammatical number"] == 0
    assert report.mined == SAMPLE and report.left_out == 0 and sum(report.histogram) == SAMPLE
    assert sum(report.subjects.values()) == SAMPLE and list(report.subjects.values()) == sorted(
        report.subjects.values(), reverse=True
    )
    assert report.differences is not None
    assert report.differences.same_object > 0.01  # crowns
    glasses = next(one for one in report.differences.overwritten if one.word == "glasses")
    assert (glasses.rated, glasses.published, glasses.relations) == (4.0, 4.9, 2)
    assert report.differences.by_overwriting > 0
    again = MiningReport.model_validate_json(report.to_bytes())
    assert again == report and list(again.subjects) == list(report.subjects)
    assert list(again.funnels["strict"]) == list(funnel), "the order of steps is kept"


def test_shares_are_those_of_published_triplets_one_by_one(real_relations: Relations, real_ratings: Ratings) -> None:
    found = make_report(real_relations, real_ratings, mining("published", 5, 4.8, True), DRAWS)
    shares = found.differences
    assert shares is not None and real_ratings.published is not None
    pool = Pool(real_relations, real_ratings, "published", 5)
    mined = Miner(pool, 4.8).mine(DRAWS, 0, SAMPLE)
    table = table_of(real_relations)
    procedure = PublishedProcedure(table, real_ratings.published, 4.8, 5, seed=0)
    others = {**real_ratings.published, **real_ratings.rated}
    kept = PublishedProcedure(table, others, 4.8, 5, seed=0)
    words = real_relations.words
    lemma = {
        row: (words[one].lower(), words[other].lower())
        for row, (one, other) in enumerate(zip(real_relations.subject_lemma, real_relations.object_lemma, strict=True))
    }
    shown = {(table[row].image, *both) for row, both in lemma.items()}
    counts = dict.fromkeys(("same_object", "same_image", "target_image", "shows", "overwriting", "distractor"), 0)
    for reference, target, distractor in zip(
        mined.reference.tolist(), mined.target.tolist(), mined.distractor.tolist(), strict=True
    ):
        counts["same_object"] += lemma[reference][1] == lemma[target][1]
        counts["same_image"] += table[reference].image == table[target].image
        counts["target_image"] += table[distractor].image == table[target].image
        counts["shows"] += (table[distractor].image, *lemma[target]) in shown
        counts["overwriting"] += kept.concreteness(Drawn(reference, target, distractor)) <= 4.8
        four = [procedure.ratings.get(word, -1) for row in (reference, target) for word in table[row][1::2]]
        counts["distractor"] += sum(four) / 4 <= 4.8
    expected = {name: count / SAMPLE for name, count in counts.items()}
    assert expected == pytest.approx(
        {
            "same_object": shares.same_object,
            "same_image": shares.same_image,
            "target_image": shares.distractor_of_target_image,
            "shows": shares.distractor_shows_target,
            "overwriting": shares.by_overwriting,
            "distractor": shares.by_distractor,
        },
        abs=2e-4,  # means that round to the threshold
    )
    assert shares.any >= max(expected.values())


def test_published_rules_that_find_nothing_differ_in_nothing(
    own_said: list[Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinset.generators.triplets.report.SAMPLE", 8)
    ratings = Ratings(RATED, dict.fromkeys(RATED, 4.5))  # a mean of the threshold itself, which is not above it
    report = make_report(relations_of(own_said), ratings, mining("strict", 5, 4.5, False), DRAWS)
    assert report.differences is None and report.mined == 8


def test_nothing_to_mine_is_refused(own_said: list[Said]) -> None:
    with pytest.raises(WrongUse, match="under the strict rules"):
        make_report(relations_of(own_said), Ratings(RATED, RATED), mining("strict", 1000, 4.6, True), DRAWS)


@pytest.mark.parametrize("distractors", [True, False])
def test_the_card_speaks_of_distractors_where_they_are_stored(
    own_said: list[Said], own_ratings: Ratings, distractors: bool
) -> None:
    source = mining("strict", 5, 4.6, distractors)
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    said = source.how_made({"mining.json": report.model_dump()})
    found = report.differences
    assert found is not None and (found.distractor_shows_target is not None) == distractors
    for words in ("the distractor is the target's image", "6. The *distractor*", "distractor's photo"):
        assert (words in said) == distractors
    shares = found.model_dump(exclude={"triplets", "any", "strict_dropped", "overwritten"}, exclude_none=True)
    assert max(shares.values()) <= found.any <= sum(shares.values()) + 1e-5, "a union of the rows that are shown"


def test_the_funnel_is_in_the_order_of_the_work(own_said: list[Said], own_ratings: Ratings) -> None:
    source = mining("strict", 5, 4.6, False)
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    said = source.how_made({"mining.json": report.model_dump()})
    table = said[said.index("| captions |") : said.index("Of pairs that are drawn")]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    assert rows == list(report.funnels["strict"])
    first, last = rows.index("relations"), rows.index("subjects")
    assert all(row.startswith("relations") for row in rows[first:last]) and last - first > 5
    assert rows[-1] == "references within reach of the threshold"


@pytest.mark.parametrize(("max_unsaid", "limited"), [(0.03, True), (1.0, False)])
def test_the_card_claims_no_limit_that_is_not_set(max_unsaid: float, limited: bool) -> None:
    said = mining("strict", 5, 4.6, False).model_copy(update={"max_unsaid": max_unsaid}).how_made({})
    assert ("captions often leave out" in said) == limited and "two captions of a target's" in said


def test_the_funnel_names_a_limit_as_it_is_set(
    own_said: list[Said], own_ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PHOTOS", 0), ("SEVERAL", 1), ("PRIOR", 0.0)):
        monkeypatch.setattr(f"twinset.generators.triplets.captions.{name}", value)
    monkeypatch.setattr("twinset.generators.triplets.rules.RELIABLE", np.inf)
    source = mining("strict", 5, 4.0, False).model_copy(update={"max_unsaid": 0.995})
    report = make_report(relations_of(own_said), own_ratings, source, DRAWS)
    assert any("at most 99.5% of the references" in step for step in report.funnels["strict"])
