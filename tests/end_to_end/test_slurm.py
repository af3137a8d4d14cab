"""A build by a real Slurm on this machine: arrays, dependencies, a node that is lost."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.conftest import BIN, CHECKOUT, Build, contents, kill_all, logged
from tests.waiting import wait_until

CHEAP = tuple(
    word for name in ("eq-ag", "eq-gebc", "focus-object", "triplets") for word in ("--only", name)
)  # triplets read a stage
DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmdTimeout=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in DAEMONS),
        reason="needs root and the packages slurm-wlm and munge",
    ),
]


def free_ports() -> list[int]:
    with socket.create_server(("", 0)) as first, socket.create_server(("", 0)) as second:
        return [first.getsockname()[1], second.getsockname()[1]]


class Cluster:
    """Slurm's daemons as children of this process. environment: with which its commands reach them."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
        self.environment = {**environment, "SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        host = socket.gethostname().partition(".")[0]
        (folder / "slurm.conf").write_text(CONFIG.format(host=host, folder=folder, ports=free_ports()))
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        places = [f"--{name}={folder}/munge.{name}" for name in ("socket", "log-file", "pid-file", "seed-file")]
        self.start("munged", "--foreground", "--force", f"--key-file={key}", *places)
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D")

    def start(self, name: str, *options: str) -> None:
        command = [shutil.which(name, path="/usr/sbin:/usr/bin") or name, *options]
        self.running[name] = logged(command, self.folder / f"{name}.log", self.environment)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def asked(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout


@pytest.fixture
def cluster(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    started = Cluster(folder, environment)
    try:
        wait_until(lambda: "idle" in started.asked("sinfo", "-h", "-o", "%t"), pause=0.5)
        yield started
    finally:
        started.asked("scancel", "--full", "-u", "root")
        wait_until(lambda: not started.asked("squeue", "-h"), pause=0.5)
        for name in [*started.running][::-1]:
            started.kill(name)


def processes_of(words: str) -> list[psutil.Process]:
    """Commands of twinset that hold these words, apart from the shells that wait for them."""
    lines = {process: " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])}
    return [process for process, line in lines.items() if words in line and str(BIN) in line]


@pytest.fixture(scope="session")
def cheap_reference(build_once: Build) -> Path:
    """The demo's cheap subsets, built without Slurm."""
    return build_once("slurm", "demo", *CHEAP)


def test_arrays_with_a_lost_node_make_what_a_build_makes(
    cluster: Cluster, cheap_reference: Path, twinset: Any, tmp_path: Path
) -> None:
    out = tmp_path / "a folder's $name%j"
    setup = f"export PATH={BIN}:$PATH PYTHONPATH={CHECKOUT}/src:{CHECKOUT}/demo:{CHECKOUT}"
    command = ("slurm", "demo", *CHEAP, "--parts", "4")

    def run(*more: str) -> Any:
        return twinset(*command, "--out", out, "--setup", setup, *more, **cluster.environment)

    def ended() -> None:
        # Slurm begins a requeued task two minutes later.
        wait_until(lambda: not cluster.asked("squeue", "-h", "-t", "pending,running,completing"), pause=0.5)

    absent = run("--partition", "cpus")
    assert absent.returncode == 2 and "submit.sh: sbatch: error: " in absent.stderr
    first = run("--partition", "cpu")
    assert first.returncode == 0, first.stderr

    # Slurm begins the tasks of a lost node again.
    wait_until(lambda: processes_of("--stage scene-graphs --part"))
    cluster.kill("slurmd")
    kill_all(processes_of(str(out)))
    wait_until(lambda: "down" in cluster.asked("sinfo", "-h", "-o", "%t"), pause=0.5)
    cluster.start("slurmd", "-D")
    ended()
    if contents_but_scripts(out) != contents(cheap_reference):
        last = run()
        assert last.returncode == 0, last.stderr
        ended()
    assert contents_but_scripts(out) == contents(cheap_reference)
    nothing = run()
    assert nothing.returncode == 0 and "nothing to submit" in nothing.stdout

    shutil.rmtree(out / "triplets")
    (out / "focus-object/_meta/receipts/00001.json").unlink()
    submitted = run()
    assert "jobs triplets.plan: " in submitted.stdout and "scene-graphs" not in submitted.stdout
    assert " --array=3 " in (out / "_slurm/submit.sh").read_text()
    ended()
    assert contents_but_scripts(out) == contents(cheap_reference)


def contents_but_scripts(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(out).items() if not name.startswith("_slurm/")}
