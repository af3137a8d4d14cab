"""What is planned and reported of mining, and what the card says of it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import StrictRules
from twinset.shards.contracts import Context


def mining(said: list[Said], **settings: Any) -> Triplets:
    """The source at work on relations."""
    names = {"min_support": 1, "threshold": 4.6, "max_unsaid": 1.0, "licence": "CC0-1.0", **settings}
    source = Triplets(kind="genecis-triplets", graphs="graphs", concreteness=Path("ratings.txt"), **names)
    opened: Triplets = source.open(Context("triplets", seed=5))
    rules = StrictRules(relations_of(said), RATED, 4.6, 5, 1, 1.0, opened.distractors)
    vars(opened)["_miner"] = rules
    return opened


@pytest.mark.parametrize("distractors", [True, False])
def test_the_plan_has_what_each_part_says(own_said: list[Said], distractors: bool) -> None:
    plan = mining(own_said, distractors=distractors).plan()
    for candidate in (next(plan) for _ in range(200)):
        assert candidate.condition == f"{candidate.predicates[1]} {candidate.objects[1]}"
        for part in range(2 + distractors):
            image, *words = own_said[int(candidate.caption_ids[part])]
            assert candidate.image_ids[part] == image and candidate.images[part] == f"{image}.jpg"
            said = [candidate.subjects[part], candidate.predicates[part], candidate.objects[part]]
            assert said == words == candidate.captions[part].split()
        assert bool(candidate.images[2]) == distractors == bool(candidate.captions[2])


def test_draws_that_a_limit_refuses_are_not_left_out(own_said: list[Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)  # refused draws lie on both sides of its end
    source = mining(own_said, max_uses=2)
    planned = list(source.plan())
    assert 0 < len(planned) < 100 and planned[-1].number > len(planned) and not source.excluded
    for part in (0, 1):
        assert max(Counter(candidate.image_ids[part] for candidate in planned).values()) == 2


def test_the_report_counts_and_the_card_tells_it(own_said: list[Said]) -> None:
    source = mining(own_said, distractors=True)
    report = json.loads(source.report_files()["mining.json"])
    funnel = report["funnel"]
    assert funnel["relations"] == len(own_said) and funnel["relations with both words rated"] == len(own_said) - 1
    assert (funnel["eligible subjects"], funnel["subjects"]) == (4, len({said[1] for said in own_said}))
    card = source.how_made({"mining.json": report})
    table = card[card.index("| all | ") : card.index("more rules lost nothing")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
    left = [int(count.replace(",", "")) for _, count, _ in rows]
    assert left[0] == funnel["relations"] and left[-1] == funnel["references within reach of the threshold"]
    assert [before - after for before, after in pairwise(left)] == [
        int(lost.replace(",", "")) for _, _, lost in rows[1:]
    ]
    assert "6. The *distractor*" in card and "could not be estimated here" in card


@pytest.mark.parametrize(("max_unsaid", "limited"), [(0.03, True), (1.0, False)])
def test_the_card_claims_no_limit_that_is_not_set(max_unsaid: float, limited: bool) -> None:
    source = Triplets(kind="genecis-triplets", graphs="graphs", concreteness=Path("r"), max_unsaid=max_unsaid)
    reports = [{"funnel": {"captions": 1}, "estimated": estimated} for estimated in (True, False)]
    known, unknown = (source.how_made({"mining.json": report}) for report in reports)
    assert ("captions often leave out" in known) == limited and "could not be estimated" not in known
    assert ("objects that are worn are" in unknown) == limited and "could not be estimated here" in unknown
    uses = source.model_copy(update={"max_uses": 2})
    assert "at most 2 have one image" in uses.how_made({})
    assert "at most 2" not in uses.model_copy(update={"rules": "published"}).how_made({})
