"""What the rules make of the miniature's captions: enough of each kind can be drawn."""

from collections import defaultdict

import pytest
import spacy

from twinset.generators.negative_captions.rules.engine import RULES
from twinset.generators.negative_captions.rules.nouns import edited
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.models.spacy_pipelines import find_pipeline
from twinset_demo.kubric_grammar.grammar import NotDrawable, read
from twinset_demo.miniature.scene_captions import CAPTIONS


@pytest.fixture(scope="module")
def negatives() -> dict[str, list[tuple[str, bool]]]:
    """Every negative of the rules by kind, and whether the grammar reads it."""
    nlp, words = spacy.load(find_pipeline().source), vocabulary()
    found: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for doc in nlp.pipe(CAPTIONS):
        for kind, rule in RULES.items():
            for proposal in rule(doc, words):
                found[kind].append((edited(doc.text, proposal), drawable(edited(doc.text, proposal))))
    return found


def drawable(caption: str) -> bool:
    try:
        read(caption)
    except NotDrawable:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("replace_obj", 0.6),
        ("replace_att", 1.0),
        ("replace_rel", 0.85),
        ("swap_obj", 1.0),
        ("swap_att", 1.0),
        ("add_obj", 0.4),
        ("add_att", 0.3),
    ],
)
def test_negatives_can_be_drawn(negatives: dict[str, list[tuple[str, bool]]], kind: str, least: float) -> None:
    assert len(negatives[kind]) >= 4
    assert sum(fits for _, fits in negatives[kind]) >= least * len(negatives[kind])


def test_left_becomes_right(negatives: dict[str, list[tuple[str, bool]]]) -> None:
    assert ("A red mug to the right of a blue car.", True) in negatives["replace_rel"]
    assert ("A blue mug to the left of a red car.", True) in negatives["swap_att"]
