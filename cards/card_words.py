"""What the card of every kind of samples says in its own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cards.citations import SOURCES
from manifests.markdown import plain
from manifests.stage import Stage


@dataclass(frozen=True, slots=True)
class Words:
    """Parts of a card, as Markdown.

    noun: what a sample is, as in ``pair``. tasks, tags: for Hugging Face. introduction: below the title, where
    something is kept. made: how samples came about, empty where the introduction says it all. contents, biases: from
    counts. terms: what stays under the source's terms.
    """

    noun: str
    tasks: tuple[str, ...]
    tags: tuple[str, ...]
    introduction: str
    made: str
    contents: str
    biases: str
    terms: str


def source_settings(stage: Stage) -> dict[str, Any]:
    """The settings of a subset's source."""
    settings: dict[str, Any] = stage.facts["settings"]["source"]
    return settings


def linked_source(stage: Stage) -> str:
    """The title of a subset's source, linked to where it is described."""
    kind = source_settings(stage)["kind"]
    title, address, _ = SOURCES.get(kind, (kind, "", ""))
    return f"[{title}]({address})" if address else plain(title)


def files_of(count: int, size: int, noun: str) -> str:
    """Where the samples lie. count, size: of tars, in bytes."""
    return f"""Tars: {count:,}, {size / 1e6:,.1f} MB together; `_meta/index.parquet` lists what was kept,
`_meta/rejections.parquet` what was not, and `_meta/sizes.json` the {noun}s of each tar.
"""
