"""What a card says of all stages that a subset comes from: sources, citations, and what each left out."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from twinset.contracts.recipe import Recipe, Subset
from twinset.contracts.references import Reference, cited_entry, entries_in
from twinset.contracts.source import PlacedSettings, SourceSettings
from twinset.contracts.stage import Stage
from twinset.shards.plan import read_parquet
from twinset.shards.read import opened_index
from twinset.shards.records import planned_stage, read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

#: What the engine itself rejects samples of any source for.
ENGINE_REASONS = {
    "duplicate": "another sample has the same images and captions; that of the smallest source identity stays",
    "too-large": "a side of an image is longer than its file format holds",
}

#: What a cited work was to a dataset. Of the form of its files nothing is owed.
PROCEDURE, DATA, FORM, METHOD = "procedure followed", "data", "form of the data", "method or model used"


@dataclass(frozen=True, slots=True)
class Step:
    """The funnel of a subset, or of a stage that it comes from.

    rejected: candidates by filter (``generator`` where nothing was made), then reason. meanings: of the reasons.
    """

    stage: Stage
    planned: int
    kept: int
    rejected: Mapping[str, Mapping[str, int]]
    meanings: Mapping[str, str]

    @property
    def reasons(self) -> set[tuple[str, str]]:
        """Why anything was left out or rejected, each with its meaning."""
        counted = [*self.stage.excluded, *(reason for reasons in self.rejected.values() for reason in reasons)]
        return {(reason, self.meanings[reason]) for reason in counted if reason in self.meanings}


def meanings_of(recipe: Recipe, name: str) -> dict[str, str]:
    """What the reasons mean that samples of a stage are rejected, or records left out, for."""
    subset = recipe[name]
    meanings = {**ENGINE_REASONS, **recipe.made_in(name).source.meanings, **subset.source.meanings}
    for chosen in subset.filters:
        meanings |= chosen.meanings
    return meanings


def earlier_stages(store: Store, recipe: Recipe, name: str) -> list[Step]:
    """The stages of the recipe that a subset comes from, each after those that it reads."""
    steps = []
    for earlier in recipe.only([name]).all:
        home = recipe.home(earlier)
        record = read_index_record(store, home) if earlier != name else None
        if record is not None:
            stage = planned_stage(store, home)
            steps.append(Step(stage, stage.planned, record.kept, rejections(store, home), meanings_of(recipe, earlier)))
    return steps


def rejections(store: Store, home: str) -> dict[str, dict[str, int]]:
    """How many candidates of an indexed stage were rejected, by filter and reason, in order."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in counted(store, home, "rejections.parquet", ["filter", "reason"]):
        counts[row["filter"]][row["reason"]] = row["count_all"]
    return dict(counts)


def counted(store: Store, home: str, file: str, columns: list[str]) -> list[dict[str, Any]]:
    """How often each combination of words occurs in columns of a stage's index or rejections, in order, as
    ``count_all``; raises `DamagedIndex`.
    """
    with opened_index(store, home, columns, file) as stream:
        table = read_parquet(stream, columns)
    groups = table.group_by(columns, use_threads=False).aggregate([([], "count_all")])
    return sorted(groups.to_pylist(), key=lambda row: [row[name] for name in columns])


def made_from(recipe: Recipe, name: str) -> list[Reference]:
    """The data sets that a subset comes from: those of its stages that read no other one of the recipe.

    Each is a published data set where ``cites`` say so, else files in the form of one.
    """
    origins = []
    for used in (subset for stage, subset in recipe.only([name]).all.items() if not recipe.reads(stage)):
        form = used.source.reference
        if _role(used) == FORM and form.address:  # the works that describe the form are cited: the files follow them
            form = Reference(f"files in the file format of {form.title}", bibtex=form.bibtex)
        origins.append(form)
    return list(dict.fromkeys(origins))


def _role(used: Subset) -> str:
    """What the works that a stage's source cites were to it."""
    source, form = used.source, used.source.reference
    read = any(place.what in ("file", "folder", "any") for name, place, _ in source.places() if "." not in name)
    if source.synthetic or not read:
        return METHOD
    stated = form != type(source).reference or {*entries_in(form.bibtex)[:1]} <= {*_stated(used)}
    return DATA if stated else FORM


def _stated(used: Subset) -> list[str]:
    """BibTeX entries of the data that a recipe says a stage reads."""
    return [entry for cite in used.cites for entry in entries_in(cited_entry(cite))]


def described_origin(recipe: Recipe, name: str) -> str:
    """In words, such as ``made from Action Genome following EqBen``."""
    source, paper = recipe.made_in(name).source, recipe.paper(name)
    titles = " and ".join(origin.title for origin in made_from(recipe, name) if origin.title) or source.kind
    return f"{source.verb} {titles}{f' following {paper.title}' if paper else ''}"


def citations_of(recipe: Recipe, name: str) -> str:
    """BibTeX of all `works_cited` but those that only describe the form of its files."""
    works = works_cited(recipe, name)
    return "\n\n".join(entry for role, entries in works.items() if role != FORM for entry in entries)


def works_cited(recipe: Recipe, name: str) -> dict[str, list[str]]:
    """BibTeX entries of what a subset and its stages owe to others, by the first thing that each was to them."""
    stages = recipe.only([name]).all
    by_role: dict[str, list[str]] = {role: [] for role in (PROCEDURE, DATA, FORM, METHOD)}
    for member in (name, *stages):  # what the subset itself follows comes first
        paper = stages[member].paper
        by_role[PROCEDURE] += entries_in(paper.bibtex) if paper else []
        by_role[_role(stages[member])] += entries_in(stages[member].source.reference.bibtex)
        by_role[METHOD] += [entry for part in (stages[member].source, *stages[member].filters) for entry in cited(part)]
        by_role[DATA] += _stated(stages[member])
    seen = set[str]()
    for role, entries in by_role.items():
        by_role[role] = [entry for entry in dict.fromkeys(entries) if entry and entry not in seen]
        seen.update(by_role[role])
    return {role: entries for role, entries in by_role.items() if entries}


def cited(settings: PlacedSettings) -> Iterator[str]:
    """BibTeX entries of what a filter, and the settings within a source or filter, cite."""
    for _, part in settings.parts():
        if not isinstance(part, SourceSettings):
            yield from entries_in(part.reference.bibtex)


def reports_of(store: Store, home: str, source: SourceSettings) -> dict[str, Any]:
    """The JSON of those of a source's reports that lie beside the plan of its stage, by name."""
    places = {name: layout.meta(home, name) for name in source.reports}
    return {name: json.loads(store.read(place)) for name, place in places.items() if store.size(place) is not None}
