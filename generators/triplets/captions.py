"""The scene graphs that triplets are mined from: a folder that ``twinset parse`` wrote, or one made before the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generators.scene_graphs.caption_sources import caption_sources
from generators.scene_graphs.parse import Told, parse_captions
from generators.scene_graphs.pipelines import find_pipeline
from generators.scene_graphs.record import BEGUN, INDEX, Index
from generators.triplets.graphs import Relations, load_relations
from generators.triplets.ratings import load_ratings, with_plurals
from manifests.errors import WrongUse
from manifests.genecis_settings import Triplets
from manifests.receipt import parsed
from shards.storage.store import Store


class CaptionGraphs:
    """The relations of the captions of a subset, read once."""

    def __init__(self, name: str, source: Triplets) -> None:
        self._key = f"subsets.{name}.source.captions"
        self._source = source
        self._root = parsed_folder(source.captions)
        self._relations: Relations | None = None

    def make(self, root: str, workers: int, told: Told | None) -> None:
        """Parse the captions below a folder or URL, or go on with it; nothing to do where they are parsed already."""
        if parsed_folder(self._source.captions) is None:
            parse_captions(self._source.captions, root, self._source.pipeline, workers, told=told)
            self._root, self._relations = root, None

    def digest(self) -> str:
        """Of the relations, as their index says it. Raises `WrongUse` as `relations` does."""
        store = Store(self._found())
        index = parsed(Index, store.read(INDEX)) if store.size(INDEX) is not None else None
        return index.digest if index is not None else self.relations().digest

    def relations(self) -> Relations:
        """The relations; raises `WrongUse` when nothing has been parsed, and as `load_relations` does."""
        root = self._found()
        if self._relations is None:
            self._relations = load_relations(root)
        return self._relations

    def _found(self) -> str:
        if self._root is None:
            raise WrongUse(
                f"{self._key}: triplets are mined from the scene graphs of these captions; give --out OUT to have them "
                f"made there, or run twinset parse {' '.join(map(str, self._source.captions))} --to DIR and set "
                f"{self._key}=DIR"
            )
        return self._root


def parsed_folder(captions: Sequence[Path]) -> str | None:
    """The folder of `twinset parse` that stands for the captions; None where they are files and folders of captions."""
    if len(captions) == 1 and any((captions[0] / file).is_file() for file in (INDEX, BEGUN)):
        return str(captions[0])
    return None


def check_captions(source: Triplets) -> None:
    """Raise `WrongUse` when captions that are not parsed yet cannot be, before any work."""
    if parsed_folder(source.captions) is not None:
        return
    for path in source.captions:
        if parsed_folder([path]) is not None:
            raise WrongUse(f"{path} is parsed already; name it alone, or parse all captions into one folder")
    caption_sources(source.captions)
    find_pipeline(source.pipeline)


def check_ratings(source: Triplets) -> None:
    """Raise `WrongUse` when the ratings are of another shape, or what makes plurals is not installed."""
    load_ratings(source.concreteness, "strict")
    with_plurals({})
