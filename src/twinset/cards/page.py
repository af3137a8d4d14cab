"""`twinset look`: a contact sheet a subset, and one HTML page of all, with its images inside and no scripts."""

import base64
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.kind import blocks_across, legend_of
from twinset.cards.rendering import render
from twinset.cards.sheet import LONGEST_TEXT, Block, Marked, contact_sheet, thumbnail
from twinset.cards.terms import by_licence
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.markdown import ranked
from twinset.contracts.stage import Stage
from twinset.shards.read import finished, read_spread, term_counts
from twinset.shards.records import planned_stage, subsets_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

COUNT = 24
IMAGES = {2: (480, 480), 3: (360, 360), 4: (320, 320)}  # largest size by pictures side by side
SMALL = (200, 200)


def write_look(store: Store, homes: Sequence[str], count: int = COUNT) -> list[str]:
    """Write ``HOME/_meta/look.png`` of all stages of samples and ``look.html`` of these; returns their paths.

    Those two belong to the dataset as it was built: another count is part of their names (``look-4.png``), and a page
    that does not show all subsets names those that it shows (``look-eq-ag.html``).

    The same dataset and count give the same samples, evenly spread over each stage; unfinished ones are shown as far as
    they are made. Samples without images are a table on the page, and have no contact sheet; stages that are tables are
    left out.

    Args:
        store: of the dataset.
        homes: of subsets and other stages.
        count: how many samples of each are shown.

    Raises:
        WrongUse: a stage was never planned, or none has samples.
    """
    if count < 1:
        raise WrongUse(f"--count {count}: at least one sample must be shown")
    stages = {home: planned_stage(store, home) for home in homes}
    stages = {home: stage for home, stage in stages.items() if stage.facts["makes"] in CARD_KINDS}
    if not stages:
        raise WrongUse(f"{', '.join(homes) or store.root}: no samples to look at yet; of tables, read index.parquet")
    name = "look" if count == COUNT else f"look-{count}"
    named = [home.rsplit("/", 1)[-1] for home in stages]
    page = name if set(homes) == set(subsets_in(store)) else "-".join([name, *named])
    # Decoding, scaling and encoding are most of the work, and Pillow does them outside of Python's lock.
    with ThreadPoolExecutor(min(len(stages), len(os.sched_getaffinity(0)))) as threads:
        sections = list(threads.map(lambda home: _section(store, home, stages[home], count, name), stages))
    # Captions and names are other people's text: everything is escaped, and the page forbids scripts.
    uris: dict[tuple[bytes, int], str] = {key: uri for section in sections for key, uri in section["uris"].items()}

    def picture(image: bytes, block: Block) -> str:
        return uris[image, block.columns]

    html = render("page.html.j2", sections=sections, picture=picture, runs=runs, longest=LONGEST_TEXT)
    store.write(f"{page}.html", html.encode("utf-8", "replace"))
    return [*(section["sheet"] for section in sections if section["sheet"]), f"{page}.html"]


def _section(store: Store, home: str, stage: Stage, count: int, name: str) -> dict[str, Any]:
    """Write the contact sheet of a stage; what the page shows of it.

    sheet: its path, None for samples without images. legend: what explains it.
    made, kept, rejected: of finished shards. blocks: samples with images; uris: these images, by content and columns.
    rows: samples without images; columns: of words in which some row has any.
    """
    kind, receipts = CARD_KINDS[stage.facts["makes"]], finished(store, home)
    blocks = [_with_terms(kind.block(sample), sample) for sample in read_spread(store, home, count)]
    rows = [] if blocks else read_spread(store, home, count, images=False)
    kept = sum(receipts.column("kept"))
    terms = {} if store.size(layout.meta(home, "index.parquet")) is None else term_counts(store, home)
    sheet, legend = layout.meta(home, f"{name}.png"), legend_of(kind, blocks)
    if rows:
        store.remove(sheet)
    else:
        shown = f"{len(blocks):,} of {kept:,} kept {kind.sample.name.replace('-', ' ')}s, evenly spread"
        subtitle = f"{shown}; {stage.planned:,} planned"
        store.write(sheet, contact_sheet(blocks, blocks_across(blocks), stage.name, subtitle, legend))
    images = ((cell.image, block) for block in blocks for cell in block.cells)
    return {
        "stage": stage,
        "kind": kind,
        "sheet": None if rows else sheet,
        "legend": legend,
        "licences": by_licence(terms),
        "made": sum(receipts.column("planned")),
        "kept": kept,
        "rejected": ranked(receipts.rejected()),
        "excluded": ranked(stage.excluded),
        "blocks": blocks,
        "uris": {(image, block.columns): as_uri(image, block) for image, block in images if image is not None},
        "rows": rows,
        "columns": [name for name in kind.sample.described if any(row.words[name] for row in rows)],
    }


def _with_terms(block: Block, sample: Stored[Any]) -> Block:
    terms = (sample.json.licence, sample.json.credit, sample.json.source_url)
    return replace(block, terms=" · ".join(filter(None, terms)))


def runs(words: Marked) -> Iterator[tuple[str, bool]]:
    """Neighbouring words that are all marked, or all not, as one."""
    for marked, run in itertools.groupby(words, key=lambda word: word[1]):
        yield " ".join(word for word, _ in run), marked


def as_uri(content: bytes, block: Block) -> str:
    """A picture of a block as a data URI."""
    stream = io.BytesIO()
    thumbnail(content, block.key, IMAGES.get(block.columns, SMALL)).save(stream, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
