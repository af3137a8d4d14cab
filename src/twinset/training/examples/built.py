"""Examples of what twinset built: words from the rows of shards, places of images from the headers of tars."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.kind import SampleKind
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.kinds.triplet import PARTS, TRIPLET
from twinset.shards.ledger import Receipts
from twinset.shards.plan import read_parquet
from twinset.shards.read import finished
from twinset.shards.records import planned_stage, subsets_in
from twinset.shards.rows import KEPT
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, member_slices
from twinset.training.examples.contracts import DataPlace, Task, Twins
from twinset.training.examples.table import Dataset, image_column

PARALLEL_TARS = 8  # of an object store, whose latency is what costs

#: How a task sees the samples of a kind: for each example what follows the key, and the stored name of each role. Those
#: of a pair are image and caption of one side, with the other side as the negatives (bivlc, section 4).
SIDES: Mapping[tuple[Task, str], Sequence[tuple[str, Mapping[str, str]]]] = {
    ("pairs", PAIR.name): (
        ("-0", {"image": "image0", "text": "caption0", "negative_image": "image1", "negative_text": "caption1"}),
        ("-1", {"image": "image1", "text": "caption1", "negative_image": "image0", "negative_text": "caption0"}),
    ),
    ("pairs", TEXT_PAIR.name): (("", {"image": "image", "text": "caption", "negative_text": "negative_caption"}),),
    ("pairs", IMAGE_TEXT.name): (("", {"image": "image", "text": "caption"}),),
    ("triplets", TRIPLET.name): (("", {role: role for role in (*PARTS, "condition")}),),
}


@dataclass(frozen=True, slots=True)
class BuiltSubset:
    """A subset that ``twinset build`` wrote. split: None for all of them."""

    store: Store
    subset: str
    split: str | None

    @property
    def title(self) -> str:
        return f"{self.store.root}:{self.subset}"

    def digest(self) -> str:
        """As `Origin.digest`: of the receipts of all shards, so that words and images are in it."""
        names = ("split", "kept", "tar_sha256", "rows_sha256")
        rows = [list(row) for row in self.receipts().columns(*names) if self.split in (None, row[1])]
        return hashlib.sha256(canonical_json([self.subset, rows])).hexdigest()

    def facts(self) -> dict[str, Any]:
        shards = [
            {"tar": layout.tar(self.subset, split, number), "samples": kept, "sha256": sha256}
            for number, split, kept, sha256 in self.receipts().columns("split", "kept", "tar_sha256")
            if kept and self.split in (None, split)
        ]
        return {"dataset": self.store.root, "subset": self.subset, "split": self.split, "shards": shards}

    def receipts(self) -> Receipts:
        """Those of all its shards; `WrongUse` where some are not finished."""
        planned, receipts = planned_stage(self.store, self.subset).shards, finished(self.store, self.subset)
        if len(receipts) != planned:
            raise WrongUse(f"{self.title}: {len(receipts)} of {planned} shards are finished; run its build again")
        return receipts


def fitting_subsets(place: DataPlace, store: Store, task: Task) -> dict[str, SampleKind]:
    """The subsets of a dataset that a task can read, with their kinds; of a place that names one, this one. Raises
    `WrongUse`: there is none, or a named one is of another kind.
    """
    there = subsets_in(store)
    if not there:
        raise WrongUse(
            f"{place.root}: not a dataset that twinset built; tars of others, and an export for open_clip, are named "
            "as tars:FOLDER"
        )
    if place.subset and place.subset not in there:
        raise WrongUse(f"{place.root}: no subset {place.subset!r}; it has {', '.join(there)}")
    wanted = [place.subset] if place.subset else there
    makes = {subset: planned_stage(store, subset).facts.get("makes") for subset in wanted}
    fitting = {subset: KINDS[str(kind)] for subset, kind in makes.items() if (task, kind) in SIDES}
    if not fitting:
        kinds = ", ".join(f"{subset} ({kind})" for subset, kind in makes.items())
        readable = " or ".join(kind for reader, kind in SIDES if reader == task)
        raise WrongUse(f"{place.root}: training on {task} reads {readable}, and here is {kinds}; name another dataset")
    return fitting


def built_datasets(place: DataPlace, store: Store, task: Task, split: str | None, twins: Twins) -> Iterator[Dataset]:
    """The subsets that `fitting_subsets` names. Raises `WrongUse`: as that; or one is not finished, damaged, or without
    images.
    """
    for subset, kind in fitting_subsets(place, store, task).items():
        origin = BuiltSubset(store, subset, split)
        sides = SIDES[task, kind.name]
        try:
            table = _examples(origin, kind, sides[:1] if twins == "first" else sides)
        except (BrokenTar, pa.ArrowException, KeyError, ValueError, FileNotFoundError) as error:
            remedy = "run its build again, or fetch it again"
            raise WrongUse(f"{origin.title}: its shards are damaged: {error}; {remedy}") from error
        yield Dataset(origin, table, origin.digest())


def _examples(origin: BuiltSubset, kind: SampleKind, sides: Sequence[tuple[str, Mapping[str, str]]]) -> pa.Table:
    shards = list(origin.receipts().columns("split", "kept", "tar_size"))
    wanted = [shard for shard in shards if shard[2] and origin.split in (None, shard[1])]
    if not wanted:
        splits = ", ".join(sorted({split for _, split, kept, _ in shards if kept})) or "none at all"
        of_split = f" of split {origin.split!r}" if origin.split else ""
        raise WrongUse(
            f"{origin.title}: no samples{of_split}; there are samples of: {splits}. Name one of these, or "
            "give the data splits where it is built"
        )

    def read(shard: tuple[int, str, int, int]) -> pa.Table:
        return _seen_from(sides, _stored(origin, kind, *shard))

    with ThreadPoolExecutor(PARALLEL_TARS) as pool:
        return pa.concat_tables(pool.map(read, wanted))


def _seen_from(sides: Sequence[tuple[str, Mapping[str, str]]], stored: pa.Table) -> pa.Table:
    """The examples of stored samples: those of one sample beside each other."""
    tables = []
    for suffix, roles in sides:
        keys = pc.binary_join_element_wise(stored["key"], suffix, "")
        words = {role: stored[name] for role, name in roles.items()}
        tables.append(pa.table({"key": keys, "group": stored["group"], **words}))
    return pa.concat_tables(tables).take(np.arange(len(sides) * len(stored)).reshape(len(sides), -1).T.reshape(-1))


def _stored(origin: BuiltSubset, kind: SampleKind, number: int, split: str, kept: int, tar_size: int) -> pa.Table:
    """The samples that a shard keeps: key, group, texts and images by their stored names."""
    store, tar = origin.store, layout.tar(origin.subset, split, number)
    where = f"{store.root}/{tar}"
    if not tar_size:
        raise WrongUse(f"{origin.title}: an index without images; build it with images, or name the other subsets")
    if (size := store.size(tar)) != tar_size:
        state = "absent" if size is None else f"{size:,} bytes instead of {tar_size:,}"
        raise BrokenTar(f"{where}: {state}, and not what its receipt names")
    texts = ("captions",) if kind is IMAGE_TEXT else kind.texts
    with store.open(layout.rows(origin.subset, number)) as stream:
        rows = read_parquet(stream, ("key", "group", "verdict", *texts, *kind.hashed))
    rows = rows.filter(pc.equal(rows["verdict"], KEPT))
    rows = rows.cast(pa.schema([pa.field(name, pa.string(), nullable=False) for name in rows.column_names]))
    if len(rows) != kept:
        raise BrokenTar(f"{where}: its rows have {len(rows)} kept samples instead of {kept}")
    fields = {kind.image_field(role, extension): role for role in kind.images for extension in EXTENSIONS}
    places = dict[tuple[str, str], tuple[int, int]]()
    with store.open(tar) as stream:
        for name, offset, size in member_slices(stream, where):
            key, _, field = name.partition(".")
            if field in fields:
                places[fields[field], key] = offset, size
    keys = rows["key"].to_pylist()
    columns = {"key": rows["key"], "group": pc.binary_join_element_wise(f"{origin.subset}/", rows["group"], "")}
    columns |= {name: rows[name] for name in texts}
    for role in kind.images:
        sha256s = rows[f"{role}_sha256"].to_pylist()
        offsets, sizes = zip(*(places.get((role, key), (0, 0)) for key in keys), strict=True)
        for key, sha256, size in zip(keys, sha256s, sizes, strict=True):
            if sha256 and not size:
                raise BrokenTar(f"{where}: {key} lacks its {role}")
        columns[role] = image_column([tar] * kept, offsets, sizes, sha256s)
    stored = pa.table(columns)
    return _each_caption(stored) if kind is IMAGE_TEXT else stored


def _each_caption(samples: pa.Table) -> pa.Table:
    """An example a caption, as METER, FIBER and NegCLIP count them; a sample has its captions as a JSON list."""
    captions = pa.array([json.loads(text) for text in samples["captions"].to_pylist()], pa.list_(pa.string()))
    rows = samples.take(pc.list_parent_indices(captions))
    places = np.concatenate([np.arange(len(of_image)) for of_image in captions])
    keys = pc.binary_join_element_wise(rows["key"], pa.array(places).cast(pa.string()), "-")
    return rows.set_column(0, "key", keys).append_column("caption", pc.list_flatten(captions))
