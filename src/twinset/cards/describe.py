"""What goes beside the tars of a finished dataset: card, Croissant metadata, pictures."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import yaml

from twinset.cards import lineage, terms
from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.kinds.statistics import records_of, score_spreads, statistics
from twinset.cards.lineage import Step, counted, earlier_stages, meanings_of, reports_of
from twinset.cards.plots import histograms
from twinset.cards.rebuilding import Rebuilding, rebuilding, recipe_of
from twinset.cards.rendering import render
from twinset.cards.words_alone import ABSENT, told_by_words
from twinset.contracts.canonical import digest
from twinset.contracts.doors import BESIDE
from twinset.contracts.kinds import KINDS
from twinset.contracts.recipe import Recipe
from twinset.contracts.references import key_of
from twinset.contracts.stage import Stage
from twinset.generators.markdown import card_block
from twinset.generators.words_alone.guesses import LEAST_GROUPS
from twinset.generators.words_alone.probe import LEAST
from twinset.models.engines import metered_engine
from twinset.shards.metering import spent
from twinset.shards.read import finished, read_settings, term_counts
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def describe(store: Store, subset: str, summary: IndexSummary) -> None:
    """Write the description of a finished subset, whose index is written; the same bytes for the same dataset.

    Of samples ``histograms.png``, ``croissant.json`` and ``README.md``, of a table ``README.md``; pictures of sources.
    """
    stage = planned_stage(store, subset)
    recipe, settings = read_settings(store, subset)
    source, kind = recipe.made_in(stage.name).source, CARD_KINDS.get(settings.source.makes)
    contents: dict[str, Any] = {"earlier": earlier_stages(store, recipe, stage.name)}
    if kind is not None:
        records = records_of(store, subset, kind.sample)
        numbers = contents["numbers"] = statistics(store, subset, kind, records)
        panels = {title.format(group=source.group): numbers[name] for title, name in kind.panels.items()}
        store.write(layout.meta(subset, "histograms.png"), histograms(panels))
        parts = (source, settings.source, *settings.filters)
        meanings = {name: meaning for part in parts for name, meaning in part.scored.items()}
        instead = {name: value for part in parts for name, value in part.unmeasured.items()}
        contents["scores"] = score_spreads(records, meanings, instead)
        _write_croissant(store, stage, recipe, summary)
    if summary.kept and len(terms.by_credit(summary.terms)) > terms.SHOWN:
        store.write(layout.meta(subset, terms.CREDITS), terms.credits_file(summary.terms))
    else:
        store.remove(layout.meta(subset, terms.CREDITS))
    contents["made"], contents["words"] = _made(store, subset, recipe, stage.name), told_by_words(store, subset)
    planner, reports = settings.source, reports_of(store, subset, settings.source)
    contents["chosen"] = card_block(planner, "left_out", reports).strip()
    again = rebuilding(store, recipe.only([stage.name]), [*(step.stage for step in contents["earlier"]), stage])
    text = card(stage, recipe, summary, front_matter(store, subset), again, **contents)
    store.write(f"{subset}/README.md", text.encode("utf-8", "replace"))


def card(
    stage: Stage, recipe: Recipe, summary: IndexSummary, front: Mapping[str, Any], again: Rebuilding, **content: Any
) -> str:
    """Markdown with YAML front matter; the same text for the same dataset.

    Args:
        front: as `front_matter`.
        **content: ``numbers``, as `statistics`; ``scores``, as `score_spreads`; ``made``, how it was made, in Markdown;
            ``chosen``, what its source left out before it planned; ``words``, as `told_by_words`; ``earlier``, as
            `earlier_stages`.
    """
    source = recipe.made_in(stage.name).source
    kind = CARD_KINDS.get(source.makes)
    meanings = meanings_of(recipe, stage.name)
    steps = [*content.get("earlier", ()), Step(stage, summary.planned, summary.kept, summary.by_filter, meanings)]
    made_in = recipe.only([stage.name]).all.values()
    return render(
        f"{source.makes}.md.j2",
        **{"numbers": None, "scores": (), "made": "", "chosen": "", "words": None, **content},
        stage=stage,
        source=source,
        about=recipe,
        summary=summary,
        kind=kind,
        record=list(KINDS[source.makes].record.model_fields) if kind else [],
        noun=kind.noun if kind else "candidate",
        noted=[card_block(made, "notes") for made in (source, *(used.source for used in made_in))],
        steps=steps,
        reasons=sorted(set[tuple[str, str]]().union(*(step.reasons for step in steps))),
        again=again,
        beside=BESIDE,
        version=version("twinset"),
        python=".".join(platform.python_version_tuple()[:2]),
        lineage=lineage,
        terms=terms,
        key_of=key_of,
        limits={"absent": ABSENT, "pairs": LEAST, "groups": LEAST_GROUPS},
        front=yaml.safe_dump(front, sort_keys=False),
        recipe=yaml.safe_dump(recipe_of(recipe, stage), sort_keys=False),
    )


def front_matter(store: Store, subset: str) -> dict[str, Any]:
    """The metadata of a finished subset's card, as the Hub reads them."""
    stage, counts = planned_stage(store, subset), term_counts(store, subset)
    recipe, settings = read_settings(store, subset)
    kind, kept = CARD_KINDS.get(recipe.made_in(stage.name).source.makes), kept_by_split(store, subset)
    tars = [sha256 for _, sha256, size in finished(store, subset).columns("tar_sha256", "tar_size") if size]
    front: dict[str, Any] = {
        "pretty_name": stage.name,
        **terms.hub_licence(counts),
        "language": [settings.language],
        "task_categories": list(kind.tasks) if kind else [],
        "tags": [*(kind.tags if kind else ()), *(["webdataset"] if tars else [])],
        "size_categories": [size_category(sum(kept.values()))],
    }
    if kept:  # a configuration without files could not be loaded
        files = [{"split": split, "path": f"{split}/*.tar"} for split in kept]
        if not tars:
            files = [{"split": "".join(kept) if len(kept) == 1 else "index", "path": "_meta/index.parquet"}]
        # load_dataset keeps what it read under the folder's name and a hash of this configuration, in which tars are
        # a mere pattern: without the digest it would return one dataset for another, and the old one after a build.
        known = digest([stage.content, store.sha256(layout.meta(subset, "index.parquet")), tars])
        description = f"digest of the files, which tells caches versions apart: {known}"
        front["configs"] = [{"config_name": "default", "description": description, "data_files": files}]
    return front


def kept_by_split(store: Store, subset: str) -> dict[str, int]:
    """Samples, or rows of a table, by split."""
    return {row["split"]: row["count_all"] for row in counted(store, subset, "index.parquet", ["split"])}


def size_category(samples: int) -> str:
    """As Hugging Face names it."""
    return next((name for limit, name in SIZES if samples < limit), "1M<n<10M")


def _write_croissant(store: Store, stage: Stage, recipe: Recipe, summary: IndexSummary) -> None:
    """Write the metadata, with addresses relative to their folder; their record set reads the index."""
    tars = finished(store, stage.name).columns("split", "tar_sha256", "tar_size")
    text = render(
        "croissant.json.j2",
        stage=stage,
        about=recipe,
        kind=CARD_KINDS[stage.facts["makes"]],
        summary=summary,
        index=store.sha256(layout.meta(stage.name, "index.parquet")),
        tars={layout.tar_name(split, number): file for number, split, *file in tars if file[1]},
        lineage=lineage,
        terms=terms,
    )
    written = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    store.write(layout.meta(stage.name, "croissant.json"), f"{written}\n".encode())


def _made(store: Store, subset: str, recipe: Recipe, name: str) -> str:
    """What the sources and filters of a subset and its stages say of how it was made; writes their pictures, too."""
    texts = list[str]()
    for member, settings in recipe.only([name]).all.items():
        source = settings.source
        reports = reports_of(store, recipe.home(member), source)
        # Its own introduction stands at the card's top.
        introduction = card_block(source, "introduction").strip() if member != name else ""
        text = "\n\n".join((introduction, card_block(source, "how_made", reports).strip()))
        for file, panels in source.panels(reports).items():
            own = file if member == name else f"{member}-{file}"  # two stages of one kind have pictures of one name
            text = text.replace(f"({layout.META}/{file})", f"({layout.META}/{own})")
            store.write(layout.meta(subset, own), histograms(panels))
        if (engine := metered_engine(source)) and (tally := spent(store, recipe.home(member))).answers:
            cost = engine.cost(tally)
            text += f"\n\nLanguage models: {tally}{'' if cost is None else f', cost {cost:,.2f}'}."
        text = "\n\n".join(part for part in (text.strip(), *(judge.how_judged() for judge in settings.filters)) if part)
        if text:
            headed = f"**Stage `{member}`.**\n\n" if member != name else "**This subset.**\n\n" if texts else ""
            texts.append(f"{headed}{text}")
    return "\n\n".join(texts)
