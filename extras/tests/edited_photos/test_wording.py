"""Which change a negative caption asks for, whose place it is, and why there is none."""

import pytest

from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, plural_of, wanted

CATEGORIES = ("person", "dog", "car", "dining table", "fire hydrant", "hot dog", "knife", "bear", "teddy bear", "bus")
NOUNS = Nouns(names_of(CATEGORIES, vocabulary()))


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "expected"),
    [
        (
            "A small dog on the grass.",
            "A small cat on the grass.",
            "replace",
            Wanted("object", "dog", ("dog",), 1, 0, "a small cat", "replace the dog with a small cat"),
        ),
        (
            "two men near a red fire hydrant",
            "two men near an orange fire hydrant",
            "replace",
            Wanted("attribute", "fire hydrant", ("fire hydrant",), 1, 0, "an orange fire hydrant",
                   "make the fire hydrant orange"),
        ),
        (
            "Four dogs run.",
            "Two dogs run.",
            "replace",
            Wanted("count", "dogs", ("dog",), 4, 2, "", "remove two of the dogs"),
        ),
        (
            "two dogs on a desk",
            "one dog on a desk",
            "replace",
            Wanted("count", "dogs", ("dog",), 2, 1, "", "remove one of the dogs"),
        ),
        (
            "A puppy beside a table.",
            "A puppy without a table beside it.",
            "negate",
            Wanted("removal", "table", ("dining table",), 1, 1, "", "remove the table"),
        ),
        (
            "red buses",
            "blue buses",
            "",
            Wanted("attribute", "buses", ("bus",), 0, 0, "blue buses", "make the buses blue"),
        ),
    ],
)  # fmt: skip
def test_a_change_has_a_noun_a_number_and_words(caption: str, negative: str, kind: str, expected: Wanted) -> None:
    assert wanted(caption, negative, kind, NOUNS) == expected


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "reason"),
    [
        ("A dog.", "A dog next to a harp.", "add", "other-kind"),
        ("A dog.", "A golden dog.", "", "other-kind"),
        ("A dog.", "A dog.", "replace", "other-kind"),
        ("A red car door.", "A blue car door.", "replace", "unknown-noun"),  # the door
        ("A red and white car.", "A blue and white car.", "replace", "unknown-noun"),  # not the whole car
        ("A harp on grass.", "A drum on grass.", "replace", "unknown-noun"),
        ("A hot dog on a bun.", "A hot cat on a bun.", "replace", "unknown-noun"),
        ("Two dogs run.", "Five dogs run.", "replace", "count-raised"),
        ("Two dogs run.", "No cars and two dogs run.", "negate", "unknown-noun"),
        ("A dog and a dog.", "A dog and no dog.", "negate", "unknown-noun"),
        ("one two three four five", "six seven eight nine ten", "replace", "too-much-changed"),
    ],
)
def test_a_change_without_one_place_is_told(caption: str, negative: str, kind: str, reason: str) -> None:
    found = wanted(caption, negative, kind, NOUNS)
    assert (found if isinstance(found, str) else "") == reason


def test_names_are_those_of_the_rules_and_none_of_another_category() -> None:
    names = names_of((*CATEGORIES, ""), vocabulary())
    assert {"table", "desk", "dining table"} <= names["dining table"]
    assert names["hot dog"] == {"hot dog"} and names["teddy bear"] == {"teddy bear"} and "man" in names["person"]
    assert [plural_of(one) for one in ("knife", "fire hydrant", "bus", "puppy", "toy", "man")] == [
        *("knives", "fire hydrants", "buses", "puppies", "toys", "men")
    ]
