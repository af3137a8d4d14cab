"""Which shards the descriptions of a subset are of, and the sha256 of what lies beside its tars."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from twinset.cards.kinds import CARD_KINDS
from twinset.cards.lineage import citations_of
from twinset.cards.rebuilding import OF_THE_WHOLE
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.recipe import Recipe
from twinset.shards.records import read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.index import receipts_digest
from twinset.stages.plan import DESCRIBED
from twinset.stages.status import StageState

#: What builds write there. Other names in the record lead elsewhere, and other files there are not the build's.
_NAME = re.compile(r"(log/)?[A-Za-z0-9][A-Za-z0-9_-]{0,80}(\.[a-z0-9]{1,10}){1,2}")
DESCRIPTION = 16  # raised when what `cards` writes changes


def is_described(store: Store, published: Mapping[str, StageState], recipe: Recipe) -> bool:
    """Whether what lies beside the tars was written for these very shards, in today's words, and is still there."""
    shown = _digest(published)
    pictured = any(state.stage.facts["makes"] in CARD_KINDS for state in published.values())
    if published and None in (store.size("README.md"), *([store.size("look.html")] if pictured else ())):
        return False
    for home, state in published.items():
        record, beside = _read(store, home), _beside(store, home)
        if not _fits(store, home, state, recipe, record, beside):
            return False
        if record["look"] != shown or sorted(record["files"]) != beside:
            return False
    return True


def has_card(store: Store, home: str, state: StageState, recipe: Recipe) -> bool:
    """Whether a subset's own description is of its shards, in today's words, and still there."""
    return _fits(store, home, state, recipe, _read(store, home), _beside(store, home))


def _fits(
    store: Store, home: str, state: StageState, recipe: Recipe, record: Mapping[str, Any], beside: list[str]
) -> bool:
    if home in recipe.subsets and record["words"] != _words(recipe, home):
        return False
    whole = record["digest"] == _digest({home: state}) and all(name in beside for name in record["files"])
    return whole and bool(store.size(f"{home}/README.md"))


def keep_description(
    store: Store, home: str, state: StageState, recipe: Recipe, shown: Mapping[str, StageState]
) -> None:
    """Record that the files beside the tars of a subset describe its shards.

    shown: the subsets that the page shows which was written with its contact sheet; none before.
    """
    index = read_index_record(store, home)
    vouched = {} if index is None else index.files
    paths = {name: layout.meta(home, name) for name in _beside(store, home)}
    record = {
        "digest": _digest({home: state}),
        "look": _digest(shown),
        # Those of a subset of another build stay as they were.
        "words": _words(recipe, home) if home in recipe.subsets else _read(store, home)["words"],
        "files": {name: "" if name in vouched else store.sha256(path)[0] for name, path in paths.items()},
    }
    store.write(layout.meta(home, DESCRIBED), canonical_json(record) + b"\n")


def changed_descriptions(store: Store, home: str) -> Iterator[str]:
    """Paths of files beside the tars that are not those the build left; the card is a person's to edit."""
    for name, sha256 in _read(store, home)["files"].items():
        path = layout.meta(home, name)
        if sha256 and (store.size(path) is None or store.sha256(path)[0] != sha256):
            yield path


def _digest(published: Mapping[str, StageState]) -> str:
    subsets = {home: [state.stage.content, receipts_digest(state.done)] for home, state in sorted(published.items())}
    return digest([DESCRIPTION, subsets])


def _words(recipe: Recipe, home: str) -> str:
    """Digest of what the sources and filters of a subset and of its earlier stages say of themselves."""
    whole = recipe.model_dump(mode="json", include=OF_THE_WHOLE)
    paper = recipe.paper(home)
    names, said = [home], list[Any]([citations_of(recipe, home), whole])
    said.append([paper.title, paper.address] if paper else [])
    for name in names:
        names += [one for one in recipe.reads(name) if one in recipe.all and one not in names]
        source, filters = recipe[name].source, recipe[name].filters
        said.append([source.introduction(), source.how_made({}), source.notes(), dict(source.scores_meant)])
        said.append(
            [dict(source.meanings), *([one.how_judged(), dict(one.meanings), dict(one.scored)] for one in filters)]
        )
    return digest(said)


def _beside(store: Store, home: str) -> list[str]:
    """Names in ``_meta`` of the recipe and what describes a subset, but for contact sheets that somebody asked for."""
    listing = store.listing(f"{home}/{layout.META}")
    beside = [name for name in sorted(listing) if _NAME.fullmatch(name) and not name.startswith("look-")]
    return sorted([*beside, *([] if store.size(layout.recipe(home)) is None else [layout.RECIPE])])


def _read(store: Store, home: str) -> dict[str, Any]:
    """Digests of shards, page and words that were described, sha256 of files by name; nothing of a damaged record."""
    try:
        record = json.loads(store.read(layout.meta(home, DESCRIBED)))
        files = {str(name): str(sha256) for name, sha256 in record["files"].items()}
        if not all(map(_NAME.fullmatch, files)):
            raise ValueError("a name that leads elsewhere")
        return {**{name: str(record[name]) for name in ("digest", "look", "words")}, "files": files}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"digest": "", "look": "", "words": "", "files": {}}
