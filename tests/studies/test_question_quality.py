"""How own tuples are compared with released ones."""

from pathlib import Path

import pytest

from studies.question_quality import Told, agreement, document, head, released_tuples, stem

DSG = Path(__file__).parents[2] / "../shared/data/dsg"
HEADER = "item_id,text,proposition_id,dependency,category_broad,tuple,question_natural_language\n"


def test_stems_compare_forms_of_a_word() -> None:
    assert stem("sitting") == stem("sits") and stem("wooden") == stem("wood") and stem("women") == stem("woman")
    assert head("guy's hat") == head("hats") and head("woman_2") == head("woman")


def test_agreement_counts_both_directions() -> None:
    released = [
        Told("entity", ("man",)),
        Told("entity", ("bench",)),
        Told("attribute", ("man",), frozenset({"sit"})),
        Told("relation", ("man", "bench"), frozenset({"on"})),
    ]
    own = [
        Told("entity", ("man",)),
        Told("entity", ("dog",)),
        Told("relation", ("bench", "man"), frozenset({"sit"}), frozenset({"bench", "man", "sit"})),
    ]
    assert agreement(released, own) == {
        "entity": (1, 2, 1, 2),
        "attribute": (1, 1, 0, 0),  # asked within the relation
        "count": (0, 0, 0, 0),
        "relation": (1, 1, 1, 1),
    }


def test_released_tuples_of_all_forms(tmp_path: Path) -> None:
    lines = (
        'i,text,1,0,entity,"entity - whole (man)",Q',
        'i,text,2,1,entity,"entity - part (man\'s hats)",Q',
        'i,text,3,1,other,"other - count (men, ==2)",Q',
        'i,text,4,1,attribute,"attribute - color (man, red)",Q',
        'i,text,5,1,action,"action - (man, wave, surf)",Q',
        'i,text,6,0,global,"global - (photo)",Q',
    )
    (tmp_path / "a.csv").write_text(HEADER + "\n".join(lines) + "\n")
    ((text, told),) = released_tuples(tmp_path / "a.csv").values()
    assert text == "text" and [(one.kind, one.heads) for one in told] == [
        ("entity", ("man",)),
        ("entity", ("hat",)),
        ("relation", ("man", "hat")),
        ("count", ("man",)),
        ("attribute", ("man",)),
        ("relation", ("man", "wav")),
    ]


@pytest.mark.slow
def test_own_questions_ask_what_the_released_ones_do() -> None:
    if not DSG.is_dir():
        pytest.skip("the released questions are not in ../shared/data/dsg on this machine")
    rows = [line.split(" | ") for line in document(DSG).splitlines() if line.startswith("| tifa160")]
    found = {kind: (float(recall[:-1]), float(right[:-3])) for _, kind, _, recall, _, right in rows}
    least = {"entity": (90, 85), "attribute": (70, 60), "count": (60, 70), "relation": (60, 65)}
    assert all(found[kind][at] >= least[kind][at] for kind in least for at in (0, 1)), found
