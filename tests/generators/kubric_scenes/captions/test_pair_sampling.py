import tracemalloc
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from itertools import islice
from typing import get_args

import numpy as np
import pytest

from tests.generators.kubric_scenes.captions.caption_statistics import statistics
from twinset.contracts.errors import WrongUse
from twinset.generators.even_sampling import Balance, Rounds
from twinset.generators.kubric_scenes.captions import pair_sampling
from twinset.generators.kubric_scenes.captions.pair_sampling import Planned, all_black, draw_pairs, told_apart, usable
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect

VOCABULARY = load_vocabulary()
ENTRIES = [*VOCABULARY.objects.values(), *(e for members in VOCABULARY.sets.values() for e in members.values())]
PROCEDURAL = {use.id for entry in ENTRIES for use in entry.assets.procedural}
GSO = {use.id for entry in ENTRIES for use in entry.assets.gso}
ASPECTS = get_args(Aspect)


def pairs(aspect: Aspect, n: int, seed: int = 0, available: Collection[str] = PROCEDURAL) -> list[Planned]:
    return _first(aspect, n, seed, frozenset(available))


@cache  # several tests read the same two thousand
def _first(aspect: Aspect, n: int, seed: int, available: frozenset[str]) -> list[Planned]:
    return list(islice(draw_pairs(aspect, VOCABULARY, available, seed, f"eq-kubric-{aspect}"), n))


def uneven(counted: dict[str, Counter[str]]) -> list[str]:
    """What but subjects is not near uniform: a value is used more often than another by over 4 and 2 % of the mean."""
    found = []
    for what, uses in counted.items():
        mean = sum(uses.values()) / len(uses)
        if what != "subject" and max(uses.values()) - min(uses.values()) > 4 + 0.02 * mean:
            found.append(what)
    return found


class Independent(Balance):
    """Draws as anybody would: each for itself."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def pick(self, slot, options, *given):  # type: ignore[no-untyped-def]
        return options[self.random.integers(len(options))]


class Forgetful(Rounds):
    """Remembers no use: any fact may come again at once."""

    def use(self, kind, fact=()):  # type: ignore[no-untyped-def]
        pass


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 300, 2000])
@pytest.mark.parametrize("aspect", ASPECTS)
def test_statistics_are_near_uniform_at_every_count(aspect: Aspect, n: int) -> None:
    for available in (PROCEDURAL, GSO):
        assert uneven(statistics(pairs(aspect, n, available=available), n)) == []


@pytest.mark.parametrize("aspect", ASPECTS)
def test_independent_draws_are_not_near_uniform(aspect: Aspect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_sampling, "Balance", Independent)
    monkeypatch.setattr(pair_sampling, "Rounds", Forgetful)
    drawn = list(islice(draw_pairs(aspect, VOCABULARY, PROCEDURAL, 0, f"eq-kubric-{aspect}"), 2000))
    assert len(uneven(statistics(drawn, 2000))) >= 3


@pytest.mark.parametrize("available", [PROCEDURAL, GSO])
def test_every_value_is_used(available: set[str]) -> None:
    location, counting = (statistics(pairs(a, 200, available=available), 200) for a in ("location", "counting"))
    names = set(usable(VOCABULARY, "location", available).objects)
    assert set(location["object"]) == set(location["subject"]) == set(counting["object"]) == names
    assert len(location["relations"]) == len(counting["counts"]) == 20
    assert len(location["verb"]) == 3
    assert sum(len(uses) for what, uses in location.items() if what.startswith("phrase of ")) == 10
    assert len(counting["template"]) == len(counting["place"]) == 2
    attribute = statistics(pairs("attribute", 600, available=available), 600)
    sets = usable(VOCABULARY, "attribute", available).sets
    assert set(attribute["set"]) == set(sets)
    assert all(set(attribute[f"member of {kind}"]) == set(members) for kind, members in sets.items())
    assert len(attribute["relation"]) == 5 and len(attribute["object size"]) == len(attribute["subject size"]) == 3


@pytest.mark.parametrize(
    ("aspect", "available", "ratio"),
    [("location", PROCEDURAL, 1.6), ("location", GSO, 2.3), ("attribute", PROCEDURAL, 1.05), ("attribute", GSO, 1.55)],
)
def test_subjects_that_carry_are_not_much_more_frequent(aspect: Aspect, available: set[str], ratio: float) -> None:
    """Two fifths of the location pairs have something on top, whatever share of the subjects can carry it, and those
    that carry few things have none left when others still have."""
    subjects = statistics(pairs(aspect, 2000, available=available), 2000)["subject"]
    assert max(subjects.values()) < ratio * min(subjects.values())


@pytest.mark.parametrize("aspect", ASPECTS)
def test_asking_for_more_keeps_the_first_and_another_seed_does_not(aspect: Aspect) -> None:
    assert pairs(aspect, 300)[:100] == pairs(aspect, 100)
    assert pairs(aspect, 100, seed=1) != pairs(aspect, 100)
    assert [planned.index for planned in pairs(aspect, 5)] == [0, 1, 2, 3, 4]
    other = islice(draw_pairs(aspect, VOCABULARY, PROCEDURAL, 0, "another-subset"), 100)
    assert [planned.drawn for planned in other] != [planned.drawn for planned in pairs(aspect, 100)]


@pytest.mark.parametrize("available", [PROCEDURAL, GSO])
@pytest.mark.parametrize("aspect", ASPECTS)
def test_every_pair_can_be_shown(aspect: Aspect, available: set[str]) -> None:
    for planned in pairs(aspect, 2000, available=available):
        drawn = planned.drawn
        things = [drawn.object0, drawn.object1, *([drawn.subject] if drawn.subject else [])]
        for thing in things:
            assert thing.asset in available
            assert VOCABULARY.use(thing.name, thing.asset).id == thing.asset
        if aspect != "attribute":
            assert drawn.object0 == drawn.object1
        if drawn.subject is None:
            assert drawn.count0 != drawn.count1
            continue
        assert drawn.count0 == drawn.count1 == 1
        assert drawn.subject.name not in (drawn.object0.name, drawn.object1.name)
        if aspect == "attribute":
            kinds = [VOCABULARY.entry(thing.name).kind for thing in things]
            assert kinds[0] == kinds[1] != kinds[2]
            assert drawn.object0.asset != drawn.object1.asset and drawn.object0.size == drawn.object1.size
            assert told_apart(drawn.object0.name, drawn.object1.name)
        if "on-top" in (drawn.relation0, drawn.relation1):
            under = VOCABULARY.entry(drawn.subject.name)
            assert all(VOCABULARY.entry(thing.name).fits_on(under) for thing in things[:2])
            order = ("small", "", "large")
            assert order.index(drawn.object0.size) <= order.index(drawn.subject.size)


def shown(planned: Planned) -> tuple[object, ...]:
    """What the two images of a pair show, in whichever order."""
    drawn = planned.drawn
    images = (drawn.object0, drawn.relation0, drawn.count0), (drawn.object1, drawn.relation1, drawn.count1)
    return frozenset(images), drawn.subject


def test_no_location_comes_again_before_all_with_its_relations_have() -> None:
    planned = pairs("location", 2000)
    assert len({one.drawn for one in planned}) == 2000
    for on_top, facts in ((True, 4 * 122), (False, 1200)):  # 122 things can lie on another, beside 4 other relations
        chosen = [one for one in planned if ("on-top" in (one.drawn.relation0, one.drawn.relation1)) == on_top]
        uses = Counter(map(shown, chosen))
        assert len(uses) == facts and max(uses.values()) - min(uses.values()) <= 1


def test_no_count_comes_again_before_all_have() -> None:
    assert len(set(map(shown, pairs("counting", 26 * 10)))) == 26 * 10


def test_sizes_of_an_attribute_pair_can_differ() -> None:
    drawn = [one.drawn for one in islice(draw_pairs("attribute", VOCABULARY, GSO, 0, "sizes", "each"), 2000)]
    sizes = Counter((one.object0.size, one.object1.size, one.subject.size) for one in drawn if one.subject)
    assert len(sizes) == 27 and max(sizes.values()) - min(sizes.values()) <= 2
    order = ("small", "", "large")
    for one in (one for one in drawn if one.relation0 == "on-top"):
        object0, object1, subject = (order.index(each.size) for each in (one.object0, one.object1, one.subject) if each)
        assert subject >= max(object0, object1)
    facts = {frozenset((one.object0, one.object1)) | {one.subject, one.relation0} for one in drawn}
    assert len(facts) == len(drawn)


def test_no_attribute_comes_again_before_all_with_its_members_and_relation_have() -> None:
    uses = Counter(map(shown, pairs("attribute", 2000)))
    again = [images for (images, _), number in uses.items() if number > 1]
    assert max(uses.values()) == 2 and len(again) == 10
    # Two things carry a black hat, in six pairs of sizes; all other members and relations have more facts than uses.
    for images in again:
        assert "black hat" in {thing.name for thing, _, _ in images}
        assert {relation for _, relation, _ in images} == {"on-top"}


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("blue bowl", "blue plastic dog bowl", False),
        ("blue bowl", "blue bowl", False),
        ("blue bowl", "grey dog bowl", True),
        ("white mobile device storage", "blue and white mobile device storage", True),
    ],
)
def test_names_that_are_told_apart(name: str, other: str, expected: bool) -> None:
    assert told_apart(name, other) == told_apart(other, name) == expected


def test_unmapped_names_are_left_out_and_counted() -> None:
    some = {"red-coffee-mug", "black-keyboard", "red-scissors", "black-hat", "blue-bowl", "blue-plastic-dog-bowl"}
    location = usable(VOCABULARY, "location", some)
    assert location.objects == ("black keyboard", "red scissors", "red coffee mug")
    assert location.excluded == {"name-unmapped": 31}
    attribute = usable(VOCABULARY, "attribute", some | {"grey-hat"})
    assert attribute.sets == {"hat": ("black hat", "grey hat")}
    assert attribute.excluded == {"name-unmapped": 31 + 39 - 4, "name-unpaired": 2}


def test_without_anything_to_lie_on_nothing_lies_on_top() -> None:
    few = {"red-coffee-mug", "red-scissors", "black-hat", "grey-hat"}
    for aspect in ("location", "attribute"):
        relations = {r for p in pairs(aspect, 100, available=few) for r in (p.drawn.relation0, p.drawn.relation1)}
        assert relations == {"in-front", "behind", "left", "right"}


@pytest.mark.parametrize("aspect", ["location", "attribute"])
def test_nothing_black_lies_on_what_is_black(aspect: Aspect) -> None:
    drawn = [planned.drawn for planned in pairs(aspect, 2000)]
    carried = {
        (thing.name, one.subject.name)
        for one in drawn
        for thing, relation in ((one.object0, one.relation0), (one.object1, one.relation1))
        if one.subject is not None and relation == "on-top"
    }
    assert not any(all_black(name) and all_black(subject) for name, subject in carried)
    # It may lie on another colour, another colour on it, and black on black beside another colour.
    assert any(all_black(name) for name, _ in carried) and any(all_black(subject) for _, subject in carried)
    assert aspect == "attribute" or ("black and yellow hammer", "black keyboard") in carried
    beside = {(one.object0.name, one.subject.name) for one in drawn if one.subject and one.relation0 != "on-top"}
    assert any(all_black(name) and all_black(subject) for name, subject in beside)


@pytest.mark.parametrize(
    ("aspect", "available"),
    [
        ("location", {"red-coffee-mug"}),
        ("counting", {"black-hat"}),
        ("attribute", {"red-coffee-mug", "red-scissors", "black-hat"}),
        ("attribute", {"black-sneaker", "white-canvas-shoe", "brown-shoe", "red-shoe"}),
    ],
)
def test_too_few_names_are_refused_at_once(aspect: Aspect, available: set[str]) -> None:
    with pytest.raises(WrongUse, match="assets"):
        draw_pairs(aspect, VOCABULARY, available, 0, "few")


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    stream: Iterator[Planned] = draw_pairs("location", VOCABULARY, PROCEDURAL, 0, "flat")
    for _ in islice(stream, 1000):
        pass
    tracemalloc.start()
    for _ in islice(stream, 1500):
        pass
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 100_000  # 1,500 pairs kept would be over 1 MB
