"""Statistics of templates counted by hand, and their histograms."""

from __future__ import annotations

import io

from PIL import Image

from manifests.sample_kinds import TEMPLATE
from shards.condition_statistics import FREQUENT, LONGEST, template_statistics
from shards.histograms import histograms
from shards.index import write_index
from shards.store import Store
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
