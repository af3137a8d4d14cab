"""Checkpoints: whole or passed over, the last two kept, and a full disk that costs none of them.

A folder is bound to one run; what lies in the way of its files is named.
A part of a loss that trains nothing is said once, and in the result.
"""

import json
import multiprocessing
import resource
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import torch

from twinset.contracts.errors import WrongUse
from twinset.training.runs.checkpoints import Checkpoints, write_tensors
from twinset.training.runs.identity import SETTINGS, check_folder
from twinset.training.runs.idle import PATIENCE, IdleParts, said_of

TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.ones(3, dtype=torch.int64)}
BEST = {"step": 1, "value": 2.0, "sha256": {"best.safetensors": "digest"}}


def written(out: Path, *steps: int) -> Checkpoints:
    checkpoints = Checkpoints(out)
    for step in steps:
        checkpoints.write(step, {**TENSORS, "step": torch.tensor(step)}, "identity", "runtime", BEST)
    return checkpoints


def test_the_last_two_are_kept_and_the_last_is_read(tmp_path: Path) -> None:
    checkpoints = written(tmp_path, 5, 10, 15)
    assert checkpoints.steps() == [10, 15] and len(list(checkpoints.folder.iterdir())) == 4
    found = checkpoints.last()
    assert found is not None
    receipt, tensors = found
    assert (receipt.step, receipt.identity, receipt.best) == (15, "identity", BEST)
    assert int(tensors["step"]) == 15 and torch.equal(tensors["b"], TENSORS["b"])
    checkpoints.clear()
    assert Checkpoints(tmp_path).last() is None and not checkpoints.folder.exists()


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "no tensors", "no receipt", "receipt cut", "best is a word", "best elsewhere"]
)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = written(tmp_path, 5, 10)
    tensors, receipt = (checkpoints.folder / f"00000010.{suffix}" for suffix in ("safetensors", "json"))
    content = tensors.read_bytes()
    if damage == "cut":
        tensors.write_bytes(content[:-4])
    elif damage == "flipped":
        tensors.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "no tensors":
        tensors.unlink()
    elif damage == "no receipt":
        receipt.unlink()
    elif damage == "best is a word":
        receipt.write_text(json.dumps({**json.loads(receipt.read_text()), "best": "none"}))
    elif damage == "best elsewhere":
        elsewhere = {**BEST, "sha256": {f"{tmp_path}/elsewhere.safetensors": "digest"}}
        receipt.write_text(json.dumps({**json.loads(receipt.read_text()), "best": elsewhere}))
    else:
        receipt.write_bytes(receipt.read_bytes()[:20])
    found = checkpoints.last()
    assert found is not None and found[0].step == 5
    assert damage == "no receipt" or f"{tensors}: damaged" in caplog.text


def test_the_same_tensors_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    backwards = dict(reversed(TENSORS.items()))
    assert write_tensors(tmp_path / "a.safetensors", TENSORS) == write_tensors(tmp_path / "b.safetensors", backwards)


def write_on_a_full_disk(out: Path, told: Path) -> None:
    """In a process of its own: the limit on the size of files cannot be taken back."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        Checkpoints(out).write(10, {"a": torch.zeros(4096)}, "identity", "runtime", None)
    except OSError as error:
        told.write_text("\n".join([str(error), *error.__notes__]))


def test_a_full_disk_is_reported_and_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    written(tmp_path, 5)
    told = tmp_path / "told"
    child = multiprocessing.get_context("fork").Process(target=write_on_a_full_disk, args=(tmp_path, told))
    child.start()
    child.join()
    assert "the checkpoint before it is intact" in told.read_text() and "free some room" in told.read_text()
    found = Checkpoints(tmp_path).last()
    assert found is not None and found[0].step == 5
    assert {path.name for path in Checkpoints(tmp_path).folder.iterdir()} == {"00000005.json", "00000005.safetensors"}


def test_nothing_is_removed_from_a_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "checkpoints").symlink_to("models")
    with pytest.raises(WrongUse, match="a link to models"):
        Checkpoints(tmp_path)


def test_what_killed_runs_left_goes_with_the_next_write_and_at_the_end(tmp_path: Path) -> None:
    """safetensors writes into a file of its own before it renames it; the weights may be gigabytes."""
    checkpoints = Checkpoints(tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = checkpoints.folder / f".twinset-{socket.gethostname()}.{ended.pid}.a"
    for write in (lambda: checkpoints.write(3, {"a": torch.zeros(1)}, "identity", "runtime", None), checkpoints.clear):
        left.mkdir(parents=True)
        (left / ".tmpAbCdEf").write_bytes(b"half")
        write()
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard", "history.jsonl", SETTINGS])
def test_what_lies_in_the_way_of_a_run_is_named(tmp_path: Path, name: str) -> None:
    if name != SETTINGS:
        (tmp_path / SETTINGS).write_text("{}")
    check_folder(tmp_path)
    if "." in name:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("")
    with pytest.raises(WrongUse, match=rf"{name}: (not )?a folder.*; remove it, or name another --out"):
        check_folder(tmp_path)


def test_a_part_that_is_idle_for_a_hundred_steps_is_said_once() -> None:
    idle = IdleParts(1000)
    said = [idle.add({"step": step, "active_v1": 0.0, "active_v2": 0.2, "loss": 0.0}) for step in range(1, 301)]
    assert [step for step, message in enumerate(said, 1) if message] == [PATIENCE]
    assert said[PATIENCE - 1].startswith("active_v1 (step 100): 0 for 100 steps running.") and "--margin-v1" in said[99]
    assert idle.found == {"active_v1": 100} and said_of(idle.found) == said[99]


def test_one_step_above_the_margin_begins_the_count_again_and_a_short_run_counts_whole() -> None:
    idle = IdleParts(1000)
    assert not any(idle.add({"step": step, "active_fraction": float(step == 60)}) for step in range(1, 150))
    assert idle.add({"step": 160, "active_fraction": 0.0}) == "" and not idle.found
    short = IdleParts(3)
    assert [bool(short.add({"step": step, "active_fraction": 0.0})) for step in (1, 2, 3)] == [False, False, True]
    assert said_of({}) == ""
