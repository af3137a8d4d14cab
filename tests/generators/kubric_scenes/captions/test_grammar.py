import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.captions.pair_sampling import (
    COUNTING_TEMPLATES,
    RELATION_TEMPLATE,
    Wording,
    caption,
    draw_pairs,
)
from twinset.generators.kubric_scenes.captions.vocabulary import Entry, Vocabulary, load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect, Drawn, NamedAsset, Relation, Size
from twinset_demo import PROCEDURAL

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


ASSETS = json.loads((PROCEDURAL / "manifest.json").read_bytes())["assets"]
GSO = Path(__file__).parents[4] / "../shared/data/gso/gso_assets.json"

# EqBen, Figure 14, in its order.
OBJECTS = """
green turtle toy, white animal dog toy, black power pressure cooker, great white shark model, white ramekin
porcelain, pink damask bath towel, white porcelain teapot, grey elephant toy, bald eagle toy, brown bull, blue
gloves, brown hat, white gaming mouse, black keyboard, black boot, white gift box with red straps, red scissors,
vintage metal alarm clock, black frypan, stainless steel milk frother, red coffee mug, purple doll house wooden
sofa, black sneaker, white canvas shoe, black laptop, black and red gameboy, blue and black backpack, red high heel,
stainless steel toaster, white drug bottle, fabric basket, school bus toy, black and yellow hammer, green doll house
wooden refrigerator
"""
SETS = {
    "towel": "blue stripe towel, red stripe towel, green stripe towel, grey wash towel",
    "hat": "black hat, grey hat, brown hat",
    "plate": """green square saucer plate, red square saucer plate, yellow square saucer plate, green round plate, brown
        round plate, blue round plate""",
    "plant container": "blue plant container, yellow plant container, red plant container",
    "storage": "metallic mobile device storage, white mobile device storage, blue and white mobile device storage",
    "shoe": """brown shoe, green shoe, white running shoe, black shoe, pink shoe, purple running shoe, yellow shoe, blue
        shoe, red shoe""",
    "bottle": "yellow drug bottle, red drug bottle, blue drug bottle, purple bottle",
    "bowl": "yellow bowl, brown bowl, blue bowl, white bowl, grey dog bowl, pink dog bowl, blue plastic dog bowl",
}


def words(listed: str) -> list[str]:
    return [" ".join(name.split()) for name in listed.split(",")]


def every_entry(vocabulary: Vocabulary) -> dict[str, Entry]:
    members = {name: entry for members in vocabulary.sets.values() for name, entry in members.items()}
    return {**vocabulary.objects, **members}


def test_it_has_every_name_of_figure_14_in_its_order() -> None:
    vocabulary = load_vocabulary()
    assert list(vocabulary.objects) == words(OBJECTS)
    assert {kind: list(members) for kind, members in vocabulary.sets.items()} == {k: words(v) for k, v in SETS.items()}


def test_gso_ids_are_of_the_collection() -> None:
    if not GSO.is_file():
        pytest.skip("the list of Google Scanned Objects is not in ../shared/data/gso on this machine")
    known = {asset["asset_id"] for asset in json.loads(GSO.read_text("utf-8"))}
    named = {use.id for entry in every_entry(load_vocabulary()).values() for use in entry.assets.gso}
    assert len(named) > 40
    assert named <= known


def test_no_asset_shows_two_names() -> None:
    entries = every_entry(load_vocabulary()).values()
    shown = Counter(use.id for entry in entries for use in entry.assets.gso + entry.assets.procedural)
    assert shown.most_common(1)[0][1] == 1


def test_a_procedural_id_is_its_name_with_dashes() -> None:
    for name, entry in every_entry(load_vocabulary()).items():
        assert [use.id for use in entry.assets.procedural] in ([], [name.replace(" ", "-")])


def test_procedural_ids_are_those_of_the_demo() -> None:
    entries = every_entry(load_vocabulary()).values()
    assert {use.id for entry in entries for use in entry.assets.procedural} == set(ASSETS)


def test_what_lies_on_what() -> None:
    objects = load_vocabulary().objects
    mouse, keyboard, box = (
        objects[n] for n in ("white gaming mouse", "black keyboard", "white gift box with red straps")
    )
    refrigerator, hammer, towel = (
        objects[n]
        for n in ("green doll house wooden refrigerator", "black and yellow hammer", "pink damask bath towel")
    )
    assert mouse.fits_on(keyboard) and mouse.fits_on(box) and towel.fits_on(keyboard)
    assert not keyboard.fits_on(refrigerator)  # too long
    assert not keyboard.fits_on(mouse)  # a mouse carries nothing
    assert not refrigerator.fits_on(box)  # nobody puts it there
    assert hammer.fits_on(keyboard) and hammer.top is None


def test_an_asset_is_found_by_name_and_id() -> None:
    vocabulary = load_vocabulary()
    assert vocabulary.use("grey hat", "grey-hat").up == "z"
    with pytest.raises(KeyError):
        vocabulary.use("grey hat", "brown-hat")
    with pytest.raises(KeyError):
        vocabulary.entry("green hat")


def test_only_available_assets_are_used() -> None:
    keyboard = load_vocabulary().objects["black keyboard"]
    assert [use.id for use in keyboard.uses({"black-keyboard", "red-coffee-mug"})] == ["black-keyboard"]
    assert keyboard.uses(()) == ()


def test_the_demos_assets_are_as_wide_and_deep_as_said() -> None:
    """The plan puts only what fits on top; it believes the vocabulary."""
    for name, entry in every_entry(load_vocabulary()).items():
        for use in entry.assets.procedural:
            assert (use.up, use.yaw) == ("z", 0)  # they stand up, their front towards -y
            size = np.ptp(ASSETS[use.id]["kwargs"]["bounds"], axis=0)
            footprint = size[:2] * entry.extent / size.max()
            assert np.allclose(footprint, entry.footprint, atol=0.05), (name, footprint)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text("objects: {}\nsets: {}\nobjects: {}\n", "utf-8")
    with pytest.raises(WrongUse, match="twice"):
        load_vocabulary(path)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"weight": 3}, r"bottle\.weight"),
        ({"extent": "long"}, r"bottle\.extent"),
        ({"footprint": [0.4, 0.9]}, r"longer \(0\.9\)"),
        ({"top": [2.0, 0.7]}, r"longer \(2\.0\)"),
        ({"footprint": [0.4]}, r"bottle\.footprint\.1"),
        ({"unit": "dozen"}, r"bottle\.unit"),
        ({"assets": {"gso": [{"id": "../../etc/passwd"}]}}, r"gso\.0\.id"),
        ({"assets": {"gso": [{"id": "A", "up": "w"}]}}, r"gso\.0\.up"),
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


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text("objects: !!python/object/apply:os.getcwd []\nsets: {}\n", "utf-8")
    with pytest.raises(WrongUse, match=r"words\.yaml"):
        load_vocabulary(path)
