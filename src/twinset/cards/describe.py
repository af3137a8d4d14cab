"""What goes beside the tars of a finished dataset: card, Croissant metadata, pictures."""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import yaml

from twinset.cards import terms
from twinset.cards.croissant import MARKER, croissant, marker_folder
from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.kind import IndexSummary, ScoreSpread, score_spreads
from twinset.cards.lineage import (
    FORM,
    Step,
    earlier_stages,
    held_by,
    made_from,
    meanings_of,
    notes_of,
    reports_of,
    scores_meant,
    scores_unmeasured,
    uncited,
    works_cited,
)
from twinset.cards.page import write_look
from twinset.cards.plots import histograms
from twinset.cards.rebuilding import Rebuilding, homepage, rebuilding, recipe_of
from twinset.cards.rendering import render
from twinset.cards.words_alone import ABSENT, told_by_words
from twinset.contracts.canonical import digest
from twinset.contracts.kinds import KINDS
from twinset.contracts.recipe import Recipe
from twinset.contracts.references import key_of
from twinset.contracts.stage import Stage
from twinset.generators.words_alone.guesses import LEAST_GROUPS
from twinset.generators.words_alone.probe import LEAST, Probed
from twinset.models.engines import metered_engine
from twinset.shards.metering import spent
from twinset.shards.read import finished, read_settings
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(
    stage: Stage,
    recipe: Recipe,
    summary: IndexSummary,
    numbers: Any,
    made: str = "",
    chosen: str = "",
    files: str = "",
    words: Mapping[str, Probed] | None = None,
    earlier: Sequence[Step] = (),
    scores: Sequence[ScoreSpread] = (),
    works: Mapping[str, list[str]] | None = None,
    again: Rebuilding | None = None,
) -> str:
    """Markdown with YAML front matter; the same text for the same dataset.

    Args:
        stage: record of the subset.
        recipe: that it was planned from.
        summary: its funnel.
        numbers: its statistics, of its kind's class; of no use for a table.
        made: how it was made, in Markdown.
        chosen: what its source left out before it planned, in a phrase.
        files: a digest of what is to be loaded.
        words: what words alone tell of pairs of captions, by kind; None where it was not measured.
        earlier: of the stages that it comes from.
        scores: of its samples.
        works: what is to be cited, as `lineage.works_cited`.
        again: what decides its bytes besides recipe and inputs.
    """
    subset = recipe[stage.name]
    source = recipe.origin(stage.name)
    meanings = meanings_of(recipe, stage.name)
    own = Step(stage, held_by(subset.source), summary.planned, summary.kept, summary.by_filter, meanings)
    steps = [*earlier, own]
    return render(
        f"{source.makes}.md.j2",
        stage=stage,
        source=source,
        paper=recipe.paper(stage.name),
        kind=CARD_KINDS.get(source.makes),
        record=list(KINDS[source.makes].record.model_fields) if source.makes in KINDS else [],
        noun="candidate" if source.makes == "table" else source.makes.replace("-", " "),
        encoding=recipe.made_in(stage.name).encoding,
        summary=summary,
        numbers=numbers,
        made=made,
        chosen=chosen,
        words=words,
        absent=ABSENT,
        least_pairs=LEAST,
        least_groups=LEAST_GROUPS,
        meanings=meanings,
        steps=steps,
        reasons_said=_reasons_said(steps),
        notes=notes_of(recipe, stage.name),
        scores=scores,
        references=made_from(recipe, stage.name),
        works={role: [key_of(entry) for entry in entries] for role, entries in (works or {}).items()},
        citations="\n\n".join(entry for entries in (works or {}).values() for entry in entries),
        about=recipe,
        uncited=uncited(recipe, stage.name),
        again=again or Rebuilding(),
        homepage=homepage,
        version=version("twinset"),
        python=".".join(platform.python_version_tuple()[:2]),
        terms=terms,
        front=_front_matter(stage, source.makes, subset.language, summary, files),
        recipe=yaml.safe_dump(recipe_of(recipe, stage), sort_keys=False),
    )


def _reasons_said(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """What the reasons mean for which stages left anything out or rejected it; two stages may mean two things."""
    return sorted(
        {
            (reason, one.meanings[reason])
            for one in steps
            for reason in (*one.stage.excluded, *(reason for reasons in one.rejected.values() for reason in reasons))
            if reason in one.meanings
        }
    )


def _front_matter(stage: Stage, makes: str, language: str, summary: IndexSummary, digest: str) -> str:
    kind = CARD_KINDS.get(makes)
    front: dict[str, Any] = {
        "pretty_name": stage.name,
        **terms.hub_licence(summary.terms),
        "language": [language],
        "task_categories": list(kind.tasks) if kind else [],
        "tags": [*(kind.tags if kind else ()), *(["webdataset"] if summary.tars else [])],
        "size_categories": [next((name for limit, name in SIZES if summary.kept < limit), "1M<n<10M")],
    }
    if summary.kept:  # a configuration without files could not be loaded
        files = [{"split": split, "path": f"{split}/*.tar"} for split in summary.kept_by_split]
        if not summary.tars:
            splits = list(summary.kept_by_split)
            files = [{"split": splits[0] if len(splits) == 1 else "index", "path": "_meta/index.parquet"}]
        # load_dataset keeps what it read under the folder's name and a hash of this configuration, in which tars are
        # a mere pattern: without the digest it would return one dataset for another, and the old one after a build.
        said = f"digest of the files, which tells caches versions apart: {digest}"
        front["configs"] = [{"config_name": "default", "description": said, "data_files": files}]
    return yaml.safe_dump(front, sort_keys=False)


def describe(store: Store, subset: str, summary: IndexSummary) -> None:
    """Write the description of a finished subset, whose index is written; the same bytes for the same dataset.

    Of a subset of samples ``histograms.png``, ``croissant.json`` and ``README.md``, of a table only ``README.md``; of
    both also the pictures of their sources.

    Args:
        store: of the dataset.
        subset: its name.
        summary: what its index counts.
    """
    stage = planned_stage(store, subset)
    recipe, settings = read_settings(store, subset)
    kind, numbers = CARD_KINDS.get(settings.source.makes), None
    works = works_cited(recipe, stage.name)
    scores: Sequence[ScoreSpread] = ()
    index = layout.meta(subset, "index.parquet")
    files = digest(store.sha256(index))
    if kind is not None:
        numbers = kind.statistics(store, subset)
        store.write(
            layout.meta(subset, "histograms.png"), histograms(kind.panels(numbers, recipe.origin(stage.name).group))
        )
        origin = recipe.origin(stage.name)
        said = scores_meant(settings, origin), scores_unmeasured(settings, origin)
        scores = score_spreads(store, subset, kind.sample, *said)
        # It holds the digests of stage, index and tars.
        files = digest(_write_croissant(store, stage, recipe, summary, works))
    if summary.kept and len(terms.by_credit(summary.terms)) > terms.SHOWN:
        store.write(layout.meta(subset, terms.CREDITS), terms.credits_file(summary.terms))
    else:
        store.remove(layout.meta(subset, terms.CREDITS))
    made, words = _made(store, subset, recipe, stage.name), told_by_words(store, subset)
    earlier = earlier_stages(store, recipe, stage.name)
    again = rebuilding(store, recipe.only([stage.name]), [*(one.stage for one in earlier), stage])
    source = recipe[stage.name].source
    reports = reports_of(store, subset, source)
    chosen = source.said("left_out", reports).strip()
    text = card(stage, recipe, summary, numbers, made, chosen, files, words, earlier, scores, works, again)
    store.write(f"{subset}/README.md", text.encode("utf-8", "replace"))


def show(store: Store, subsets: Iterable[str]) -> None:
    """Write a contact sheet of each subset of samples, and ``look.html`` of all."""
    if sampled := [one for one in subsets if planned_stage(store, one).facts["makes"] in CARD_KINDS]:
        write_look(store, sampled)


def _write_croissant(
    store: Store, stage: Stage, recipe: Recipe, summary: IndexSummary, works: Mapping[str, list[str]]
) -> dict[str, Any]:
    subset, owed = stage.name, (entries for role, entries in works.items() if role != FORM)
    citations = "\n\n".join(entry for entries in owed for entry in entries)
    tars = {
        layout.tar_name(split, number): (sha256, size)
        for number, split, sha256, size in finished(store, subset).columns("split", "tar_sha256", "tar_size")
        if size
    }
    metadata = croissant(stage, recipe, summary, store.sha256(layout.meta(subset, "index.parquet")), tars, citations)
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
    texts = list[str]()
    for one, settings in recipe.only([name]).all.items():
        source = settings.source
        found = reports_of(store, recipe.home(one), source)
        # Its own introduction stands at the card's top.
        introduction = source.said("introduction").strip() if one != name else ""
        text = "\n\n".join((introduction, source.said("how_made", found).strip()))
        for file, panels in source.panels(found).items():
            own = file if one == name else f"{one}-{file}"  # two stages of one kind have pictures of one name
            text = text.replace(f"({layout.META}/{file})", f"({layout.META}/{own})")
            store.write(layout.meta(subset, own), histograms(panels))
        if (engine := metered_engine(source)) and (tally := spent(store, recipe.home(one))).answers:
            cost = engine.cost(tally)
            text += f"\n\nLanguage models: {tally}{'' if cost is None else f', cost {cost:,.2f}'}."
        text = "\n\n".join(part for part in (text.strip(), *(judge.how_judged() for judge in settings.filters)) if part)
        if text:
            headed = f"**Stage `{one}`.**\n\n" if one != name else "**This subset.**\n\n" if texts else ""
            texts.append(f"{headed}{text}")
    return "\n\n".join(texts)
