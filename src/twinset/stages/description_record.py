"""Which shards the descriptions of a subset are of, and the sha256 of what lies beside its tars."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from twinset.cards.lineage import citations_of
from twinset.cards.rebuilding import OF_THE_WHOLE
from twinset.contracts.canonical import digest
from twinset.contracts.receipt import Model, Word, parsed
from twinset.contracts.recipe import Recipe
from twinset.shards.records import read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.index import receipts_digest
from twinset.stages.plan import DESCRIBED
from twinset.stages.status import StageState

#: What builds write there. Other names in the record lead elsewhere, and other files there are not the build's.
_NAME = r"^(log/)?[A-Za-z0-9][A-Za-z0-9_-]{0,80}(\.[a-z0-9]{1,10}){1,2}$"
DESCRIPTION = 16  # raised when what `cards` writes changes


class _Description(Model):
    """What lies beside the tars of a subset.

    shards, words: digests of the shards that it describes, and of what recipe and parts say. page: digest of all
    subsets on the page that was written with it. files: sha256 by name.
    """

    shards: Word = ""
    words: Word = ""
    page: Word = ""
    files: dict[Annotated[str, Field(pattern=_NAME)], Word] = Field(default={})


def is_described(store: Store, published: Mapping[str, StageState], recipe: Recipe) -> bool:
    """Whether what lies beside the tars was written for these very shards, in today's words, and is still there."""
    if published and store.size("README.md") is None:
        return False
    page = _digest(published)
    return all(has_card(store, home, state, recipe, page) for home, state in published.items())


def has_card(store: Store, home: str, state: StageState, recipe: Recipe, page: str | None = None) -> bool:
    """As `is_described`, of a subset's own description. page: digest of what the page with it shows; None for any."""
    record = _read(store, home)
    if record.shards != _digest({home: state}) or page not in (None, record.page):
        return False
    current = home not in recipe.subsets or record.words == _words(recipe, home)
    return current and record.files.keys() <= {*_beside(store, home)} and bool(store.size(f"{home}/README.md"))


def keep_description(
    store: Store, home: str, state: StageState, recipe: Recipe, shown: Mapping[str, StageState]
) -> None:
    """Record that the files beside the tars of a subset describe its shards. shown: on the page, none before it."""
    index = read_index_record(store, home)
    vouched = () if index is None else index.files
    names = [name for name in _beside(store, home) if name not in vouched]
    record = _Description(
        shards=_digest({home: state}),
        # The words of a subset of another build stay as they were.
        words=_words(recipe, home) if home in recipe.subsets else _read(store, home).words,
        page=_digest(shown),
        files={name: store.sha256(layout.meta(home, name))[0] for name in names},
    )
    store.write(layout.meta(home, DESCRIBED), record.to_bytes())


def changed_descriptions(store: Store, home: str) -> list[str]:
    """Paths of files beside the tars that are not those the build left; the card is a person's to edit."""
    files = {layout.meta(home, name): sha256 for name, sha256 in _read(store, home).files.items()}
    return [path for path, sha256 in files.items() if store.size(path) is None or store.sha256(path)[0] != sha256]


def _digest(published: Mapping[str, StageState]) -> str:
    subsets = {home: [state.stage.content, receipts_digest(state.done)] for home, state in sorted(published.items())}
    return digest([DESCRIPTION, subsets])


def _words(recipe: Recipe, home: str) -> str:
    """Digest of what the recipe of a subset says, and the sources and filters of it and of its earlier stages."""
    words = list[Any]([citations_of(recipe, home), recipe.model_dump(mode="json", include=OF_THE_WHOLE)])
    for stage in recipe.only([home]).all.values():
        source = stage.source
        words += [*map(source.said, ("introduction", "how_made", "notes")), dict(source.scored)]
        words += [dict(part.meanings) for part in (source, *stage.filters)]
        words += [[judge.how_judged(), dict(judge.scored)] for judge in stage.filters]
    return digest(words)


def _beside(store: Store, home: str) -> list[str]:
    """Names in ``_meta`` of the recipe and what describes a subset, but for contact sheets that somebody asked for."""
    names = [name for name in sorted(store.listing(f"{home}/{layout.META}")) if re.fullmatch(_NAME, name)]
    recipe = [] if store.size(layout.recipe(home)) is None else [layout.RECIPE]
    return [*recipe, *(name for name in names if not name.startswith("look-"))]


def _read(store: Store, home: str) -> _Description:
    """The record; an empty one where it is absent or damaged."""
    try:
        return parsed(_Description, store.read(layout.meta(home, DESCRIBED))) or _Description()
    except FileNotFoundError:
        return _Description()
