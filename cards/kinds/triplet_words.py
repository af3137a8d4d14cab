"""What the card says of triplets that were mined from captions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cards.card_words import Words, files_of, linked_source, source_settings
from cards.mining_notes import mining_notes
from cards.summary import IndexSummary, TripletStatistics
from manifests.markdown import median, most, plain, share, short, sizes, table
from manifests.stage import Stage


def triplet_words(
    stage: Stage, summary: IndexSummary, numbers: TripletStatistics, mining: Mapping[str, Any] | None
) -> Words:
    """The words of a card of triplets. mining: as `cards.card.card` has it."""
    return Words(
        noun="triplet",
        tasks=("image-feature-extraction",),
        tags=(
            "conditional-image-similarity",
            "composed-image-retrieval",
            *(["webdataset"] if summary.tars else []),
        ),
        introduction=_introduction(stage, summary),
        made=_made(stage) + mining_notes(source_settings(stage)["rules"], mining),
        contents=_contents(summary, numbers),
        biases=_biases(summary, numbers),
        terms="Images and captions" if summary.images else "Captions",
    )


def _introduction(stage: Stage, summary: IndexSummary) -> str:
    text = f"""{summary.kept:,} triplets, mined the way GeneCIS mines its training data from {linked_source(stage)}:
a reference image, a condition in words, and the target image that the condition leads to. A model learns to find the
target among other images, given reference and condition.
"""
    if not summary.tars:
        return f"""{text}
This is an index: image ids and captions, but no images.

```python
from datasets import load_dataset
triplets = load_dataset("path/to/{stage.name}")  # condition, reference_id, target_id, reference_caption …
```

`_meta/index.parquet` lists what was kept, `_meta/rejections.parquet` what was not.
"""
    extension = stage.facts["settings"]["encoding"]["format"]
    images = ", ".join(f"{role}.{extension}" for role in summary.images)
    distractor = ""
    if "distractor" in summary.images:
        strict = source_settings(stage)["rules"] == "strict"
        which = "with another subject" if strict else "and may have the target's subject or be its very image"
        distractor = f"""
`distractor` is an image whose caption has the condition's object too, {which}:
for whoever wants hard negatives.
"""
    return f"""{text}
![Triplets, evenly spread over the subset](_meta/look.png)

```python
from datasets import load_dataset
triplets = load_dataset("path/to/{stage.name}")  # {images}, condition.txt, json
```
{distractor}
{files_of(len(summary.tars), summary.bytes, "triplet")}"""


def _made(stage: Stage) -> str:
    source = source_settings(stage)
    rules, pipeline = source["rules"], plain(str(source.get("pipeline", "of one's own, in a folder")))
    words = "subject and object of reference, target and distractor"
    exception = " (of 101 draws the last one passes, whatever it is)"
    if rules == "strict":
        words, exception = "subject and object of reference and target", ""
    return f"""1. A parser (pipeline {pipeline}) reads relations subject → predicate → object off every caption.
2. A subject that is seen in at least {source["min_images"]} images, with at least two objects, is drawn, the more
   often the more images it has; one of its relations is the *reference*.
3. The *target* is a relation of the same subject with another object, in another image{exception}.
4. The *condition* is predicate and object of the target, in the words of its caption.
5. Kept is what is concrete: the mean rating of {words} (1 to 5, in a file
   of ratings such as that of Brysbaert et al. 2014) must be above {source["threshold"]:g}.

Every triplet is drawn by its own number: asking for more keeps the first ones.
"""


def _contents(summary: IndexSummary, numbers: TripletStatistics) -> str:
    rows = [
        *((f"triplets in {split}", f"{count:,}") for split, count in summary.kept_by_split.items()),
        ("distinct conditions", f"{numbers.conditions:,}"),
        ("words of a condition (median; most)", f"{median(numbers.condition_words)}; {most(numbers.condition_words)}"),
        ("distinct images", f"{numbers.distinct_images:,}"),
        (
            "triplets of one image, as reference or target (median; most)",
            f"{median(numbers.image_triplets):,}; {most(numbers.image_triplets):,}",
        ),
        ("distinct captions", f"{numbers.distinct_captions:,}"),
    ]
    if numbers.sampled:
        rows.append((f"sizes of targets (of {numbers.sampled:,} triplets, evenly spread)", sizes(numbers.image_sizes)))
    return table(("", ""), rows) + "\n![Words a condition, most frequent conditions](_meta/histograms.png)\n"


def _biases(summary: IndexSummary, numbers: TripletStatistics) -> str:
    text = f"""So that they are trained on with care; numbers are counted from the data.

* Nobody has looked at them. A relation is what a parser made of a caption, and it is wrong at times; a caption leaves
  out most of what an image shows, so that a reference can satisfy its condition unsaid, and other images than the
  target can be as right. Good for training; a benchmark needs people, or annotations of all that is there.
* Nearly all conditions ask for another object beside, in or on the same subject: a bias towards GeneCIS's task "Change
  an Object" (section 5.2).
* Subjects with many images are drawn most: the hundredth of the conditions with most triplets holds
  {numbers.top_conditions_share:.1%} of them, and the tenth of the images used most is {numbers.top_images_share:.1%} of
  all references and targets.
* In {numbers.said_of_reference:.1%} of the triplets the last word of the condition stands in the reference's caption
  as well.
"""
    if numbers.same_image:
        part = share(numbers.same_image, summary.kept)
        text += f"* {numbers.same_image:,} triplets ({part}) have one image as reference and target.\n"
    if numbers.distractor_again:
        part = share(numbers.distractor_again, summary.kept)
        text += f"* {numbers.distractor_again:,} triplets ({part}) have the image of their reference or target as "
        text += "distractor.\n"
    frequent = [(short(name), f"{count:,}", share(count, summary.kept)) for name, count in numbers.frequent.items()]
    return text + "\nThe most frequent conditions:\n\n" + table(("condition", "triplets", "of all"), frequent)
