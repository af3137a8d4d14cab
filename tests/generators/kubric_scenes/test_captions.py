"""Captions read as EqBen's do, say what was drawn, and use every name, relation and phrase about equally often."""

import json
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.captions.pair_sampling import (
    COUNTING_TEMPLATES,
    RELATION_TEMPLATE,
    Wording,
    all_black,
    caption,
    draw_pairs,
    told_apart,
    usable,
)
from twinset.generators.kubric_scenes.captions.vocabulary import Entry, load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect, Drawn, NamedAsset, Relation, Size
from twinset_demo import PROCEDURAL

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
            related("red scissors", "behind", "blue gloves", ("small", "")),
            *("is placed", "behind"),
            "The small red scissors are placed behind the blue gloves.",
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
        ("red coffee mug", 1, 1, "on the platform", "1 red coffee mug is on the platform."),
        ("white gaming mouse", 3, 0, "on the platform", "There are 3 white gaming mice on the platform."),
        ("blue gloves", 5, 1, "in the scene", "5 pairs of blue gloves are in the scene."),
        ("white ramekin porcelain", 2, 1, "in the scene", "2 pieces of white ramekin porcelain are in the scene."),
    ],
)
def test_counts_read_as_published(name: str, count: int, template: int, place: str, said: str) -> None:
    for which in (0, 1):
        assert (
            caption(counts(name, count), which, Wording(COUNTING_TEMPLATES[template], "is", place), VOCABULARY) == said
        )


@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_captions_say_what_was_drawn_and_differ_in_nothing_else(aspect: Aspect) -> None:
    for drawn, *captions in islice(draw_pairs(aspect, VOCABULARY, PROCEDURAL_IDS | GSO_IDS, 3, "words"), 1000):
        if drawn.subject is None:
            read = [read_count(text) for text in captions]
            assert read == [(drawn.object0.name, drawn.count0), (drawn.object0.name, drawn.count1)]
            assert drawn.count0 != drawn.count1
            continue
        parts = (drawn.object0, drawn.relation0), (drawn.object1, drawn.relation1)
        assert [read_relation(text) for text in captions] == [
            (shown.name, relation, drawn.subject.name, (shown.size, drawn.subject.size)) for shown, relation in parts
        ]
        same = drawn.object0.name == drawn.object1.name, drawn.relation0 == drawn.relation1
        assert same == ((True, False) if aspect == "location" else (False, True))


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


ASSETS = json.loads((PROCEDURAL / "manifest.json").read_bytes())["assets"]


ENTRIES: dict[str, Entry] = VOCABULARY.objects | {
    name: entry for members in VOCABULARY.sets.values() for name, entry in members.items()
}


def test_it_has_every_name_of_figure_14_in_its_order() -> None:
    """The digest is of the names as they were when they were compared with EqBen's figure."""
    assert len(VOCABULARY.objects) == 34 and sum(map(len, VOCABULARY.sets.values())) == 39
    names = [[*VOCABULARY.objects], [[kind, [*members]] for kind, members in VOCABULARY.sets.items()]]
    assert digest(names) == "f492bcfe02825aebc54037ea5a750ae0"


def test_no_asset_shows_two_names_and_those_of_the_demo_are_named_alike() -> None:
    shown = Counter(use.id for entry in ENTRIES.values() for use in entry.assets.gso + entry.assets.procedural)
    assert set(shown.values()) == {1} and set(ASSETS) == PROCEDURAL_IDS
    for name, entry in ENTRIES.items():
        assert [use.id for use in entry.assets.procedural] in ([], [name.replace(" ", "-")])


def test_what_lies_on_what() -> None:
    objects = VOCABULARY.objects
    keyboard, refrigerator = objects["black keyboard"], objects["green doll house wooden refrigerator"]
    assert objects["pink damask bath towel"].fits_on(keyboard)
    assert not keyboard.fits_on(refrigerator)  # too long
    assert not keyboard.fits_on(objects["white gaming mouse"])  # a mouse carries nothing
    assert not refrigerator.fits_on(objects["white gift box with red straps"])  # nobody puts it there


def test_the_demos_assets_are_as_wide_and_deep_as_said() -> None:
    """The plan puts only what fits on top; it believes the vocabulary."""
    for name, entry in ENTRIES.items():
        for use in entry.assets.procedural:
            assert (use.up, use.yaw) == ("z", 0)  # they stand up, their front towards -y
            size = np.ptp(ASSETS[use.id]["kwargs"]["bounds"], axis=0)
            footprint = size[:2] * entry.extent / size.max()
            assert np.allclose(footprint, entry.footprint, atol=0.05), (name, footprint)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"weight": 3}, r"bottle\.weight"),
        ({"assets": {"gso": [{"id": "../../etc/passwd"}]}}, r"gso\.0\.id"),
        ({"footprint": [0.4, 0.9]}, r"longer \(0\.9\)"),
        ({"kind": "hat"}, "is said differently"),
    ],
)
def test_a_wrong_vocabulary_is_refused(tmp_path: Path, damage: dict[str, object], complaint: str) -> None:
    bottle = {"extent": 0.7, "footprint": [0.4, 0.4], "kind": "bottle", "assets": {}}
    raw = {"objects": {"white drug bottle": {**bottle, **damage}}, "sets": {"bottle": {"white drug bottle": bottle}}}
    path = tmp_path / "words.yaml"
    path.write_text(json.dumps(raw), "utf-8")
    with pytest.raises(WrongUse, match=complaint) as refusal:
        load_vocabulary(path)
    assert str(path) in str(refusal.value)


PROCEDURAL_IDS = {use.id for entry in ENTRIES.values() for use in entry.assets.procedural}
GSO_IDS = {use.id for entry in ENTRIES.values() for use in entry.assets.gso}
Pairs = list[tuple[Drawn, str, str]]


@cache  # several tests read the same two thousand
def pairs(aspect: Aspect, count: int, available: frozenset[str]) -> Pairs:
    return list(islice(draw_pairs(aspect, VOCABULARY, available, 0, f"eq-kubric-{aspect}"), count))


def uses_of(drawn_pairs: Pairs) -> dict[str, Counter[Any]]:
    """Uses of each value, by what it is a value of."""
    counters: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for drawn, *captions in drawn_pairs:
        if drawn.aspect != "attribute":
            counters["object"][drawn.object0.name] += 1
        if drawn.subject is None:
            counters["counts"][drawn.count0, drawn.count1] += 1
            counters["template"].update(text.startswith("There") for text in captions)
            counters["place"].update(text.endswith("platform.") for text in captions)
            continue
        counters["subject"][drawn.subject.name] += 1
        counters["subject size"][drawn.subject.size] += 1
        counters["relation"].update((drawn.relation0, drawn.relation1))
        counters["relations"][drawn.relation0, drawn.relation1] += 1
        for text, relation in zip(captions, (drawn.relation0, drawn.relation1), strict=True):
            match = RELATION.fullmatch(text)
            assert match
            counters[f"phrase of {relation}"][match[4]] += 1
        if drawn.aspect == "attribute":
            kind = VOCABULARY.entry(drawn.object0.name).kind
            counters["set"][kind] += 1
            counters[f"member of {kind}"].update((drawn.object0.name, drawn.object1.name))
    return counters


@pytest.mark.parametrize("available", [PROCEDURAL_IDS, GSO_IDS])
@pytest.mark.parametrize("aspect", get_args(Aspect))
def test_statistics_are_near_uniform_at_every_count(aspect: Aspect, available: set[str]) -> None:
    """No value is used more often than another by over 4 and 2 % of the mean, objects by 15 %: few carry others."""
    for count in (60, 300, 2000):
        for what, uses in uses_of(pairs(aspect, count, frozenset(available))).items():
            mean, spread = sum(uses.values()) / len(uses), max(uses.values()) - min(uses.values())
            most = {"subject": 0.8, "object": 0.15}.get(what, 0.02)
            assert spread <= 4 + most * mean, (what, uses)
    used, names = uses_of(pairs(aspect, 2000, frozenset(available))), usable(VOCABULARY, aspect, available)
    if aspect == "attribute":
        assert {kind: {*used[f"member of {kind}"]} for kind in used["set"]} == {k: {*m} for k, m in names.sets.items()}
    else:
        assert set(used["object"]) == set(names.objects)


@pytest.mark.parametrize("available", [PROCEDURAL_IDS, GSO_IDS])
@pytest.mark.parametrize("aspect", ["location", "attribute"])
def test_every_pair_can_be_shown(aspect: Aspect, available: set[str]) -> None:
    drawn_pairs = [drawn for drawn, *_ in pairs(aspect, 2000, frozenset(available))]
    for drawn in drawn_pairs:
        assert drawn.subject is not None and drawn.subject.name not in (drawn.object0.name, drawn.object1.name)
        assert {drawn.object0.asset, drawn.object1.asset, drawn.subject.asset} <= available
        if aspect == "attribute":
            kinds = [VOCABULARY.entry(thing.name).kind for thing in (drawn.object0, drawn.object1, drawn.subject)]
            assert kinds[0] == kinds[1] != kinds[2] and drawn.object0.size == drawn.object1.size
            assert told_apart(drawn.object0.name, drawn.object1.name)
        for thing, relation in ((drawn.object0, drawn.relation0), (drawn.object1, drawn.relation1)):
            if relation == "on-top":
                assert VOCABULARY.entry(thing.name).fits_on(VOCABULARY.entry(drawn.subject.name))
                assert ORDER.index(thing.size) <= ORDER.index(drawn.subject.size)
                assert not (all_black(thing.name) and all_black(drawn.subject.name))
    assert len(set(drawn_pairs)) > 0.85 * len(drawn_pairs)  # few come again


ORDER = ("small", "", "large")


def test_sizes_of_an_attribute_pair_can_differ() -> None:
    drawn_pairs = [drawn for drawn, *_ in islice(draw_pairs("attribute", VOCABULARY, GSO_IDS, 0, "s", "each"), 2000)]
    sizes = Counter((drawn.object0.size, drawn.object1.size, drawn.subject.size) for drawn in drawn_pairs)  # type: ignore[union-attr]
    assert len(sizes) == 27 and max(sizes.values()) - min(sizes.values()) <= 2


def test_names_that_are_told_apart() -> None:
    assert not told_apart("blue bowl", "blue plastic dog bowl")
    assert told_apart("white mobile device storage", "blue and white mobile device storage")


def test_unmapped_names_are_left_out_and_counted() -> None:
    ids = {"red-coffee-mug", "black-keyboard", "red-scissors", "black-hat", "blue-bowl", "blue-plastic-dog-bowl"}
    location = usable(VOCABULARY, "location", ids)
    assert location.objects == ("black keyboard", "red scissors", "red coffee mug")
    assert location.excluded == {"name-unmapped": 31}
    attribute = usable(VOCABULARY, "attribute", ids | {"grey-hat"})
    assert attribute.sets == {"hat": ("black hat", "grey hat")}
    assert attribute.excluded == {"name-unmapped": 31 + 39 - 4, "name-unpaired": 2}


def test_too_few_names_are_refused_at_once() -> None:
    with pytest.raises(WrongUse, match="assets"):
        draw_pairs("counting", VOCABULARY, {"black-hat"}, 0, "few")
    with pytest.raises(WrongUse, match="assets"):
        draw_pairs("attribute", VOCABULARY, {"black-sneaker", "white-canvas-shoe", "brown-shoe", "red-shoe"}, 0, "few")
