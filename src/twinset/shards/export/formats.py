"""Exports of a finished dataset to the file formats of others; the command line lists their names at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.licences.names import licence_named

if TYPE_CHECKING:
    from twinset.contracts.kinds.kind import SampleKind, Takes
    from twinset.shards.storage.store import Store


@dataclass(frozen=True, slots=True)
class Format:
    """takes: the kind of samples that it holds, or several. write: subsets of a store into a folder; returns how many
    samples.
    """

    takes: Takes
    write: Callable[[Store, Sequence[str], Path], int]

    @property
    def kinds(self) -> tuple[SampleKind, ...]:
        """All kinds that it holds."""
        from twinset.contracts.kinds.kind import kinds_of

        return kinds_of(self.takes)


KINDS = {
    "eqben": "twinset.shards.export.eqben:EQBEN_FORMAT",
    "openclip": "twinset.shards.export.openclip:OPENCLIP_FORMAT",
    "openclip-csv": "twinset.shards.export.openclip:OPENCLIP_CSV_FORMAT",
    "negclip": "twinset.shards.export.negclip:NEGCLIP_FORMAT",
    "llava": "twinset.shards.export.chats:LLAVA_FORMAT",
    "preferences": "twinset.shards.export.chats:PREFERENCES_FORMAT",
    "genecis": "twinset.shards.export.genecis:GENECIS_FORMAT",
    "genecis-training": "twinset.shards.export.genecis:GENECIS_TRAINING_FORMAT",
    "bivlc": "twinset.shards.export.generated_pairs:BIVLC_FORMAT",
    "trohn-img": "twinset.shards.export.generated_pairs:TROHN_IMG_FORMAT",
    "trohn": "twinset.shards.export.text_pairs:TROHN_FORMAT",
    "sugarcrepe": "twinset.shards.export.text_pairs:SUGARCREPE_FORMAT",
}
READERS = "webdataset or load_dataset, which read the tars and the index as they are"
EXPORTERS = Registry[Format]("export format", Format, __name__, "twinset.exporters", objects=True)


def export(store: Store, subsets: Sequence[str], format: str, to: Path, licences: Sequence[str] = ()) -> int:
    """Write the subsets into the folder ``to`` in the format of an exporter; returns the number of samples.

    licences: only samples all of whose licences are among these; all samples where it is empty.

    All is written into a sibling of ``to`` that takes its name at the end: there is a whole export or none. Raises
    WrongUse when the format is unknown or holds other kinds of samples, ``to`` exists and is not an empty folder, or
    there is nothing to export.
    """
    from twinset.contracts.kinds.kind import plural
    from twinset.shards.read import term_counts
    from twinset.shards.storage import layout
    from twinset.shards.storage.whole_file import new_folder

    chosen = EXPORTERS.find(format)
    if licences:
        with naming("--only-licence", ValueError):
            store = copy(store)
            store.licences = frozenset(map(licence_named, licences))
    for subset in subsets:
        if licences and store.size(layout.meta(subset, "index.parquet")) is None:
            raise WrongUse(f"{subset}: --only-licence reads its index, which is not there; finish its build")
        _refuse_others(store, subset, format)
    with new_folder(to, "--out") as unfinished:
        count = chosen.write(store, subsets, unfinished)
        if not count and store.licences is not None:
            found = {licence for one in subsets for licence, _ in term_counts(store, one)}
            raise WrongUse(
                f"{store.root}: no sample of {', '.join(subsets)} is under {', '.join(sorted(store.licences))} alone; "
                f"--only-licence takes all licences that one may have, of {'; '.join(sorted(found)) or 'none'}"
            )
        if not count:
            raise WrongUse(
                f"{store.root}: no finished shard of {', '.join(subsets) or 'a subset'} keeps {plural(chosen.takes)}; "
                f"twinset status {store.root} says what is still to be built, and what rejected the rest"
            )
    return count


def _refuse_others(store: Store, subset: str, format: str) -> None:
    from twinset.contracts.kinds.kind import plural
    from twinset.shards.records import read_stage

    stage = read_stage(store, subset)
    if stage is None:
        return
    makes, chosen = stage.facts["makes"], EXPORTERS.find(format)
    if makes not in (kind.name for kind in chosen.kinds):
        fitting = []
        for name in EXPORTERS.kinds():
            with suppress(WrongUse):  # a package that fails is not what is asked for
                fitting += [name] if makes in (kind.name for kind in EXPORTERS.find(name).kinds) else []
        instead = f"--format {', '.join(fitting)}" if fitting else READERS
        takes = plural(chosen.takes)
        raise WrongUse(
            f"{subset} holds {makes}s, and --format {format} takes {takes}; for {makes}s there is {instead}. Name "
            f"subsets of {takes} with --only"
        )
