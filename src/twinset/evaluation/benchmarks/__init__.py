"""Benchmarks as they lie on disk: what twinset built, and what others released. One reader each."""

from collections.abc import Sequence
from pathlib import Path

from twinset.contracts.doors import Registry
from twinset.evaluation.benchmarks.reader import Reader

#: Readers by name. A new one is a class and a line here.
KINDS = {
    "twinset": "twinset.evaluation.benchmarks.built_dataset:BuiltDataset",
    "eqben": "twinset.evaluation.benchmarks.eqben:EqBen",
    "winoground": "twinset.evaluation.benchmarks.sets_of_pairs:Winoground",
    "valse": "twinset.evaluation.benchmarks.sets_of_pairs:Valse",
    "sugarcrepe": "twinset.evaluation.benchmarks.sets_of_pairs:SugarCrepe",
    "bivlc": "twinset.evaluation.benchmarks.sets_of_pairs:BiVlc",
    "aro": "twinset.evaluation.benchmarks.aro:Aro",
    "aro-order": "twinset.evaluation.benchmarks.aro:AroOrder",
    "genecis": "twinset.evaluation.benchmarks.composed_retrieval:GeneCis",
    "cirr": "twinset.evaluation.benchmarks.composed_retrieval:Cirr",
    "circo": "twinset.evaluation.benchmarks.composed_retrieval:Circo",
    "circo-test": "twinset.evaluation.benchmarks.composed_retrieval:CircoTest",
    "cirr-test": "twinset.evaluation.benchmarks.composed_retrieval:CirrTest",
    "mit-states": "twinset.evaluation.benchmarks.composed_retrieval:MitStates",
    "flickr30k": "twinset.evaluation.benchmarks.captioned_images:Flickr30k",
    "coco": "twinset.evaluation.benchmarks.captioned_images:Coco",
    "gebc": "twinset.evaluation.benchmarks.boundaries:Boundaries",
}
BENCHMARKS = Registry[type[Reader]]("benchmark", Reader, __name__, "twinset.benchmarks")


def open_benchmark(name: str, data: Path | str, subsets: Sequence[str] = (), captions_only: bool = False) -> Reader:
    """The benchmark of a name that lies in a folder.

    Args:
        name: of a benchmark.
        data: the folder; for ``twinset`` also a URL.
        subsets: those that are read; all that lie there when empty.
        captions_only: whether images that are files of their own may be absent. None is looked for or can be read.

    Raises:
        WrongUse: there is no such benchmark, or the folder does not hold it.
    """
    opened = BENCHMARKS.find(name)(data, subsets)
    opened.captions_only = captions_only
    return opened
