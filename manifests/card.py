"""The card of a finished subset: a README that Hugging Face reads, and a researcher too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from manifests.card_notes import notes, wording
from manifests.citations import EQBEN, SOURCES
from manifests.reasons import glossary
from manifests.stage import Stage
from manifests.summary import IndexSummary, Statistics

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(stage: Stage, summary: IndexSummary, numbers: Statistics, places: Iterable[str] = ()) -> str:
    """Markdown with YAML front matter; the same text for the same dataset.

    places: settings of the source that say where its files lie, for whoever makes it again to fill in.
    """
    described = ["## What is in it\n", _contents(stage, summary, numbers), "## Known biases\n", _biases(stage, numbers)]
    parts = [
        _front_matter(stage, summary),
        f"# {stage.name}\n",
        _introduction(stage, summary),
        "## How many, and why not more\n",
        _funnel(stage, summary),
        *(described if summary.kept else []),
        "## Licences\n",
        _licences(stage),
        "## How to make it again\n",
        _reproduction(stage, places),
        "## Citation\n",
        _citation(stage),
    ]
    return "\n".join(parts)


def _settings(stage: Stage) -> dict[str, Any]:
    settings: dict[str, Any] = stage.facts["settings"]
    return settings


def _front_matter(stage: Stage, summary: IndexSummary) -> str:
    size = next((name for limit, name in _SIZES if summary.kept < limit), "1M<n<10M")
    front: dict[str, Any] = {
        "pretty_name": stage.name,
        "license": "other",
        "license_name": "see-the-sources",
        "language": ["en"],
        "task_categories": ["image-to-text", "zero-shot-image-classification"],
        "tags": ["minimal-pairs", "image-text-matching", "webdataset"],
        "size_categories": [size],
    }
    if summary.kept:  # a configuration without files could not be loaded
        files = [{"split": split, "path": f"{split}/*.tar"} for split in summary.kept_by_split]
        front["configs"] = [{"config_name": "default", "data_files": files}]
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n"


def _introduction(stage: Stage, summary: IndexSummary) -> str:
    kind = _settings(stage)["source"]["kind"]
    title, address, _ = SOURCES.get(kind, (kind, "", ""))
    source = f"[{title}]({address})" if address else _plain(title)
    extension = _settings(stage)["encoding"]["format"]
    if not summary.kept:
        return f"""No pair is kept of the {summary.planned:,} planned from {source}: there is nothing to load. The table
says why, and `_meta/rejections.parquet` lists them one by one.
"""
    made, there, _ = wording(kind)
    # The annotations may be somebody's own in that source's format, as the miniature's are: say how, not where from.
    return f"""{summary.kept:,} minimal pairs, {made} the way EqBen's are {there} {source}: two images that differ in
one thing, and two captions that tell them apart. A model is asked to give each image its own caption.

![Pairs, evenly spread over the subset](_meta/look.png)

```python
from datasets import load_dataset
pairs = load_dataset("path/to/{stage.name}")  # image0.{extension}, image1.{extension}, caption0.txt, caption1.txt, json
```

Tars: {len(summary.tars):,}, {summary.bytes / 1e6:,.1f} MB together; `_meta/index.parquet` lists what was kept,
`_meta/rejections.parquet` what was not, and `_meta/sizes.json` the pairs of each tar.
"""


def _funnel(stage: Stage, summary: IndexSummary) -> str:
    rows: list[tuple[str, str, str, str]] = [("planned", "", f"{summary.planned:,}", "100.0 %")]
    for judge, reasons in summary.by_filter.items():
        rows += [
            (f"rejected by {judge}", reason, f"−{count:,}", _share(count, summary.planned))
            for reason, count in reasons.items()
        ]
    rows.append(("**kept**", "", f"**{summary.kept:,}**", _share(summary.kept, summary.planned)))
    text = _table(("", "reason", "pairs", "of planned"), rows)
    if meanings := glossary(summary.rejected):
        text += f"\n{meanings}"
    if stage.excluded:
        left_out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(stage.excluded.items()))
        text += f"\nLeft out before planning: {left_out}.\n"
        if meanings := glossary(stage.excluded):
            text += f"\n{meanings}"
    return text


def _group(stage: Stage) -> str:
    return wording(_settings(stage)["source"]["kind"])[2]


def _contents(stage: Stage, summary: IndexSummary, numbers: Statistics) -> str:
    group, pairs = _group(stage), numbers.group_pairs
    rows = [
        *((f"pairs in {split}", f"{count:,}") for split, count in summary.kept_by_split.items()),
        (f"{group}s", f"{sum(pairs.values()):,}"),
        (f"pairs of one {group} (median; most)", f"{_median(pairs):,}; {_most(pairs):,}"),
        ("distinct images", f"{numbers.distinct_images:,}"),
        ("distinct captions", f"{numbers.distinct_captions:,}"),
        ("words of a caption (median; most)", f"{_median(numbers.caption_words)}; {_most(numbers.caption_words)}"),
        (f"image sizes (of {numbers.sampled:,} pairs, evenly spread)", _listed(_sizes(numbers))),
        (f"what changes (of {numbers.sampled:,} pairs)", _listed(numbers.changes)),
    ]
    return _table(("", ""), rows) + f"\n![Words a caption, pairs a {group}](_meta/histograms.png)\n"


def _biases(stage: Stage, numbers: Statistics) -> str:
    rows = [(use.word, f"{use.either:,}", f"{use.only0:,}", f"{use.only1:,}") for use in numbers.frequent]
    lopsided = [(use.word, f"{use.either:,}", f"{use.only0:,}", f"{use.only1:,}") for use in numbers.lopsided]
    heads = ("word", "pairs with it", "in caption 0 alone", "in caption 1 alone")
    group = _group(stage)
    text = "So that scores can be read with care; numbers are counted from the data.\n\n"
    text += notes(_settings(stage)["source"])
    if _most(numbers.group_pairs) > 1:
        share = f"{numbers.top_groups_share:.1%}"
        text += f"* The tenth of the {group}s with most pairs holds {share} of all pairs: pairs of\n"
        text += f"  one {group} are not independent.\n"
    text += f"* Caption 0 has more words than caption 1 in {numbers.longer0:.1%} of the pairs.\n"
    if numbers.earlier0 is not None:
        text += f"* Image 0 comes first in time in {numbers.earlier0:.1%} of the {numbers.sampled:,} pairs looked at.\n"
    text += "\nThe words in most pairs:\n\n" + _table(heads, rows)
    if lopsided:
        text += "\nWords that stand on one side more often than chance explains (sign test, p < 0.001 for the whole "
        text += "table): whoever knows them can guess the side without looking.\n\n" + _table(heads, lopsided)
    else:
        text += "\nNo word stands on one side more often than chance explains (sign test, p < 0.001).\n"
    return text


def _licences(stage: Stage) -> str:
    licence = _plain(str(_settings(stage)["source"].get("licence", "not stated")))
    return f"""Images and captions stay under the terms of their source: {licence}.

The arrangement into pairs and these metadata add no restriction of their own.
"""


def _reproduction(stage: Stage, places: Iterable[str]) -> str:
    settings = _settings(stage)
    subset = {name: value for name, value in settings.items() if name != "seed"}
    paths = {place: f"path/to/{place}" for place in places}
    if stage.count is not None:
        subset["count"] = stage.count
    recipe = {
        "name": stage.name,
        "seed": settings["seed"],
        "subsets": {stage.name: {**subset, "source": {**subset["source"], **paths}}},
    }
    libraries = ", ".join(f"{name} {version}" for name, version in stage.facts["libraries"].items()) or "no library"
    named, media = (", name your own paths,", ", the same media") if paths else ("", "")
    return f"""Save as `recipe.yaml`{named} and run `twinset build recipe.yaml --out OUT`:

```yaml
{yaml.safe_dump(recipe, sort_keys=False)}```

The same bytes come out where the stage digest is `{stage.content}`: the same inputs (digest
`{stage.facts["inputs"]}`){media}, on machines of the runtime class that the receipts name, and
{libraries}.

* The stage digest is a hash of all that decides the bytes: settings, inputs, versions of code and libraries.
* The runtime class names the kind of machine where a neural network takes part, since these round differently on each;
  it is `any` where none does.
"""


def _citation(stage: Stage) -> str:
    kind = _settings(stage)["source"]["kind"]
    entries = [EQBEN, *([SOURCES[kind][2]] if kind in SOURCES else [])]
    return "```bibtex\n" + "\n\n".join(entries) + "\n```\n"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    # Words of captions and reasons come from outside: they must not end a cell or become HTML.
    for mark, shown in (("&", "&amp;"), ("\\", "&#92;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(mark, shown)
    return text


def _plain(text: str) -> str:
    """Somebody's text as Markdown that shows it as it stands, on one line: no mark-up, links or HTML."""
    return re.sub(r"([\\`*_\[\]<|~&$])", r"\\\1", " ".join(text.split()))


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else "–"


def _median(counts: Mapping[int, int]) -> int:
    """The lower median of values given as value -> how often."""
    left = (sum(counts.values()) + 1) // 2
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return 0


def _most(counts: Mapping[int, int]) -> int:
    return max(counts, default=0)


def _sizes(numbers: Statistics) -> dict[str, int]:
    return {f"{width} × {height}": count for (width, height), count in numbers.image_sizes.items()}


def _listed(counts: Mapping[str, int], most: int = 6) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} ({count:,})" for name, count in ordered[:most])
    return listed + (f" and {len(ordered) - most} more" if len(ordered) > most else "")
