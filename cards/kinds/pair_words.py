"""What the card says of minimal pairs."""

from __future__ import annotations

from cards.card_notes import notes, wording
from cards.card_words import Words, files_of, linked_source, source_settings
from cards.summary import IndexSummary, Statistics
from manifests.markdown import listed, median, most, sizes, table
from manifests.stage import Stage


def pair_words(stage: Stage, summary: IndexSummary, numbers: Statistics) -> Words:
    """The words of a card of pairs."""
    return Words(
        noun="pair",
        tasks=("image-to-text", "zero-shot-image-classification"),
        tags=("minimal-pairs", "image-text-matching", "webdataset"),
        introduction=_introduction(stage, summary),
        made="",
        contents=_contents(stage, summary, numbers),
        biases=_biases(stage, numbers),
        terms="Images and captions",
    )


def _introduction(stage: Stage, summary: IndexSummary) -> str:
    extension = stage.facts["settings"]["encoding"]["format"]
    made, there, _ = wording(source_settings(stage)["kind"])
    # The annotations may be somebody's own in that source's format, as the miniature's are: say how, not where from.
    source = linked_source(stage)
    return f"""{summary.kept:,} minimal pairs, {made} the way EqBen's are {there} {source}: two images that differ in
one thing, and two captions that tell them apart. A model is asked to give each image its own caption.

![Pairs, evenly spread over the subset](_meta/look.png)

```python
from datasets import load_dataset
pairs = load_dataset("path/to/{stage.name}")  # image0.{extension}, image1.{extension}, caption0.txt, caption1.txt, json
```

{files_of(len(summary.tars), summary.bytes, "pair")}"""


def _group(stage: Stage) -> str:
    return wording(source_settings(stage)["kind"])[2]


def _contents(stage: Stage, summary: IndexSummary, numbers: Statistics) -> str:
    group, pairs = _group(stage), numbers.group_pairs
    rows = [
        *((f"pairs in {split}", f"{count:,}") for split, count in summary.kept_by_split.items()),
        (f"{group}s", f"{sum(pairs.values()):,}"),
        (f"pairs of one {group} (median; most)", f"{median(pairs):,}; {most(pairs):,}"),
        ("distinct images", f"{numbers.distinct_images:,}"),
        ("distinct captions", f"{numbers.distinct_captions:,}"),
        ("words of a caption (median; most)", f"{median(numbers.caption_words)}; {most(numbers.caption_words)}"),
        (f"image sizes (of {numbers.sampled:,} pairs, evenly spread)", sizes(numbers.image_sizes)),
        (f"what changes (of {numbers.sampled:,} pairs)", listed(numbers.changes)),
    ]
    return table(("", ""), rows) + f"\n![Words a caption, pairs a {group}](_meta/histograms.png)\n"


def _biases(stage: Stage, numbers: Statistics) -> str:
    rows = [(use.word, f"{use.either:,}", f"{use.only0:,}", f"{use.only1:,}") for use in numbers.frequent]
    lopsided = [(use.word, f"{use.either:,}", f"{use.only0:,}", f"{use.only1:,}") for use in numbers.lopsided]
    heads = ("word", "pairs with it", "in caption 0 alone", "in caption 1 alone")
    group = _group(stage)
    text = "So that scores can be read with care; numbers are counted from the data.\n\n"
    text += notes(source_settings(stage))
    if most(numbers.group_pairs) > 1:
        share = f"{numbers.top_groups_share:.1%}"
        text += f"* The tenth of the {group}s with most pairs holds {share} of all pairs: pairs of\n"
        text += f"  one {group} are not independent.\n"
    text += f"* Caption 0 has more words than caption 1 in {numbers.longer0:.1%} of the pairs.\n"
    if numbers.earlier0 is not None:
        text += f"* Image 0 comes first in time in {numbers.earlier0:.1%} of the {numbers.sampled:,} pairs looked at.\n"
    text += "\nThe words in most pairs:\n\n" + table(heads, rows)
    if lopsided:
        text += "\nWords that stand on one side more often than chance explains (sign test, p < 0.001 for the whole "
        text += "table): whoever knows them can guess the side without looking.\n\n" + table(heads, lopsided)
    else:
        text += "\nNo word stands on one side more often than chance explains (sign test, p < 0.001).\n"
    return text
