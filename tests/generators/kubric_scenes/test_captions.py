"""Captions read as EqBen's do, say what was drawn, and use every name, relation and phrase about equally often."""

import re
from collections import Counter, defaultdict
from functools import cache
from itertools import islice
from typing import Any, Literal, get_args

import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.captions import Aspect, Drawn, PairSampler, all_black, load_vocabulary, told_apart

VOCABULARY = load_vocabulary()

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


def read_relation(caption: str) -> tuple[str, str, str, tuple[str, str]]:
    parts = RELATION.fullmatch(caption)
    assert parts, caption
    size, name, verb, phrase, subject_size, subject = parts.groups(default="")
    assert (verb == "are") == (name in ("red scissors", "blue gloves")), caption
    return name, CLASSES[phrase], subject, (size, subject_size)


def read_count(caption: str) -> tuple[str, int]:
    parts = COUNT.fullmatch(caption)
    assert parts, caption
    before, count, counted, after, _ = parts.groups()
    assert (before or after) == ("is" if count == "1" else "are") and not (before and after), caption
    if unit := re.match(r"(?:pair|piece)(s?) of ", counted):
        assert (unit[1] == "s") == (count != "1"), caption
        return counted[unit.end() :], int(count)
    if count == "1":
        return counted, 1
    singular = re.sub(r"\bmice\b", "mouse", re.sub(r"\bboxes\b", "box", counted))
    return singular if singular != counted else counted.removesuffix("s"), int(count)


ENTRIES = VOCABULARY.objects | {name: entry for names in VOCABULARY.sets.values() for name, entry in names.items()}


def test_it_has_every_name_of_figure_14_in_its_order() -> None:
    """The digest is of the names as they were when they were compared with EqBen's figure."""
    assert len(VOCABULARY.objects) == 34 and sum(map(len, VOCABULARY.sets.values())) == 39
    names = [[*VOCABULARY.objects], [[kind, [*members]] for kind, members in VOCABULARY.sets.items()]]
    assert digest(names) == "f492bcfe02825aebc54037ea5a750ae0"


GSO_IDS = frozenset(asset for entry in ENTRIES.values() for asset in entry.assets.gso)
Pairs = list[tuple[Drawn, str, str]]


@cache  # several tests read the same thousand
def pairs(aspect: Aspect, sizes: Literal["shared", "each"] = "shared") -> Pairs:
    return list(islice(PairSampler(aspect, GSO_IDS, 0, f"eq-kubric-{aspect}", sizes), 1000))


def uses_of(drawn_pairs: Pairs) -> dict[str, Counter[Any]]:
    """Uses of each value, by what it is a value of."""
    counters: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for drawn, *captions in drawn_pairs:
        kind = VOCABULARY.entry(drawn.object0.name).kind if drawn.aspect == "attribute" else "object"
        counters[kind].update({drawn.object0.name, drawn.object1.name})
        if drawn.subject is None:
            counters["counts"][drawn.count0, drawn.count1] += 1
            continue
        counters["subject"][drawn.subject.name] += 1
        counters["relations"][drawn.relation0, drawn.relation1] += 1
        for text, relation in zip(captions, (drawn.relation0, drawn.relation1), strict=True):
            counters[f"phrase of {relation}"][RELATION.fullmatch(text)[4]] += 1  # type: ignore[index]
    return counters


@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_statistics_are_near_uniform_at_every_count(aspect: Aspect) -> None:
    """No value is used more often than another by over 4 and 2 % of the mean, objects by 15 %: few carry others."""
    for count in (60, 1000):
        for what, uses in uses_of(pairs(aspect)[:count]).items():
            mean, spread = sum(uses.values()) / len(uses), max(uses.values()) - min(uses.values())
            most = {"subject": 0.8, "object": 0.15}.get(what, 0.02)
            assert spread <= 4 + most * mean, (what, uses)
    used, names = uses_of(pairs(aspect)), PairSampler(aspect, GSO_IDS, 0, "s", "shared")
    expected = {"object": names.objects} if aspect != "attribute" else names.sets
    assert {kind: {*used[kind]} for kind in expected} == {kind: {*members} for kind, members in expected.items()}


@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_captions_say_what_was_drawn_and_can_be_shown(aspect: Aspect) -> None:
    for drawn, *captions in pairs(aspect):
        if drawn.subject is None:
            stated = [(drawn.object0.name, number) for number in (drawn.count0, drawn.count1)]
            assert [read_count(text) for text in captions] == stated
            assert drawn.count0 != drawn.count1
            continue
        parts = (drawn.object0, drawn.relation0), (drawn.object1, drawn.relation1)
        assert [read_relation(text) for text in captions] == [
            (shown.name, relation, drawn.subject.name, (shown.size, drawn.subject.size)) for shown, relation in parts
        ]
        same = drawn.object0.name == drawn.object1.name, drawn.relation0 == drawn.relation1
        assert same == ((True, False) if aspect == "location" else (False, True))
        assert drawn.subject.name not in (drawn.object0.name, drawn.object1.name)
        assert {drawn.object0.asset, drawn.object1.asset, drawn.subject.asset} <= GSO_IDS
        if aspect == "attribute":
            kinds = [VOCABULARY.entry(asset.name).kind for asset in (drawn.object0, drawn.object1, drawn.subject)]
            assert kinds[0] == kinds[1] != kinds[2] and drawn.object0.size == drawn.object1.size
            assert told_apart(drawn.object0.name, drawn.object1.name)
        for carried, relation in parts:
            if relation == "on-top":
                assert VOCABULARY.entry(carried.name).fits_on(VOCABULARY.entry(drawn.subject.name))
                assert ORDER.index(carried.size) <= ORDER.index(drawn.subject.size)
                assert not (all_black(carried.name) and all_black(drawn.subject.name))
    if aspect != "counting":  # few come again
        assert len({drawn for drawn, *_ in pairs(aspect)}) > 850


ORDER = ("small", "", "large")


def test_sizes_of_an_attribute_pair_can_differ() -> None:
    drawn_pairs = [drawn for drawn, *_ in pairs("attribute", "each")]
    sizes = Counter((drawn.object0.size, drawn.object1.size, drawn.subject.size) for drawn in drawn_pairs)  # type: ignore[union-attr]
    assert len(sizes) == 27 and max(sizes.values()) - min(sizes.values()) <= 2


def test_names_without_an_asset_are_left_out_and_counted() -> None:
    ids = {"red-coffee-mug", "black-keyboard", "red-scissors", "black-hat", "blue-bowl", "blue-plastic-dog-bowl"}
    location = PairSampler("location", ids, 0, "s", "shared")
    assert location.objects == ("black keyboard", "red scissors", "red coffee mug")
    assert location.excluded == {"name-unmapped": 31}
    attribute = PairSampler("attribute", ids | {"grey-hat"}, 0, "s", "shared")
    assert attribute.sets == {"hat": ("black hat", "grey hat")}
    assert attribute.excluded == {"name-unmapped": 31 + 39 - 4, "name-unpaired": 2}  # a dog bowl is a bowl
    with pytest.raises(WrongUse, match="assets"):  # too few are left
        PairSampler("attribute", {"black-sneaker", "brown-shoe"}, 0, "s", "shared")
