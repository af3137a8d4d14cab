"""The end of a stage: every new file hashed against its receipt, leftovers of older plans removed."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from twinset.shards.ledger import keep
from twinset.shards.plan import SHARDS_A_FILE
from twinset.shards.records import read_receipt
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.status import StageState

PARALLEL_HASHES = 4


def disagreeing(store: Store, state: StageState) -> tuple[StageState, list[int]]:
    """Hash the rows and tars that changed since they were last hashed.

    Returns the state with its ledger brought up to date, and the shards whose files are not what their receipt says.
    """

    def agrees(file: tuple[str, str, str]) -> bool:
        path, sha256, _ = file
        try:
            return store.sha256(path)[0] == sha256
        except FileNotFoundError:
            return False

    if not (changed := _changed_files(state)):
        return state, []
    with ThreadPoolExecutor(PARALLEL_HASHES) as pool:
        right = pool.map(agrees, changed.values())
        bad = {number for (_, number), same in zip(changed, right, strict=True) if not same}
    done = state.done.hashed({file: stamp for file, (_, _, stamp) in changed.items() if file[1] not in bad})
    keep(store, state.home, done)
    return replace(state, done=done), sorted(bad)


def _changed_files(state: StageState) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Path, sha256 and stamp of each file that is not the one that was hashed, by column of the ledger and shard."""
    home, changed = state.home, dict[tuple[str, int], tuple[str, str, str]]()
    columns = state.done.columns("split", "rows_sha256", "rows_stamp", "tar_sha256", "tar_size", "tar_stamp")
    for number, split, rows_sha256, rows_stamp, tar_sha256, tar_size, tar_stamp in columns:
        if (stamp := state.rows[f"{number:05d}.parquet"].stamp) != rows_stamp:
            changed["rows_stamp", number] = layout.rows(home, number), rows_sha256, stamp
        if tar_size and (stamp := state.tars[layout.tar_name(split, number)].stamp) != tar_stamp:
            changed["tar_stamp", number] = layout.tar(home, split, number), tar_sha256, stamp
    return changed


def forget(store: Store, home: str, numbers: Iterable[int]) -> None:
    """Take back receipts, so that their shards are made again."""
    for number in numbers:
        store.remove(layout.receipt(home, number))


def remove_leftovers(store: Store, state: StageState) -> None:
    """Remove tars, rows, receipts, logs and plan files that the present plan does not know.

    Tars are looked for in the folders of splits that the plan or a receipt names: other folders are somebody else's.
    """
    home, count = state.home, len(state.planned)
    tars = {layout.tar(home, split, number) for number, split, size in state.done.columns("split", "tar_size") if size}
    splits = {shard.split for shard in state.planned}
    for name in store.listing(layout.meta(home, "receipts")):
        number = layout.shard_number(name, "json")
        if number >= count and (receipt := read_receipt(store, home, number)) is not None:
            splits.add(receipt.split)
    folders = [(f"{home}/{split}", "tar", 0) for split in sorted(splits)]
    folders += [(layout.meta(home, "rows"), "parquet", count)]
    folders += [(layout.meta(home, "plan"), "parquet", -(-count // SHARDS_A_FILE))]
    # Receipts go last: should this be interrupted, they still name the splits of what is left.
    folders += [(layout.meta(home, "log"), "json", count), (layout.meta(home, "receipts"), "json", count)]
    for folder, suffix, first in folders:
        for name in sorted(store.listing(folder)):
            if layout.shard_number(name, suffix) >= first and f"{folder}/{name}" not in tars:
                store.remove(f"{folder}/{name}")
