"""What goes beside the tars of a finished dataset: card, Croissant metadata, pictures."""

import json
from collections.abc import Mapping
from typing import Any

from twinset.cards.card import card
from twinset.cards.croissant import MARKER, croissant, marker_folder
from twinset.cards.kinds.registry import CARD_KINDS
from twinset.cards.page import write_look
from twinset.cards.plots import histograms
from twinset.cards.summary import IndexSummary
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.manifests.recipe import Recipe
from twinset.manifests.stage import Stage
from twinset.shards.metering import spent
from twinset.shards.read import finished, read_settings
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store


def describe(store: Store, summaries: Mapping[str, IndexSummary]) -> None:
    """Write all descriptions of finished subsets, whose indices are written; the same bytes for the same dataset.

    Of each subset of samples ``histograms.png``, ``croissant.json``, ``README.md`` and a contact sheet, of all these
    together ``look.html``; of a table only ``README.md``; of each also the pictures of its sources.

    Args:
        store: of the dataset.
        summaries: what the index of each subset counts, by name.
    """
    sampled = [subset for subset, summary in summaries.items() if _describe(store, subset, summary)]
    if sampled:
        write_look(store, sampled)


def _describe(store: Store, subset: str, summary: IndexSummary) -> bool:
    """Describe one subset; returns whether it has samples."""
    stage = planned_stage(store, subset)
    recipe, settings = read_settings(store, subset)
    kind, numbers = CARD_KINDS.get(settings.source.makes), None
    index = layout.meta(subset, "index.parquet")
    files = digest(store.sha256(index))
    if kind is not None:
        numbers = kind.statistics(store, subset)
        store.write(
            layout.meta(subset, "histograms.png"), histograms(kind.panels(numbers, recipe.origin(stage.name).group))
        )
        files = digest(_write_croissant(store, stage, recipe, summary))  # holds the digests of stage, index and tars
    text = card(stage, recipe, summary, numbers, _made(store, subset, recipe, stage.name), files)
    store.write(f"{subset}/README.md", text.encode("utf-8", "replace"))
    return kind is not None


def _write_croissant(store: Store, stage: Stage, recipe: Recipe, summary: IndexSummary) -> dict[str, Any]:
    subset = stage.name
    tars = {
        layout.tar_name(split, number): (sha256, size)
        for number, split, sha256, size in finished(store, subset).columns("split", "tar_sha256", "tar_size")
        if size
    }
    source, settings = recipe.origin(stage.name), recipe[stage.name]
    metadata = croissant(stage, source, settings, summary, store.sha256(layout.meta(subset, "index.parquet")), tars)
    marker = marker_folder(stage, tars)
    for name in store.names(f"{subset}/{layout.META}"):
        if name.startswith(MARKER) and name != marker:
            store.remove_folder(layout.meta(subset, name))
    if tars:
        store.write(layout.meta(subset, f"{marker}/README"), b"Addresses in croissant.json lead through this folder.\n")
    text = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    store.write(layout.meta(subset, "croissant.json"), text.encode("utf-8"))
    return metadata


def _made(store: Store, subset: str, recipe: Recipe, name: str) -> str:
    """How a subset was made: what its source and filters say, after those of the stages that it was planned from.

    Their pictures are written beside the subset's own.
    """
    texts = []
    for one, settings in recipe.only([name]).all.items():
        source = settings.source
        reports = {file: _report(store, recipe.home(one), file) for file in source.reports}
        found = {file: content for file, content in reports.items() if content is not None}
        text = source.how_made(found).strip()
        for file, panels in source.panels(found).items():
            own = file if one == name else f"{one}-{file}"  # two stages of one kind have pictures of one name
            text = text.replace(f"({layout.META}/{file})", f"({layout.META}/{own})")
            store.write(layout.meta(subset, own), histograms(panels))
        if source.metered and (tally := spent(store, recipe.home(one))).answers:
            cost = source.cost(tally)
            text += f"\n\nLanguage models: {tally}{'' if cost is None else f', cost {cost:,.2f}'}."
        text = "\n\n".join(part for part in (text.strip(), *(judge.how_judged() for judge in settings.filters)) if part)
        if text:
            texts.append(text if one == name else f"Stage `{one}`, which it was planned from: {text}")
    return "\n\n".join(texts)


def _report(store: Store, subset: str, name: str) -> Any:
    path = layout.meta(subset, name)
    try:
        return json.loads(store.read(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{store.root}/{path}: not JSON ({error}); remove it, and the card will do without") from error
