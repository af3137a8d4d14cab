"""Exports of a finished dataset to the file formats of others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinset.manifests.errors import WrongUse
from twinset.shards.export.eqben import export_eqben
from twinset.shards.export.genecis import export_genecis
from twinset.shards.export.genecis_training import export_training
from twinset.shards.export.generated_pairs import export_bivlc, export_trohn_img
from twinset.shards.export.openclip import export_openclip
from twinset.shards.export.text_pairs import export_sugarcrepe, export_trohn
from twinset.shards.kinds.kind import SampleKind
from twinset.shards.kinds.pair import PAIR
from twinset.shards.kinds.template import TEMPLATE
from twinset.shards.kinds.text_pair import TEXT_PAIR
from twinset.shards.kinds.triplet import TRIPLET
from twinset.shards.records import read_stage
from twinset.shards.storage.atomic_folder import folder_beside
from twinset.shards.storage.store import Store


@dataclass(frozen=True, slots=True)
class Format:
    """takes: the kind of samples that it holds. write: subsets of a store into a folder; returns how many samples."""

    takes: SampleKind
    write: Callable[[Store, Sequence[str], Path], int]


FORMATS: Mapping[str, Format] = {
    "eqben": Format(PAIR, export_eqben),
    "openclip": Format(PAIR, export_openclip),
    "genecis": Format(TEMPLATE, export_genecis),
    "genecis-training": Format(TRIPLET, export_training),
    "bivlc": Format(PAIR, export_bivlc),
    "trohn-img": Format(PAIR, export_trohn_img),
    "trohn": Format(TEXT_PAIR, export_trohn),
    "sugarcrepe": Format(TEXT_PAIR, export_sugarcrepe),
}


def export(store: Store, subsets: Sequence[str], format: str, to: Path) -> int:
    """Write the subsets into the folder ``to`` in one of `FORMATS`; returns the number of samples.

    All is written into a sibling of ``to`` that takes its name at the end: there is a whole export or none. Raises
    WrongUse when the format is unknown or holds another kind of samples, ``to`` exists and is not an empty folder, or
    there is nothing to export.
    """
    if format not in FORMATS:
        raise WrongUse(f"--format {format!r}: choose one of {', '.join(FORMATS)}")
    chosen = FORMATS[format]
    for subset in subsets:
        _refuse_others(store, subset, format)
    to = Path(os.path.abspath(to))
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise WrongUse(f"{to}: exists and is not an empty folder; name another --to, or remove it")
    with folder_beside(to) as unfinished:
        count = chosen.write(store, subsets, unfinished)
        if not count:
            raise WrongUse(
                f"{store.root}: no finished shard of {', '.join(subsets)} keeps a {chosen.takes.name}; twinset status "
                f"{store.root} says what is still to be built, and what rejected the rest"
            )
        unfinished.chmod(0o755)
        if to.exists():
            to.rmdir()
        unfinished.rename(to)
    return count


def _refuse_others(store: Store, subset: str, format: str) -> None:
    stage = read_stage(store, subset)
    if stage is None:
        return
    makes, takes = stage.facts["makes"], FORMATS[format].takes.name
    if makes != takes:
        fitting = [f"--format {name}" for name, one in FORMATS.items() if one.takes.name == makes]
        instead = " or ".join(fitting) or "webdataset or load_dataset, which read the tars and the index as they are"
        raise WrongUse(
            f"{subset} holds {makes}s, and --format {format} takes {takes}s; for {makes}s there is {instead}. Name "
            f"subsets of {takes}s with --only"
        )
