"""The grammar reads what it says it reads, and names the word that it cannot."""

import pytest

from twinset.generators.negative_captions.rules.nouns import plural_of
from twinset_demo.kubric_grammar.grammar import NotDrawable, read
from twinset_demo.kubric_grammar.vocabulary import COLOURS, NOUNS, PLURAL, RELATIONS, SINGULAR
from twinset_demo.miniature.scene_captions import CAPTIONS

Said = tuple[int, str, str]


def said(caption: str) -> tuple[list[Said], tuple[str, ...]]:
    scene = read(caption)
    return [(one.count, one.colour, one.noun.names[0]) for one in scene.phrases], scene.relations


@pytest.mark.parametrize(
    ("caption", "phrases", "relations"),
    [
        ("a red mug", [(1, "red", "mug")], ()),
        ("Three cubes.", [(3, "yellow", "cube")], ()),
        ("2 boxes", [(2, "yellow", "cube")], ()),
        ("A red mug to the left of a blue toy car.", [(1, "red", "mug"), (1, "blue", "car")], ("left",)),
        ("a red cup is in front of a grey couch", [(1, "red", "mug"), (1, "gray", "couch")], ("front",)),
        ("There are two green bottles behind a drum", [(2, "green", "bottle"), (1, "red", "drum")], ("behind",)),
        ("A ball sitting on top of a table", [(1, "red", "ball"), (1, "brown", "table")], ("on",)),
        ("A mug with a treasure chest nearby.", [(1, "white", "mug"), (1, "brown", "treasure chest")], ("beside",)),
        (
            "A gold vase far away from a bus next to a drum",
            [(1, "golden", "vase"), (1, "yellow", "bus"), (1, "red", "drum")],
            ("far", "beside"),
        ),
        (
            "a red ball, a blue ball, and a ball",
            [(1, "red", "ball"), (1, "blue", "ball"), (1, "green", "ball")],
            ("and", "and"),
        ),
    ],
)
def test_captions_are_read(caption: str, phrases: list[Said], relations: tuple[str, ...]) -> None:
    assert said(caption) == (phrases, relations)


def test_formatting_changes_nothing() -> None:
    variants = ("a red mug behind a blue bowl", "A red mug behind a blue bowl.", "  A RED MUG behind\ta blue bowl . ")
    assert len({read(one) for one in variants}) == 1


def test_sizes_are_read() -> None:
    assert [one.size for one in read("a tiny red mug next to a big cube").phrases] == ["small", "large"]


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("a red dragon", "'dragon'"),
        ("red mug", "'red'"),
        ("a turquoise mug", "'turquoise'"),
        ("two mug", "'mug'"),
        ("a mugs", "'mugs'"),
        ("a mug inside a bowl", "'inside'"),
        ("a mug behind", "ends where a number"),
        ("", "ends where a number"),
        ("a", "ends where an object"),
        ("一个红色的杯子", "'一个红色的杯子'"),
        ("a mug. Ignore this and draw a dog", "'mug.'"),
        ("a mug and a bowl behind a car", "two ways"),
        ("a mug " * 2_000_000, "characters"),
    ],
)
def test_what_cannot_be_read_is_named(caption: str, named: str) -> None:
    with pytest.raises(NotDrawable) as raised:
        read(caption)
    assert raised.value.rejection.reason == "not-in-grammar"
    assert named in raised.value.rejection.detail


@pytest.mark.parametrize(
    "caption",
    [
        "a bus on top of a ball",  # a ball carries nothing
        "a table on top of a refrigerator",  # nobody puts a table there
        "a large teapot on top of a small box",
        "two mugs on top of a table",
        "a red laptop",
        "six balls next to three cubes",
        "a mug next to a bowl next to a vase next to a drum",
        "a mug to the left of a hat on top of a box",
        "a chair under a table",  # neither fits below it nor carries it
    ],
)
def test_what_cannot_be_shown_is_refused(caption: str) -> None:
    with pytest.raises(NotDrawable) as raised:
        read(caption)
    assert raised.value.rejection.reason == "not-drawable"


def test_names_are_unambiguous() -> None:
    assert len(SINGULAR) == sum(len(noun.names) for noun in NOUNS)
    assert not SINGULAR.keys() & PLURAL.keys()
    words = {word for name in (*SINGULAR, *PLURAL) for word in name.split()}
    assert not words & (COLOURS.keys() | RELATIONS.keys())


def test_plurals_are_those_that_rules_write() -> None:
    assert {name: PLURAL.get(plural_of(name)) for name in SINGULAR} == SINGULAR


def test_every_noun_is_modelled_in_its_colours() -> None:
    for noun in NOUNS:
        assert noun.colour in COLOURS
        assert noun.model(noun.colour).solids, noun.names


def test_the_miniature_says_nothing_else() -> None:
    assert len({read(caption) for caption in CAPTIONS}) == len(CAPTIONS)
