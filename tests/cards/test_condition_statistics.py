"""Statistics of triplets and templates counted by hand, and their histograms."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from cards.condition_statistics import FREQUENT, LONGEST, template_statistics, triplet_statistics
from cards.plots import histograms
from shards.kinds.template import TEMPLATE
from shards.kinds.triplet import TRIPLET
from shards.storage.store import Store
from stages.index import write_index
from tests import small_genecis


def test_templates_are_counted(small_templates: Store) -> None:
    summary = write_index(small_templates, "focus-attribute", TEMPLATE)
    assert summary.images == ("reference", "target", *(f"gallery{number:02d}" for number in range(9)))
    numbers = template_statistics(small_templates, "focus-attribute")
    # Numbers 0 to 8 but 3; 5 and 6 have conditions of their own, 2 and 7 the same.
    assert numbers.frequent["blue"] == 2 and sum(numbers.frequent.values()) == 8 and numbers.conditions == 7
    assert next(iter(numbers.frequent)) == "blue" and len(numbers.frequent) <= FREQUENT
    assert small_genecis.LONG[:LONGEST] in numbers.frequent
    assert numbers.condition_words == {1: 6, 9: 1, 2000: 1}
    assert numbers.galleries == {10: 8}
    assert (numbers.distinct_images, numbers.image_templates) == (88, {1: 88})
    assert numbers.distracting_targets == 0.0
    assert (numbers.sampled, sum(numbers.image_sizes.values()), numbers.types) == (8, 8, {"color": 8})
    width, height = Image.open(io.BytesIO(histograms(numbers))).size
    write_index(small_templates, "focus-object", TEMPLATE)
    objects = template_statistics(small_templates, "focus-object")
    assert objects.galleries == {15: 8} and objects.types == {}
    narrower, same = Image.open(io.BytesIO(histograms(objects))).size
    assert narrower < width and same == height, "templates about objects have no panel of attributes"


def test_triplets_are_counted(small_triplets: Store) -> None:
    summary = write_index(small_triplets, "triplets", TRIPLET)
    assert summary.images == ("reference", "target", "distractor")
    numbers = triplet_statistics(small_triplets, "triplets")
    assert numbers.frequent["beside blue disc"] == 2 and numbers.conditions == 7
    assert numbers.condition_words == {3: 6, 9: 1, 2000: 1}
    assert numbers.top_conditions_share == 2 / 8
    # Number n shows images n, n + 1 and n + 7: 0 to 9 as reference or target, but 3 as neither; 7 to 15 as distractors.
    assert numbers.image_triplets == {1: 4, 2: 6} and numbers.top_images_share == 2 / 16
    assert numbers.distinct_images == 10 + 6 - 1
    assert (numbers.same_image, numbers.distractor_again) == (0, 0)
    assert numbers.distinct_captions == 1 + 7 + 7
    assert numbers.said_of_reference == 7 / 8  # "disc" or "a" is said of each reference, "another" of none
    assert numbers.sampled == 8 and sum(numbers.image_sizes.values()) == 8
    assert Image.open(io.BytesIO(histograms(numbers))).format == "PNG"


def test_an_index_of_triplets_is_counted_without_images(small_triplets: Store) -> None:
    summary = write_index(small_triplets, "index-only", TRIPLET)
    assert (summary.kept, summary.tars, summary.images) == (8, {}, ())
    numbers = triplet_statistics(small_triplets, "index-only")
    assert (numbers.sampled, numbers.image_sizes, numbers.distractor_again) == (0, {}, None)
    assert (numbers.conditions, numbers.distinct_images) == (7, 10)


def test_triplets_of_one_image_are_counted(small_triplets: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(number: int) -> dict[str, str]:
        return {"reference": "5", "target": "5" if number < 2 else "6", "distractor": "6" if number < 4 else "7"}

    monkeypatch.setattr(small_genecis, "ids_of", alike)
    small_genecis.build(small_triplets, "alike", small_genecis.triplet_sources(Path("x"))["triplets"], count=6)
    write_index(small_triplets, "alike", TRIPLET)
    numbers = triplet_statistics(small_triplets, "alike")
    assert numbers.same_image == 2
    assert numbers.distractor_again == 1  # number 2; of 0 and 1 the distractor is another image, and 3 is rejected
