"""`twinset look`: a contact sheet a subset, and one HTML page of all, with its images inside and no scripts."""

from __future__ import annotations

import base64
import io
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from manifests.errors import WrongUse
from manifests.stage import Stage
from shards import layout
from shards.contact_sheet import contact_sheet, thumbnail
from shards.progress import read_stage, subsets_in
from shards.read import read_receipts, read_spread
from shards.store import Store
from shards.stored import StoredPair, pairs
from shards.word_diff import Marked, mark_difference

PAGE_IMAGE = (480, 480)
COUNT = 24


@dataclass(frozen=True, slots=True)
class _Twins:
    """A pair as the page shows it. images: data URIs. sides: captions as runs of words, marked where they differ."""

    key: str
    group: str
    change: str
    images: tuple[str, str]
    sides: tuple[Marked, Marked]


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: str
    licence: str
    content: str
    planned: int
    made: int
    kept: int
    rejected: list[tuple[str, int]]
    excluded: list[tuple[str, int]]
    twins: list[_Twins]


def write_look(store: Store, subsets: Sequence[str], count: int = COUNT) -> list[str]:
    """Write ``SUBSET/_meta/look.png`` of every named subset and ``look.html`` of these; returns their paths.

    Those two belong to the dataset as it was built: another count is part of their names (``look-4.png``), and a page
    that does not show all subsets names those that it shows (``look-eq-ag.html``).

    The same dataset and count give the same pairs, evenly spread over each subset; unfinished subsets are shown as far
    as they are made. Raises WrongUse when a subset was never planned.
    """
    if count < 1:
        raise WrongUse(f"--count {count}: at least one pair must be shown")
    name = "look" if count == COUNT else f"look-{count}"
    page = name if set(subsets) >= set(subsets_in(store)) else "-".join([name, *subsets])
    written, sections = [], []
    for subset in subsets:
        stage = read_stage(store, subset)
        if stage is None:
            raise WrongUse(f"{store.root}: holds no subset {subset!r}; build it first, or name another --only")
        shown = list(pairs(read_spread(store, subset, count), "the page"))
        section = _section(store, stage, shown)
        subtitle = f"{len(shown):,} of {section.kept:,} kept pairs, evenly spread; {section.planned:,} planned"
        sheet = contact_sheet(shown, subset, f"{subtitle}. {section.licence}")
        written.append(layout.meta(subset, f"{name}.png"))
        store.write(written[-1], sheet)
        sections.append(section)
    store.write(f"{page}.html", render_page(sections).encode("utf-8", "replace"))
    return [*written, f"{page}.html"]


def render_page(sections: Sequence[_Section]) -> str:
    """The HTML page. Captions and names are strangers' text: everything is escaped, and scripts are forbidden."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("look.html.j2").render(sections=sections)


def _section(store: Store, stage: Stage, shown: Sequence[StoredPair]) -> _Section:
    receipts = read_receipts(store, stage.name)
    rejected = sum((Counter(receipt.rejected) for receipt in receipts), Counter[str]())
    source: dict[str, Any] = stage.facts["settings"]["source"]
    return _Section(
        name=stage.name,
        kind=str(source["kind"]),
        licence=str(source.get("licence", "")),
        content=stage.content,
        planned=stage.planned,
        made=sum(receipt.planned for receipt in receipts),
        kept=sum(receipt.kept for receipt in receipts),
        rejected=sorted(rejected.items(), key=lambda item: (-item[1], item[0])),
        excluded=sorted(stage.excluded.items(), key=lambda item: (-item[1], item[0])),
        twins=[_twins(pair) for pair in shown],
    )


def _twins(pair: StoredPair) -> _Twins:
    marked0, marked1 = mark_difference(pair.caption0, pair.caption1)
    return _Twins(
        pair.key,
        pair.json.group,
        pair.json.change,
        (_data_uri(pair.image0, pair.key), _data_uri(pair.image1, pair.key)),
        (_runs(marked0), _runs(marked1)),
    )


def _runs(words: Marked) -> Marked:
    """Neighbouring words that all differ, or all do not, as one."""
    runs = itertools.groupby(words, key=lambda word: word[1])
    return [(" ".join(word for word, _ in run), differs) for differs, run in runs]


def _data_uri(content: bytes, key: str) -> str:
    stream = io.BytesIO()
    thumbnail(content, key, PAGE_IMAGE).save(stream, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
