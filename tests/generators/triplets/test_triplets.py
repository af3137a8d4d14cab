"""What is planned and reported of mining, and what the card says of it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.finished_stage import finish
from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.relations import load_relations
from twinset.generators.triplets.report import SAMPLE, make_report
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import StrictRules
from twinset.shards.contracts import Context


def mining(said: list[Said], **settings: Any) -> Triplets:
    """The source at work on relations."""
    names = {"min_support": 1, "threshold": 4.6, "max_unsaid": 1.0, "licence": "CC0-1.0", **settings}
    source = Triplets(kind="genecis-triplets", graphs="graphs", concreteness=Path("ratings.txt"), **names)
    opened: Triplets = source.open(Context("triplets", seed=5))
    relations = relations_of(said)
    names = {name: getattr(opened, name) for name in ("min_support", "max_unsaid", "balance", "distractors")}
    miner = Miner(StrictRules(relations, Ratings(RATED), opened.threshold, opened.min_images, **names))
    vars(opened).update(_relations=relations, _miner=miner)
    return opened


@pytest.mark.parametrize("row_group", [1, 2, 1000])  # relations of one caption lie in one row group or in several
def test_texts_are_those_of_the_stage(tmp_path: Path, row_group: int) -> None:
    captions = ("a man with a hat on a horse", "snow", "a dog with a ball", "two dogs chewing a stick near a tree")
    records = [{"id": f"c{number}", "image": "a.jpg", "caption": text} for number, text in enumerate(captions)]
    lines = map(json.dumps, records)
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    source = SceneGraphs(kind="scene-graphs", captions=(tmp_path / "captions.jsonl",))
    graphs = finish(source, tmp_path, row_group=row_group)
    relations = load_relations(graphs, tmp_path)
    names = ["subject", "predicate", "object", "caption_id", "image_id", "caption", "image"]
    rows = graphs.read(names).to_pylist()
    wanted = np.array([len(rows) - 1, 0, 2, 0])
    assert relations.texts(wanted).select(names).to_dicts() == [rows[row] for row in wanted.tolist()]
    assert relations.begins().collect()["caption_id"].to_list() == ["c0", "c2", "c3"]
    assert relations.silent.rows() == [("a.jpg", "snow")]


@pytest.mark.parametrize("distractors", [True, False])
def test_the_plan_has_what_each_part_says(own_said: list[Said], distractors: bool) -> None:
    plan = mining(own_said, distractors=distractors).plan()
    texts = {" ".join(said[1:]): said for said in own_said}
    for candidate in (next(plan) for _ in range(200)):
        assert candidate.condition == f"{candidate.predicates[1]} {candidate.objects[1]}"
        for part in range(2 + distractors):
            image, subject, predicate, object_ = own_said[int(candidate.caption_ids[part])]
            assert candidate.image_ids[part] == image and candidate.images[part] == f"{image}.jpg"
            said = (candidate.subjects[part], candidate.predicates[part], candidate.objects[part])
            assert said == (subject, predicate, object_) == tuple(texts[candidate.captions[part]][1:])
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
    steps = list(funnel.values())[list(funnel).index("relations") : list(funnel).index("subjects")]
    assert steps == sorted(steps, reverse=True) and len(steps) > 5
    assert (report["mined"], report["left_out"], report["estimated"]) == (SAMPLE, 0, False)
    targets = list(report["subjects"].values())
    assert sum(targets) == SAMPLE and targets == sorted(targets, reverse=True)
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
    uses = source.model_copy(update={"max_uses": 2, "balance": "subjects"})
    assert "at most 2 have one image" in uses.how_made({}) and "all of them equally often" in uses.how_made({})
    published = uses.model_copy(update={"rules": "published"}).how_made({})
    assert "at most 2" not in published and "more images show it" in published


def test_other_seeds_give_other_triplets(own_said: list[Said]) -> None:
    source = mining(own_said)
    reports = [make_report(source._relations, source._miner, Draws(seed, "triplets")) for seed in (1, 2)]
    assert reports[0]["funnel"] == reports[1]["funnel"] and reports[0]["objects"] != reports[1]["objects"]
