"""The card of a finished subset: a README that Hugging Face reads, and a researcher too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from cards.card_words import Words, linked_source, source_settings
from cards.citations import SOURCES, benchmark
from cards.kinds.pair_words import pair_words
from cards.kinds.template_words import template_words
from cards.kinds.triplet_words import triplet_words
from cards.reasons import glossary
from cards.summary import AnyStatistics, IndexSummary, Statistics, TripletStatistics
from manifests.markdown import plain, share, table
from manifests.stage import Stage

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(
    stage: Stage,
    summary: IndexSummary,
    numbers: AnyStatistics,
    places: Iterable[str] = (),
    mining: Mapping[str, Any] | None = None,
    files: str = "",
) -> str:
    """Markdown with YAML front matter; the same text for the same dataset.

    places: settings of the source that say where its files lie, for whoever makes it again to fill in. mining: how
    triplets were mined, where that was recorded (``_meta/mining.json``). files: a digest of what is to be loaded.
    """
    words = _words(stage, summary, numbers, mining)
    described = ["## What is in it\n", words.contents, "## Known biases\n", words.biases]
    parts = [
        _front_matter(stage, summary, words, files),
        f"# {stage.name}\n",
        words.introduction if summary.kept else _nothing(stage, summary, words),
        *(["## How it was made\n", words.made] if words.made else []),
        "## How many, and why not more\n",
        _funnel(stage, summary, words),
        *(described if summary.kept else []),
        "## Licences\n",
        _licences(stage, words),
        "## How to make it again\n",
        _reproduction(stage, places),
        "## Citation\n",
        _citation(stage),
    ]
    return "\n".join(parts)


def _words(stage: Stage, summary: IndexSummary, numbers: AnyStatistics, mining: Mapping[str, Any] | None) -> Words:
    if isinstance(numbers, Statistics):
        return pair_words(stage, summary, numbers)
    if isinstance(numbers, TripletStatistics):
        return triplet_words(stage, summary, numbers, mining)
    return template_words(stage, summary, numbers)


def _front_matter(stage: Stage, summary: IndexSummary, words: Words, digest: str) -> str:
    size = next((name for limit, name in _SIZES if summary.kept < limit), "1M<n<10M")
    front: dict[str, Any] = {
        "pretty_name": stage.name,
        "license": "other",
        "license_name": "see-the-sources",
        "language": ["en"],
        "task_categories": list(words.tasks),
        "tags": list(words.tags),
        "size_categories": [size],
    }
    if summary.kept:  # a configuration without files could not be loaded
        files = [{"split": split, "path": f"{split}/*.tar"} for split in summary.kept_by_split]
        if not summary.tars:
            splits = list(summary.kept_by_split)
            files = [{"split": splits[0] if len(splits) == 1 else "index", "path": "_meta/index.parquet"}]
        # load_dataset keeps what it read under the folder's name and a hash of this configuration, in which tars are
        # a mere pattern: without the digest it would return one dataset for another, and the old one after a build.
        front["configs"] = [{"config_name": "default", "description": f"files {digest}", "data_files": files}]
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n"


def _nothing(stage: Stage, summary: IndexSummary, words: Words) -> str:
    source = linked_source(stage)
    planned = f"{summary.planned:,}"
    return f"""No {words.noun} is kept of the {planned} planned from {source}: there is nothing to load. The table
says why, and `_meta/rejections.parquet` lists them one by one.
"""


def _funnel(stage: Stage, summary: IndexSummary, words: Words) -> str:
    rows: list[tuple[str, str, str, str]] = [("planned", "", f"{summary.planned:,}", "100.0 %")]
    for judge, reasons in summary.by_filter.items():
        rows += [
            (f"rejected by {judge}", reason, f"−{count:,}", share(count, summary.planned))
            for reason, count in reasons.items()
        ]
    rows.append(("**kept**", "", f"**{summary.kept:,}**", share(summary.kept, summary.planned)))
    text = table(("", "reason", f"{words.noun}s", "of planned"), rows)
    if meanings := glossary(summary.rejected):
        text += f"\n{meanings}"
    if stage.excluded:
        left_out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(stage.excluded.items()))
        text += f"\nLeft out before planning: {left_out}.\n"
        if meanings := glossary(stage.excluded):
            text += f"\n{meanings}"
    return text


def _licences(stage: Stage, words: Words) -> str:
    licence = plain(str(source_settings(stage).get("licence", "not stated")))
    return f"""{words.terms} stay under the terms of their source: {licence}.

The arrangement into {words.noun}s and these metadata add no restriction of their own.
"""


def _reproduction(stage: Stage, places: Iterable[str]) -> str:
    settings: dict[str, Any] = stage.facts["settings"]
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
    kind = source_settings(stage)["kind"]
    entries = [benchmark(kind), *([SOURCES[kind][2]] if kind in SOURCES else [])]
    return "```bibtex\n" + "\n\n".join(entries) + "\n```\n"
