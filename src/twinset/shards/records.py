"""What lies below OUT of a stage besides its shards: its record, its plan, and which stages there are."""

from twinset.contracts.errors import WrongUse
from twinset.contracts.receipt import IndexRecord, Receipt, parse_receipt, parsed
from twinset.contracts.recipe import STAGES, SUBSET_NAME
from twinset.contracts.stage import Stage, parse_stage
from twinset.shards.plan import PlannedShard, read_shards
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store


def stages_in(store: Store) -> list[str]:
    """Homes of all stages that have been planned below OUT: those that are published, then the others."""
    return [home for home in _homes(store) if store.size(layout.meta(home, "stage.json")) is not None]


def subsets_in(store: Store) -> list[str]:
    """Names of the published stages that have been planned below OUT."""
    return [home for home in stages_in(store) if not home.startswith(f"{STAGES}/")]


def unplanned_in(store: Store) -> dict[str, str]:
    """Stages below OUT whose record is gone or was never written, each with what to do about it."""
    remedies = {}
    for home in _homes(store):
        record = layout.meta(home, "stage.json")
        if store.size(record) is None and store.names(f"{home}/{layout.META}"):
            remedies[home] = f"{record}: absent, so that nothing vouches for {home}; run the same build again"
    return remedies


def _homes(store: Store) -> list[str]:
    published = [name for name in store.names("") if SUBSET_NAME.fullmatch(name)]
    return [*published, *(f"{STAGES}/{name}" for name in store.names(STAGES) if SUBSET_NAME.fullmatch(name))]


def read_stage(store: Store, home: str) -> Stage | None:
    """A stage's record, or None when it was never planned; raises `WrongUse` when it is of another stage."""
    path = layout.meta(home, "stage.json")
    try:
        stage = parse_stage(f"{store.root}/{path}", store.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    # The name becomes part of paths that are written and removed, and the file may come from somebody else.
    name = home.removeprefix(f"{STAGES}/")
    if stage.name != name or not SUBSET_NAME.fullmatch(name):
        raise WrongUse(f"{store.root}/{path}: a record of {stage.name!r}, not of {name!r}; build into a new --out")
    return stage


def planned_stage(store: Store, home: str) -> Stage:
    """As `read_stage`, of a stage that must have been planned; else `WrongUse`."""
    stage = read_stage(store, home)
    if stage is None:
        raise WrongUse(f"{store.root} holds no plan of {home}; build it first")
    return stage


def read_receipt(store: Store, home: str, number: int) -> Receipt | None:
    """The receipt of a shard; None when it is absent or not one."""
    try:
        return parse_receipt(store.read(layout.receipt(home, number)))
    except FileNotFoundError:
        return None


def read_index_record(store: Store, home: str) -> IndexRecord | None:
    """What vouches for the index of a stage; None when it is absent or of another version."""
    try:
        return parsed(IndexRecord, store.read(layout.meta(home, "index.json")))
    except FileNotFoundError:
        return None


def read_planned(store: Store, home: str) -> list[PlannedShard]:
    """The shards of a stage's plan, in order."""
    path = layout.plan(home, "shards.parquet")
    with store.open(path) as stream:
        return read_shards(stream, f"{store.root}/{path}")
