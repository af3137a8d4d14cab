"""Benchmarks as they lie on disk: what twinset built, and what others released. One reader each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from twinset.evaluation.benchmarks.bivlc import BiVlc
from twinset.evaluation.benchmarks.boundaries import Boundaries
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.benchmarks.captioned_images import Coco, Flickr30k
from twinset.evaluation.benchmarks.cirr import Cirr
from twinset.evaluation.benchmarks.eqben import EqBen
from twinset.evaluation.benchmarks.foils import SugarCrepe, Valse
from twinset.evaluation.benchmarks.genecis import GeneCis
from twinset.evaluation.benchmarks.mit_states import MitStates
from twinset.evaluation.benchmarks.reader import Reader, suggested
from twinset.evaluation.benchmarks.winoground import Winoground
from twinset.manifests.errors import WrongUse

#: Readers by name. A new one is a class here and a row of the table in docs/evaluation.md.
READERS: Mapping[str, type[Reader]] = {
    reader.name: reader
    for reader in (
        *(BuiltDataset, EqBen, Winoground, Valse, SugarCrepe, BiVlc),
        *(GeneCis, Cirr, MitStates, Flickr30k, Coco, Boundaries),
    )
}


def open_benchmark(name: str, data: Path | str, subsets: Sequence[str] = (), captions_only: bool = False) -> Reader:
    """The benchmark of a name that lies in a folder.

    Args:
        name: one of `READERS`.
        data: the folder; for ``twinset`` also a URL.
        subsets: those that are read; all that lie there when empty.
        captions_only: whether images that are files of their own may be absent. None is looked for or can be read.

    Raises:
        WrongUse: there is no such benchmark, or the folder does not hold it.
    """
    if name not in READERS:
        raise WrongUse(f"there is no benchmark {name!r}; {suggested(name, sorted(READERS))}")
    opened = READERS[name](data, subsets)
    opened.captions_only = captions_only
    return opened
