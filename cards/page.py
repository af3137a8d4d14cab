"""`twinset look`: a contact sheet a subset, and one HTML page of all, with its images inside and no scripts."""

from __future__ import annotations

import base64
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cards.block import LONGEST_TEXT, Block
from cards.kinds.registry import CARD_KINDS
from cards.rendering import render
from cards.sheet import contact_sheet, thumbnail
from cards.word_diff import Marked
from manifests.errors import WrongUse
from manifests.markdown import ranked
from manifests.stage import Stage
from shards.read import finished, read_spread, read_spread_rows
from shards.records import planned_stage, subsets_in
from shards.storage import layout
from shards.storage.store import Store

COUNT = 24
IMAGES = {2: (480, 480), 3: (360, 360), 4: (320, 320)}  # largest size by pictures side by side
SMALL = (200, 200)


def write_look(store: Store, subsets: Sequence[str], count: int = COUNT) -> list[str]:
    """Write ``SUBSET/_meta/look.png`` of every named subset of samples and ``look.html`` of these; returns their paths.

    Those two belong to the dataset as it was built: another count is part of their names (``look-4.png``), and a page
    that does not show all subsets names those that it shows (``look-eq-ag.html``).

    The same dataset and count give the same samples, evenly spread over each subset; unfinished subsets are shown as
    far as they are made. Samples without images are a table on the page, and have no contact sheet; subsets that are
    tables are left out.

    Raises:
        WrongUse: a subset was never planned, or none has samples.
    """
    if count < 1:
        raise WrongUse(f"--count {count}: at least one sample must be shown")
    stages = {subset: planned_stage(store, subset) for subset in subsets}
    stages = {subset: stage for subset, stage in stages.items() if stage.facts["makes"] in CARD_KINDS}
    if not stages:
        raise WrongUse(f"{', '.join(subsets)}: tables, which have no samples to look at; read _meta/index.parquet")
    name = "look" if count == COUNT else f"look-{count}"
    page = name if set(subsets) >= set(subsets_in(store)) else "-".join([name, *stages])
    # Decoding, scaling and encoding are most of the work, and Pillow does them outside of Python's lock.
    with ThreadPoolExecutor(min(len(stages), len(os.sched_getaffinity(0)))) as threads:
        sections = list(threads.map(lambda stage: _section(store, stage, count, name), stages.values()))
    # Captions and names are other people's text: everything is escaped, and the page forbids scripts.
    uris: dict[tuple[bytes, int], str] = {key: uri for section in sections for key, uri in section["uris"].items()}

    def picture(image: bytes, block: Block) -> str:
        return uris[image, block.columns]

    html = render("page.html.j2", sections=sections, picture=picture, runs=runs, longest=LONGEST_TEXT)
    store.write(f"{page}.html", html.encode("utf-8", "replace"))
    sheets = [layout.meta(section["stage"].name, f"{name}.png") for section in sections if not section["rows"]]
    return [*sheets, f"{page}.html"]


def _section(store: Store, stage: Stage, count: int, name: str) -> dict[str, Any]:
    """Write the contact sheet of a subset; what the page shows of it.

    made, kept, rejected: of finished shards. blocks: samples with images; uris: these images, by content and columns.
    rows: samples without images; columns: of words in which some row has any.
    """
    kind, receipts = CARD_KINDS[stage.facts["makes"]], finished(store, stage.name)
    blocks = [kind.block(sample) for sample in read_spread(store, stage.name, count)]
    rows = [] if blocks else read_spread_rows(store, stage.name, count)
    kept, licence = sum(receipts.column("kept")), str(stage.facts["settings"]["source"].get("licence", ""))
    sheet = layout.meta(stage.name, f"{name}.png")
    if rows:
        store.remove(sheet)
    else:
        shown = f"{len(blocks):,} of {kept:,} kept {kind.sample.name.replace('-', ' ')}s, evenly spread"
        subtitle = f"{shown}; {stage.planned:,} planned. {licence}"
        store.write(sheet, contact_sheet(blocks, kind.across, stage.name, subtitle, kind.legend))
    images = ((cell.image, block) for block in blocks for cell in block.cells)
    return {
        "stage": stage,
        "kind": kind,
        "licence": licence,
        "made": sum(receipts.column("planned")),
        "kept": kept,
        "rejected": ranked(receipts.rejected()),
        "excluded": ranked(stage.excluded),
        "blocks": blocks,
        "uris": {(image, block.columns): as_uri(image, block) for image, block in images if image is not None},
        "rows": rows,
        "columns": [name for name in kind.sample.described if any(row.words[name] for row in rows)],
    }


def runs(words: Marked) -> Iterator[tuple[str, bool]]:
    """Neighbouring words that are all marked, or all not, as one."""
    for marked, run in itertools.groupby(words, key=lambda word: word[1]):
        yield " ".join(word for word, _ in run), marked


def as_uri(content: bytes, block: Block) -> str:
    """A picture of a block as a data URI."""
    stream = io.BytesIO()
    thumbnail(content, block.key, IMAGES.get(block.columns, SMALL)).save(stream, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
