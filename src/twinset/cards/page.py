"""`twinset look`: a contact sheet a subset, and one HTML page of all, with its images inside and no scripts."""

import base64
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from twinset.cards.kinds import CARD_KINDS
from twinset.cards.rendering import render
from twinset.cards.sheet import LONGEST_TEXT, Block, Marked, contact_sheet, thumbnail
from twinset.cards.terms import by_licence
from twinset.contracts.errors import WrongUse
from twinset.contracts.stage import Stage
from twinset.generators.markdown import ranked
from twinset.shards.read import finished, read_spread, term_counts
from twinset.shards.records import planned_stage, subsets_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

COUNT = 24
IMAGES = {1: (480, 480), 2: (480, 480), 3: (360, 360), 4: (320, 320)}  # largest size by pictures side by side
SMALL = (200, 200)


def write_look(store: Store, homes: Sequence[str], count: int = COUNT) -> list[str]:
    """Write ``HOME/_meta/look.png`` of stages of samples and ``look.html`` of these; returns their paths.

    Those two belong to the dataset as it was built: another count is part of their names (``look-4.png``), and a page
    that does not show all subsets names those that it shows (``look-eq-ag.html``). Samples are evenly spread over what
    is made of each stage. Those without images are a table on the page, and have no contact sheet.

    Args:
        homes: of subsets and other stages; tables are left out.
        count: how many samples of each are shown.

    Raises:
        WrongUse: a stage was never planned, or none has samples.
    """
    if count < 1:
        raise WrongUse(f"--count {count}: at least one sample must be shown")
    # The dataset's card lists subsets in the order of the recipe.
    text = store.read("README.md").decode("utf-8", "replace") if store.size("README.md") is not None else ""
    listed = [*re.findall(r"^- config_name: (\S+)$", text, re.MULTILINE), *homes]
    stages = {home: planned_stage(store, home) for home in sorted(homes, key=listed.index)}
    stages = {home: stage for home, stage in stages.items() if stage.facts["makes"] in CARD_KINDS}
    if not stages:
        raise WrongUse(f"{', '.join(homes) or store.root}: no samples to look at yet; of tables, read index.parquet")
    name = "look" if count == COUNT else f"look-{count}"
    named = [home.rsplit("/", 1)[-1] for home in stages]
    page = name if set(homes) == set(subsets_in(store)) else "-".join([name, *named])
    sections = [_section(store, home, stage, count, layout.meta(home, f"{name}.png")) for home, stage in stages.items()]
    # Captions and names are other people's text: everything is escaped, and the page forbids scripts.
    html = render("page.html.j2", sections=sections, picture=as_uri, runs=runs, longest=LONGEST_TEXT)
    store.write(f"{page}.html", html.encode("utf-8", "replace"))
    return [*(section["sheet"] for section in sections if section["blocks"]), f"{page}.html"]


def _section(store: Store, home: str, stage: Stage, count: int, sheet: str) -> dict[str, Any]:
    """Write the contact sheet of a stage; what the page shows of it."""
    kind, receipts = CARD_KINDS[stage.facts["makes"]], finished(store, home)
    blocks = []
    for sample in read_spread(store, home, count):
        terms = " · ".join(filter(None, (sample.json.licence, sample.json.credit, sample.json.source_url)))
        blocks.append(replace(kind.block(sample), terms=terms))
    rows = [] if blocks else read_spread(store, home, count, images=False)
    kept = sum(receipts.column("kept"))
    labels = {"", *(cell.label for block in blocks for cell in block.cells)}
    legend = " ".join(meaning for label, meaning in kind.legend.items() if label in labels)
    if blocks:
        subtitle = f"{len(blocks):,} of {kept:,} kept {kind.noun}s, evenly spread; {stage.planned:,} planned"
        store.write(sheet, contact_sheet(blocks, stage.name, subtitle, legend))
    else:
        store.remove(sheet)
    indexed = store.size(layout.meta(home, "index.parquet")) is not None
    return {
        "stage": stage,
        "kind": kind,
        "sheet": sheet,
        "legend": legend,
        "licences": by_licence(term_counts(store, home)) if indexed else {},
        "made": sum(receipts.column("planned")),
        "kept": kept,
        "rejected": ranked(receipts.rejected()),
        "excluded": ranked(stage.excluded),
        "blocks": blocks,
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
