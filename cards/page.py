"""`twinset look`: a contact sheet a subset, and one HTML page of all, with its images inside and no scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from cards.contact_sheet import contact_sheet
from cards.page_sections import (
    Listed,
    ShownTemplate,
    ShownTriplet,
    Twins,
    listed,
    shown_template,
    shown_triplet,
    twins,
)
from manifests.errors import WrongUse
from manifests.stage import Stage
from shards.kinds.kind import Stored
from shards.kinds.names import kind_of_source
from shards.kinds.reading import StoredPair, StoredTriplet
from shards.read import read_receipts, read_spread, read_spread_rows
from shards.records import read_stage, subsets_in
from shards.storage import layout
from shards.storage.store import Store

COUNT = 24
Shown = Twins | ShownTriplet | ShownTemplate | Listed
_LAYOUTS = {Twins: "pairs", ShownTriplet: "triplets", ShownTemplate: "templates", Listed: "rows"}


@dataclass(frozen=True, slots=True)
class _Section:
    """A subset on the page. noun: what its samples are, as in ``pair``. shown: of one class, or none."""

    name: str
    noun: str
    kind: str
    licence: str
    content: str
    planned: int
    made: int
    kept: int
    rejected: list[tuple[str, int]]
    excluded: list[tuple[str, int]]
    shown: Sequence[Shown]

    @property
    def layout(self) -> str:
        """Which of the templates ``LAYOUT.html.j2`` shows the samples; none where there are none."""
        return _LAYOUTS[type(self.shown[0])] if self.shown else ""


def write_look(store: Store, subsets: Sequence[str], count: int = COUNT) -> list[str]:
    """Write ``SUBSET/_meta/look.png`` of every named subset and ``look.html`` of these; returns their paths.

    Those two belong to the dataset as it was built: another count is part of their names (``look-4.png``), and a page
    that does not show all subsets names those that it shows (``look-eq-ag.html``).

    The same dataset and count give the same samples, evenly spread over each subset; unfinished subsets are shown as
    far as they are made. Samples without images are a table on the page, and have no contact sheet. Raises WrongUse
    when a subset was never planned.
    """
    if count < 1:
        raise WrongUse(f"--count {count}: at least one sample must be shown")
    name = "look" if count == COUNT else f"look-{count}"
    page = name if set(subsets) >= set(subsets_in(store)) else "-".join([name, *subsets])
    written, sections = [], []
    for subset in subsets:
        stage = read_stage(store, subset)
        if stage is None:
            raise WrongUse(f"{store.root}: holds no subset {subset!r}; build it first, or name another --only")
        samples = read_spread(store, subset, count)
        rows = [] if samples else read_spread_rows(store, subset, count)
        section = _section(store, stage, [*map(_shown, samples), *map(listed, rows)])
        sections.append(section)
        picture = layout.meta(subset, f"{name}.png")
        if rows:
            store.remove(picture)
            continue
        shown = f"{len(samples):,} of {section.kept:,} kept {section.noun}s, evenly spread"
        subtitle = f"{shown}; {section.planned:,} planned. {section.licence}"
        store.write(picture, contact_sheet(samples, subset, subtitle))
        written.append(picture)
    store.write(f"{page}.html", render_page(sections).encode("utf-8", "replace"))
    return [*written, f"{page}.html"]


def render_page(sections: Sequence[_Section]) -> str:
    """The HTML page. Captions and names are strangers' text: everything is escaped, and scripts are forbidden."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html.j2").render(sections=sections)


def _shown(sample: Stored) -> Shown:
    if isinstance(sample, StoredPair):
        return twins(sample)
    return shown_triplet(sample) if isinstance(sample, StoredTriplet) else shown_template(sample)


def _section(store: Store, stage: Stage, shown: Sequence[Shown]) -> _Section:
    receipts = read_receipts(store, stage.name)
    rejected = sum((Counter(receipt.rejected) for receipt in receipts), Counter[str]())
    source: dict[str, Any] = stage.facts["settings"]["source"]
    return _Section(
        name=stage.name,
        noun=kind_of_source(str(source["kind"])).name,
        kind=str(source["kind"]),
        licence=str(source.get("licence", "")),
        content=stage.content,
        planned=stage.planned,
        made=sum(receipt.planned for receipt in receipts),
        kept=sum(receipt.kept for receipt in receipts),
        rejected=sorted(rejected.items(), key=lambda item: (-item[1], item[0])),
        excluded=sorted(stage.excluded.items(), key=lambda item: (-item[1], item[0])),
        shown=shown,
    )
