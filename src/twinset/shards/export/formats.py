"""Exports of a finished dataset to the file formats of others; the command line lists their names at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.licences.names import AND, licence_named

if TYPE_CHECKING:
    from twinset.contracts.kinds.kind import SampleKind
    from twinset.shards.storage.store import Store

W = TypeVar("W")


class Shard(NamedTuple):
    """What is exported of a finished shard: one sample or more, in plan order, each held only while it is written."""

    subset: str
    split: str
    number: int
    samples: Iterator[Any]


@dataclass(frozen=True, slots=True)
class Format:
    """takes: the kinds of samples that it holds. write: all shards, subset by subset, into a folder.

    images: whether it needs them, and is given `contracts.kinds.kind.Stored`; else `shards.rows.Row` of each sample.
    """

    takes: Sequence[SampleKind]
    write: Callable[[Iterator[Shard], Path], None]
    images: bool = True


KINDS = {
    "eqben": "twinset.shards.export.eqben:EQBEN_FORMAT",
    "openclip": "twinset.shards.export.openclip:OPENCLIP_FORMAT",
    "openclip-csv": "twinset.shards.export.openclip:OPENCLIP_CSV_FORMAT",
    "negclip": "twinset.shards.export.negclip:NEGCLIP_FORMAT",
    "llava": "twinset.shards.export.chats:LLAVA_FORMAT",
    "genecis": "twinset.shards.export.genecis:GENECIS_FORMAT",
    "bivlc": "twinset.shards.export.generated_pairs:BIVLC_FORMAT",
    "trohn-img": "twinset.shards.export.generated_pairs:TROHN_IMG_FORMAT",
    "trohn": "twinset.shards.export.text_pairs:TROHN_FORMAT",
    "sugarcrepe": "twinset.shards.export.text_pairs:SUGARCREPE_FORMAT",
}
EXPORTERS = Registry[Format]("export format", Format, __name__, "twinset.exporters")


def export(store: Store, subsets: Sequence[str], format: str, to: Path, licences: Sequence[str] = ()) -> int:
    """Write the subsets into the folder ``to`` in the format of an exporter; returns the number of samples.

    licences: only samples all of whose licences are among these; all samples where it is empty.

    All is written into a sibling of ``to`` that takes its name at the end: there is a whole export or none. Raises
    WrongUse when the format is unknown or holds other kinds of samples, ``to`` exists and is not an empty folder, or
    there is nothing to export.
    """
    from twinset.contracts.kinds.kind import plural
    from twinset.shards.records import planned_stage
    from twinset.shards.storage.whole_file import new_folder

    chosen, use = EXPORTERS.find(format), f"--format {format}"
    with naming("--only-licence", ValueError):
        only = frozenset(map(licence_named, licences)) or None
    for subset in subsets:
        makes = planned_stage(store, subset).facts["makes"]
        if makes not in (kind.name for kind in chosen.takes):
            raise WrongUse(
                f"{subset} holds {makes}s, and {use} takes {plural(chosen.takes)}; name other subsets with --only, or "
                "a format that takes these (docs/export.md)"
            )
    exported, left_out = Counter[str](), Counter[str]()  # by licence

    def picked(samples: Iterable[Any]) -> Iterator[Any]:
        for sample in samples:
            licence = getattr(sample, "json", sample).licence
            fits = only is None or only.issuperset(licence.split(AND))
            (exported if fits else left_out)[licence] += 1
            if fits:
                yield sample

    def shards() -> Iterator[Shard]:
        for subset in subsets:
            for shard in _finished(store, subset, chosen, use):
                samples = picked(shard.samples)
                if (first := next(samples, None)) is not None:
                    yield shard._replace(samples=chain([first], samples))

    with new_folder(to, "--out") as unfinished:
        chosen.write(shards(), unfinished)
        if left_out and not exported:
            raise WrongUse(
                f"{store.root}: no sample of {', '.join(subsets)} is under {', '.join(sorted(only or ()))} alone; "
                f"--only-licence takes all licences that one may have, of {'; '.join(sorted(left_out))}"
            )
        if not exported:
            raise WrongUse(
                f"{store.root}: no finished shard of {', '.join(subsets) or 'a subset'} keeps {plural(chosen.takes)}; "
                f"twinset status {store.root} says what is still to be built, and what rejected the rest"
            )
    return exported.total()


def _finished(store: Store, subset: str, chosen: Format, use: str) -> Iterator[Shard]:
    """The finished shards of a subset that keep something."""
    from twinset.shards.read import finished, kept_rows, of_kind, read_tar
    from twinset.shards.storage import layout

    for number, split, kept, tar_size in finished(store, subset).columns("split", "kept", "tar_size"):
        if kept and not chosen.images:
            yield Shard(subset, split, number, kept_rows(store, subset, number))
        elif tar_size:
            tar = read_tar(store, layout.tar(subset, split, number))
            yield Shard(subset, split, number, of_kind(tar, chosen.takes, use))
        elif kept:
            remedy = f"build it with subsets.{subset}.source.images"
            raise WrongUse(f"{subset} is an index without images, and {use} takes images; {remedy}")


class BySplit(ExitStack, Generic[W]):
    """A writer for each split, or whatever tells files apart, made when it is first asked for and closed at the end."""

    def __init__(self, writer: Callable[[str], AbstractContextManager[W]]) -> None:
        super().__init__()
        self._writer, self._writers = writer, dict[str, W]()

    def __getitem__(self, name: str) -> W:
        if name not in self._writers:
            self._writers[name] = self.enter_context(self._writer(name))
        return self._writers[name]


def lift_only_folder(folder: Path) -> None:
    """Where a folder holds one folder, that of its only split, give it the files of that instead."""
    below = list(folder.iterdir())
    if len(below) == 1:
        for path in list(below[0].iterdir()):
            path.rename(folder / path.name)
        below[0].rmdir()
