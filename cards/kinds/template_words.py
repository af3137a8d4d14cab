"""What the card says of templates: retrieval questions of GeneCIS's four tasks."""

from __future__ import annotations

from cards.card_words import Words, files_of, linked_source, source_settings
from cards.summary import IndexSummary, TemplateStatistics
from manifests.markdown import listed, median, most, share, short, sizes, table
from manifests.stage import Stage

#: Of each kind of source and task: its name, what it asks, and how its templates are made (GeneCIS, sections 4, A.1).
_TASKS = {
    ("genecis-attributes", "focus"): (
        "Focus on an Attribute",
        "Which image of the gallery shows the object with the same attribute of the type that the condition names?",
        """\
Reference and target are one object with one attribute; the condition is the type of that attribute. The nine
distractors are the same object, labelled not to have the attribute.
""",
    ),
    ("genecis-attributes", "change"): (
        "Change an Attribute",
        "Which image of the gallery shows the reference's object, but with the attribute that the condition names?",
        """\
Reference and target are one object with different attributes of one type; the condition is the target's. Nine
distractors are other objects with that attribute, five are the reference's object, labelled not to have it.
""",
    ),
    ("genecis-objects", "focus"): (
        "Focus on an Object",
        "Which image of the gallery shows a scene like the reference's, with that of its objects which is named?",
        """\
A reference shows at least ten categories. The target shares at least six of them, but not all; the condition is one of
those shared. Nine distractors are as near, but without that object; five are far from the scene, but with it.
""",
    ),
    ("genecis-objects", "change"): (
        "Change an Object",
        "Which image of the gallery shows a scene like the reference's, and what the condition names besides?",
        """\
A reference shows at least ten categories. The target shares at least six of them, but not all; the condition is one
that the reference lacks. Nine distractors are as near, but without that object; five are far from the scene, but with
it.
""",
    ),
}

_CROPS = {
    "corrected": """
`crops: corrected`: each object is cut out with its surroundings, its box made 1.7 times as wide and high around its
centre, 0.35 of its size on each side. The released evaluation (`crops: published`) moves the box by 0.7 of its size to
the left and the top instead: it shows twice as much there, and nothing to the right of the object or below it, unless
the border of the image is near. All are padded to squares with black. The released evaluation reads boxes, and cuts for
itself.
""",
    "published": """
`crops: published`: each object is cut out as the released evaluation does it, its box made 1.7 times as wide and high
and moved by 0.7 of its size to the left and the top: nothing is seen to the right of the object or below it, unless the
border of the image is near. `crops: corrected` grows the box by 0.35 of its size on each side. All are padded to
squares with black.
""",
}

_LABELS = {
    "genecis-attributes": """\
* Attributes are people's opinions (wide, narrow), and what nobody labelled is not known: lacking one always means that
  somebody said so.
""",
    "genecis-objects": """\
* A pixel has one category, whatever else it shows (a ceiling light is a ceiling or a light), and what takes no more
  than 1 % of an image does not count as seen.
""",
}


def template_words(stage: Stage, summary: IndexSummary, numbers: TemplateStatistics) -> Words:
    """The words of a card of templates."""
    return Words(
        noun="template",
        tasks=("image-feature-extraction",),
        tags=("conditional-image-similarity", "composed-image-retrieval", "image-retrieval", "webdataset"),
        introduction=_introduction(stage, summary, numbers),
        made=_made(stage),
        contents=_contents(summary, numbers),
        biases=_biases(stage, summary, numbers),
        terms="Images and annotations",
    )


def _task(stage: Stage) -> tuple[str, str, str]:
    source = source_settings(stage)
    return _TASKS[source["kind"], source["task"]]


def _introduction(stage: Stage, summary: IndexSummary, numbers: TemplateStatistics) -> str:
    name, question, _ = _task(stage)
    extension = stage.facts["settings"]["encoding"]["format"]
    last = [role for role in summary.images if role.startswith("gallery")][-1:]
    gallery = f"gallery00.{extension} … {last[0]}.{extension}" if last else ""
    sizes_of = " or ".join(map(str, numbers.galleries))
    return f"""{summary.kept:,} templates of GeneCIS's task "{name}", made the way its own are from
{linked_source(stage)}: a reference image, a condition in words, and a gallery of {sizes_of} images, of which one,
the target, is right. {question}

![Templates, evenly spread over the subset](_meta/look.png)

```python
from datasets import load_dataset
templates = load_dataset("path/to/{stage.name}")
# reference.{extension}, target.{extension}, {gallery} (the distractors), condition.txt, json
```

`twinset export OUT --format genecis --to DIR` writes the file that GeneCIS's released evaluation reads.

{files_of(len(summary.tars), summary.bytes, "template")}"""


def _made(stage: Stage) -> str:
    return _task(stage)[2] + _CROPS.get(source_settings(stage).get("crops", ""), "")


def _contents(summary: IndexSummary, numbers: TemplateStatistics) -> str:
    rows = [
        *((f"templates in {split}", f"{count:,}") for split, count in summary.kept_by_split.items()),
        *((f"with {size} images in the gallery", f"{count:,}") for size, count in numbers.galleries.items()),
        ("distinct conditions", f"{numbers.conditions:,}"),
        ("words of a condition (median; most)", f"{median(numbers.condition_words)}; {most(numbers.condition_words)}"),
        ("distinct images", f"{numbers.distinct_images:,}"),
        (
            "templates that one image is in (median; most)",
            f"{median(numbers.image_templates):,}; {most(numbers.image_templates):,}",
        ),
        (f"sizes of targets (of {numbers.sampled:,} templates, evenly spread)", sizes(numbers.image_sizes)),
    ]
    if numbers.types:
        rows.append((f"types of attributes (of {numbers.sampled:,} templates)", listed(numbers.types, 12)))
    return table(("", ""), rows) + "\n![Words a condition, most frequent conditions](_meta/histograms.png)\n"


def _biases(stage: Stage, summary: IndexSummary, numbers: TemplateStatistics) -> str:
    chance = ", ".join(f"{1 / size:.1%} with {size} images" for size in numbers.galleries)
    text = f"""So that scores can be read with care; numbers are counted from the data.

* Right is what annotations say, and nobody has looked at the templates: annotations are incomplete, and some distractor
  may be as right (GeneCIS, A.3; hence Recall at 1, 2 and 3). Chance is a Recall at 1 of {chance}.
{_LABELS[source_settings(stage)["kind"]]}\
* Templates share images and are not independent: the image used most is in {most(numbers.image_templates):,}, and the
  target of {numbers.distracting_targets:.1%} of the templates is a distractor of another one.
* The released evaluation puts the target first in its gallery: scores that tie must not be sorted in its favour.
"""
    if source_settings(stage)["task"] == "change":
        text += "* A change has a direction: reference and target cannot be swapped.\n"
    text += "\nThe most frequent conditions:\n\n"
    frequent = [(short(name), f"{count:,}", share(count, summary.kept)) for name, count in numbers.frequent.items()]
    return text + table(("condition", "templates", "of all"), frequent)
