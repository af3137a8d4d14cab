"""Pairs of captions that twinset made, of any stage: a caption and its negative, without images, for blind probes."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import Item, Reader
from twinset.evaluation.examples import Matching
from twinset.generators.negative_captions.kinds import kind_name
from twinset.shards.read import index_batches, index_columns
from twinset.shards.records import stages_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

_SIDES = (("caption", "negative_caption"), ("caption0", "caption1"))
_KIND = ("type", "subtype")


class CaptionTables(Reader):
    """The finished stages below an OUT whose index has two captions a row: tables of negatives, pairs, text pairs."""

    name, title = "caption-pairs", "Pairs of captions made with twinset"
    citation = "https://arxiv.org/abs/2306.14610"
    expects = "SUBSET/_meta/index.parquet or _stages/STAGE/_meta/index.parquet with two captions a row"
    obtained = "`twinset build RECIPE --out DIR` makes one"

    def __init__(self, data: Path | str, subsets: Sequence[str] = ()) -> None:
        self.store = Store(str(data))
        super().__init__(data, subsets)

    @cached_property
    def _homes(self) -> Mapping[str, str]:
        """Homes of the stages that are finished and have pairs, by name."""
        made = [home for home in stages_in(self.store) if self.store.size(_index(home)) is not None]
        return {home.rpartition("/")[2]: home for home in made if _sides(self.store, home)}

    def found(self) -> Sequence[str]:
        return list(self._homes)

    def digest(self) -> str:
        """sha256 over the indices."""
        return self.digest_of({name: self.store.sha256(_index(self._homes[name])) for name in self.subsets})

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`. Raises `WrongUse` where more than captions is asked for."""
        if not self.captions_only:
            raise WrongUse(f"{self.place}: {self.title} have no images; ask `twinset eval blind {self.name}=DIR`")
        home = self._homes[subset]
        sides = _sides(self.store, home)
        kinds = _KIND if set(index_columns(self.store, home)).issuperset(_KIND) else ()
        for batch in index_batches(self.store, home, ("key", "group", *sides, *kinds)):
            for row in batch.to_pylist():
                yield Matching(
                    key=f"{subset} {row['key']}",
                    subset=subset,
                    group=row["group"],
                    images=(),
                    captions=(row[sides[0]], row[sides[1]]),
                    category=kind_name(row["type"], row["subtype"]) if kinds else "",
                )

    def check_place(self) -> None:
        if not stages_in(self.store):
            raise self.refused("holds no stage")


def _index(home: str) -> str:
    return layout.meta(home, "index.parquet")


def _sides(store: Store, home: str) -> tuple[str, ...]:
    columns = set(index_columns(store, home))
    return next((two for two in _SIDES if columns.issuperset(two)), ())
