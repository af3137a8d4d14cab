import re
from itertools import islice
from typing import get_args

import pytest

from twinset.generators.kubric_scenes.captions.pair_sampling import (
    COUNTING_TEMPLATES,
    RELATION_TEMPLATE,
    Wording,
    caption,
    draw_pairs,
)
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect, Drawn, NamedAsset, Relation, Size

VOCABULARY = load_vocabulary()
AVAILABLE = {use.id for entry in VOCABULARY.objects.values() for use in entry.assets.gso + entry.assets.procedural} | {
    use.id for members in VOCABULARY.sets.values() for entry in members.values() for use in entry.assets.procedural
}

# An independent reading of the captions: nothing below is taken from the grammar.
CLASSES = {
    "in front of": "in-front",
    "behind": "behind",
    **{f"on the left {side}of": "left" for side in ("", "side ", "hand ")},
    **{f"on the right {side}of": "right" for side in ("", "side ", "hand ")},
    "on the top of": "on-top",
    "above": "on-top",
}
SIZE = r"(?:(small|large) )?"
RELATION = re.compile(rf"The {SIZE}(.+) (is|are)(?: located| placed)? ({'|'.join(CLASSES)}) the {SIZE}(.+)\.")
COUNT = re.compile(r"(?:There (is|are) )?([1-5]) (.+?)(?: (is|are))? (in the scene|on the platform)\.")


def related(name: str, relation: Relation, subject: str, sizes: tuple[Size, Size] = ("", "")) -> Drawn:
    thing = NamedAsset(name, "", sizes[0])
    return Drawn("location", thing, thing, NamedAsset(subject, "", sizes[1]), relation, relation, 1, 1)


def counts(name: str, count: int) -> Drawn:
    return Drawn("counting", NamedAsset(name, ""), NamedAsset(name, ""), None, "", "", count, count)


@pytest.mark.parametrize(
    ("drawn", "verb", "place", "said"),
    [
        (
            related("red stripe towel", "on-top", "black keyboard", ("large", "large")),
            *("is", "on the top of"),
            "The large red stripe towel is on the top of the large black keyboard.",
        ),
        (
            related("grey wash towel", "on-top", "black keyboard", ("", "large")),
            *("is", "above"),
            "The grey wash towel is above the large black keyboard.",
        ),
        (
            related("white canvas shoe", "right", "red coffee mug"),
            *("is located", "on the right of"),
            "The white canvas shoe is located on the right of the red coffee mug.",
        ),
        (
            related("red scissors", "behind", "blue gloves", ("small", "")),
            *("is placed", "behind"),
            "The small red scissors are placed behind the blue gloves.",
        ),
        (
            related("white ramekin porcelain", "left", "red scissors"),
            *("is", "on the left hand of"),
            "The white ramekin porcelain is on the left hand of the red scissors.",
        ),
    ],
)
def test_relations_read_as_published(drawn: Drawn, verb: str, place: str, said: str) -> None:
    for which in (0, 1):
        assert caption(drawn, which, Wording(RELATION_TEMPLATE, verb, place), VOCABULARY) == said


@pytest.mark.parametrize(
    ("name", "count", "template", "place", "said"),
    [
        ("red high heel", 2, 0, "in the scene", "There are 2 red high heels in the scene."),
        ("red high heel", 4, 1, "in the scene", "4 red high heels are in the scene."),
        ("red coffee mug", 1, 0, "in the scene", "There is 1 red coffee mug in the scene."),
        ("red coffee mug", 1, 1, "on the platform", "1 red coffee mug is on the platform."),
        ("white gaming mouse", 3, 0, "on the platform", "There are 3 white gaming mice on the platform."),
        ("red scissors", 1, 0, "in the scene", "There is 1 pair of red scissors in the scene."),
        ("blue gloves", 5, 1, "in the scene", "5 pairs of blue gloves are in the scene."),
        ("white ramekin porcelain", 2, 1, "in the scene", "2 pieces of white ramekin porcelain are in the scene."),
        (
            *("white gift box with red straps", 2, 0, "in the scene"),
            "There are 2 white gift boxes with red straps in the scene.",
        ),
    ],
)
def test_counts_read_as_published(name: str, count: int, template: int, place: str, said: str) -> None:
    for which in (0, 1):
        assert (
            caption(counts(name, count), which, Wording(COUNTING_TEMPLATES[template], "is", place), VOCABULARY) == said
        )


@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_what_is_read_back_is_what_was_drawn(aspect: Aspect) -> None:
    for planned in islice(draw_pairs(aspect, VOCABULARY, AVAILABLE, 3, "words"), 1000):
        drawn = planned.drawn
        sides = zip(
            (planned.captions0[0], planned.captions1[0]),
            (drawn.object0, drawn.object1),
            (drawn.relation0, drawn.relation1),
            (drawn.count0, drawn.count1),
            strict=True,
        )
        for said, shown, relation, count in sides:
            if drawn.subject is None:
                assert read_count(said) == (shown.name, count)
            else:
                sizes = (shown.size, drawn.subject.size)
                assert read_relation(said) == (shown.name, relation, drawn.subject.name, sizes)


@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_captions_differ_in_what_is_asked_and_in_nothing_else(aspect: Aspect) -> None:
    for planned in islice(draw_pairs(aspect, VOCABULARY, AVAILABLE, 4, "words"), 1000):
        (said0,), (said1,) = planned.captions0, planned.captions1
        if aspect == "counting":
            (name0, count0), (name1, count1) = read_count(said0), read_count(said1)
            assert name0 == name1 and count0 != count1
            continue
        (name0, relation0, *rest0), (name1, relation1, *rest1) = read_relation(said0), read_relation(said1)
        assert rest0 == rest1
        assert (name0 == name1, relation0 == relation1) == ((True, False) if aspect == "location" else (False, True))


def read_relation(said: str) -> tuple[str, str, str, tuple[str, str]]:
    found = RELATION.fullmatch(said)
    assert found, said
    size, name, verb, phrase, subject_size, subject = found.groups(default="")
    assert (verb == "are") == (name in ("red scissors", "blue gloves")), said
    return name, CLASSES[phrase], subject, (size, subject_size)


def read_count(said: str) -> tuple[str, int]:
    found = COUNT.fullmatch(said)
    assert found, said
    before, digit, things, after, _ = found.groups()
    count = int(digit)
    assert [verb for verb in (before, after) if verb] == ["is" if count == 1 else "are"], said
    unit = re.match(r"(pair|piece)(s?) of ", things)
    if unit:
        assert (unit[2] == "s") == (count > 1), said
        return things[unit.end() :], count
    return things if count == 1 else singular(things), count


def singular(things: str) -> str:
    for many, one in (("mice", "mouse"), ("boxes", "box")):
        if re.search(rf"\b{many}\b", things):
            return re.sub(rf"\b{many}\b", one, things)
    assert things.endswith("s"), things
    return things[:-1]
