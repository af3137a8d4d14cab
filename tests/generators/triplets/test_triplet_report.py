"""The report of what was mined: its numbers are counted again here."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.generator import TripletGenerator
from twinset.generators.triplets.ratings import Ratings, Rules
from twinset.generators.triplets.report import SAMPLE, UNKNOWN, make_report
from twinset.generators.triplets.source import Triplets
from twinset.shards.contracts import Context

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
    assert isinstance(made, TripletGenerator)
    monkeypatch.setattr(TripletGenerator, "_relations", relations_of(own_said))
    monkeypatch.setattr("twinset.generators.triplets.generator.load_ratings", lambda *_: Ratings(RATED, RATED))
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)  # refused draws lie on both sides of its end
    planned = list(made.plan())
    assert 0 < len(planned) < 100 and planned[-1].number > len(planned) and not made.excluded
    for part in (0, 1):
        assert max(Counter(one.image_ids[part] for one in planned).values()) == 2
