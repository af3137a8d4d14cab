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
from numpy.typing import NDArray

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
from twinset.training.examples.columns import SHORT_DIGITS, Gathered, Part, Side
from twinset.training.examples.contracts import DataPlace, Task, Twins

PARALLEL_TARS = 8  # of an object store, whose latency is what costs
REBUILD = "run its build again, or fetch it again"


def _pair_side(this: int, other: int) -> Side:
    """Image and caption of one side, those of the other side as the negatives (bivlc, section 4)."""
    return Side(
        f"-{this}",
        {"image": f"image{this}", "negative_image": f"image{other}"},
        {"text": f"caption{this}", "negative_text": f"caption{other}"},
    )


#: How the samples of a kind are seen by a task.
SIDES: Mapping[tuple[Task, str], Sequence[Side]] = {
    ("pairs", PAIR.name): (_pair_side(0, 1), _pair_side(1, 0)),
    ("pairs", TEXT_PAIR.name): (
        Side("", {"image": "image"}, {"text": "caption", "negative_text": "negative_caption"}),
    ),
    ("pairs", IMAGE_TEXT.name): (Side("", {"image": "image"}, {"text": "caption"}),),
    ("triplets", TRIPLET.name): (Side("", {part: part for part in PARTS}, {"condition": "condition"}),),
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
        found = [
            {"tar": layout.tar(self.subset, split, number), "samples": kept, "sha256": sha256}
            for number, split, kept, sha256 in self.receipts().columns("split", "kept", "tar_sha256")
            if kept and self.split in (None, split)
        ]
        return {"dataset": self.store.root, "subset": self.subset, "split": self.split, "shards": found}

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
            f"{place.root}: not a dataset that twinset built, nor an export for open_clip; tars of others are named as "
            "tars:FOLDER"
        )
    if place.subset and place.subset not in there:
        raise WrongUse(f"{place.root}: no subset {place.subset!r}; it has {', '.join(there)}")
    wanted = [place.subset] if place.subset else there
    made = {subset: planned_stage(store, subset).facts.get("makes") for subset in wanted}
    fitting = {subset: KINDS[str(kind)] for subset, kind in made.items() if (task, kind) in SIDES}
    if not fitting:
        kinds = ", ".join(f"{subset} ({kind})" for subset, kind in made.items())
        takes = " or ".join(kind for one, kind in SIDES if one == task)
        raise WrongUse(f"{place.root}: training on {task} reads {takes}, and here is {kinds}; name another dataset")
    return fitting


def built_parts(place: DataPlace, store: Store, task: Task, split: str | None, twins: Twins) -> Iterator[Part]:
    """The subsets that `fitting_subsets` names. Raises `WrongUse`: as that; or one is not finished, damaged, or without
    images.
    """
    for subset, kind in fitting_subsets(place, store, task).items():
        origin = BuiltSubset(store, subset, split)
        sides = SIDES[task, kind.name]
        try:
            columns = _gathered(origin, kind).columns()
        except BrokenTar as error:
            raise WrongUse(str(error)) from error
        except (pa.ArrowException, KeyError, ValueError, FileNotFoundError) as error:
            raise WrongUse(f"{origin.title}: the rows of its shards are damaged ({error}); {REBUILD}") from error
        yield Part(origin, columns, sides[:1] if twins == "first" else sides, origin.digest(), place.copies)


def _gathered(origin: BuiltSubset, kind: SampleKind) -> Gathered:
    shards = list(origin.receipts().columns("split", "kept", "tar_size"))
    wanted = [one for one in shards if one[2] and origin.split in (None, one[1])]
    if not wanted:
        splits = ", ".join(sorted({split for _, split, kept, _ in shards if kept})) or "none at all"
        of_split = f" of split {origin.split!r}" if origin.split else ""
        raise WrongUse(
            f"{origin.title}: no samples{of_split}; there are samples of: {splits}. Name one of these, or "
            "give the data splits where it is built"
        )
    gathered = Gathered(kind.images, kind.texts)

    def read(shard: tuple[int, str, int, int]) -> tuple[Any, ...]:
        return _shard(origin, kind, *shard)

    if origin.store.is_remote:
        with ThreadPoolExecutor(PARALLEL_TARS) as pool:
            for found in pool.map(read, wanted):
                gathered.add(*found)
    else:
        for shard in wanted:
            gathered.add(*read(shard))
    return gathered


def _shard(
    origin: BuiltSubset, kind: SampleKind, number: int, split: str, kept: int, tar_size: int
) -> tuple[str, pa.Array, pa.Array, dict[str, pa.Array], dict[str, NDArray[np.uint64]]]:
    """What `Gathered.add` takes of one shard."""
    store, tar = origin.store, layout.tar(origin.subset, split, number)
    where = f"{store.root}/{tar}"
    if not tar_size:
        raise WrongUse(f"{origin.title}: an index without images; build it with images, or name the other subsets")
    found = store.size(tar)
    if found != tar_size:
        state = "absent" if found is None else f"{found:,} bytes instead of {tar_size:,}"
        raise WrongUse(f"{where}: {state}, and not what its receipt names; {REBUILD}")
    with store.open(layout.rows(origin.subset, number)) as stream:
        rows = read_parquet(stream, ("key", "group", "verdict", *_words(kind), *kind.hashed))
    rows = rows.filter(pc.equal(rows["verdict"], KEPT)).combine_chunks()
    rows = rows.cast(pa.schema([pa.field(name, pa.string(), nullable=False) for name in rows.column_names]))
    keys = rows["key"].combine_chunks()
    if len(rows) != kept:
        raise WrongUse(f"{where}: its rows have {len(rows)} kept samples instead of {kept}; {REBUILD}")
    slices = {role: np.zeros((kept, 3), np.uint64) for role in kind.images}
    fields = {kind.image_field(role, extension): role for role in kind.images for extension in EXTENSIONS}
    places = {key: row for row, key in enumerate(keys.to_pylist())}
    try:
        with store.open(tar) as stream:
            for name, offset, size in member_slices(stream, where):
                key, _, one = name.partition(".")
                if key not in places:
                    raise BrokenTar(f"{where}: sample {key} is not in the rows of its shard")
                if one in fields:
                    slices[fields[one]][places[key], :2] = offset, size
    except BrokenTar as error:
        raise WrongUse(f"{error}; {REBUILD}") from error
    for role in kind.images:
        hashes = [int(text[:SHORT_DIGITS] or "0", 16) for text in rows[f"{role}_sha256"].to_pylist()]
        slices[role][:, 2] = hashes
        lacking = np.flatnonzero((slices[role][:, 1] == 0) & (slices[role][:, 2] != 0))
        if len(lacking):
            raise WrongUse(f"{where}: {keys[int(lacking[0])]} lacks its {role}; {REBUILD}")
    groups = pc.binary_join_element_wise(pa.scalar(f"{origin.subset}/"), rows["group"].combine_chunks(), "")
    if kind is IMAGE_TEXT:
        return tar, *_each_caption(keys, groups, rows["captions"].to_pylist(), slices)
    return tar, keys, groups, {name: rows[name].combine_chunks() for name in kind.texts}, slices


def _words(kind: SampleKind) -> tuple[str, ...]:
    """Columns of rows that hold the texts of examples."""
    return ("captions",) if kind is IMAGE_TEXT else kind.texts


def _each_caption(
    keys: pa.Array, groups: pa.Array, captions: Sequence[str], slices: Mapping[str, NDArray[np.uint64]]
) -> tuple[pa.Array, pa.Array, dict[str, pa.Array], dict[str, NDArray[np.uint64]]]:
    """An example a caption, as METER, FIBER and NegCLIP count them. captions: a JSON list a sample."""
    every = [json.loads(one) for one in captions]
    places = np.repeat(np.arange(len(every)), [len(one) for one in every])
    names = [f"{key}-{n}" for key, said in zip(keys.to_pylist(), every, strict=True) for n in range(len(said))]
    texts = {"caption": pa.array([one for said in every for one in said], pa.string())}
    return (
        pa.array(names, pa.string()),
        groups.take(pa.array(places)),
        texts,
        {role: one[places] for role, one in slices.items()},
    )
