"""Every figure of twinset's own kinds of scores is explained on the page, and no other."""

import pytest

from twinset.evaluation.metrics.matching import CHOICES, ORDERS, SCORES, Matchings
from twinset.evaluation.metrics.score_kinds import KINDS, METRICS, Groundings, Queries
from twinset.evaluation.report.glossary import explained

FIGURES = {
    *("text", "image", "group", "group_match", "accuracy", "p_c", "p_f", "acc", "min", *CHOICES[:4], *ORDERS),
    *("vqa_acc", "q_acc", "i_acc", "g_acc", "text_detection", "image_detection", "all_targets"),
    *("recall@1", "recall@50", "grounding", "grounding@0.1", *Matchings(SCORES).means),
}


@pytest.mark.parametrize("name", sorted(FIGURES | {name for kind in KINDS for name in METRICS.find(kind).means}))
def test_every_figure_is_explained(name: str) -> None:
    together = {"acc": "p_c", "min": "p_c", "p_f": "p_c", "set_accuracy": "pair_accuracy", "overlap@5": "mean_kendall"}
    together |= {"q_acc": "vqa_acc", "i_acc": "vqa_acc", "g_acc": "vqa_acc", "mean_spearman": "mean_kendall"}
    together |= {one: "ipos2t" for one in CHOICES[1:4]} | {"image_detection": "text_detection"}
    assert explained([together.get(name, name)]).count(name.split("@")[0].split(" ")[0])


def test_nothing_else_is_explained() -> None:
    assert explained(["accuracy"]).startswith("accuracy: ") and "group" not in explained(["accuracy"])
    assert explained(["group_match"]).startswith("group_match: ")
    assert explained(["mylab_score"]) == ""
    assert Queries.means == Groundings.means == ()
