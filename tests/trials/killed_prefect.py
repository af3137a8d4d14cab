"""Prefect's server and a worker of its pools, killed while a flow uses them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from random import Random

from tests.end_to_end.conftest import BIN
from tests.end_to_end.server.conftest import PrefectServer
from tests.end_to_end.server.prefect_api import Api
from tests.trials.killed_kinds import ENDS_IN, Command
from tests.trials.killed_processes import Process, until
from tests.trials.kills import Found, digests

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class ServerOfPrefect:
    """A server on 127.0.0.1, started when it is first needed."""

    def __init__(self, home: Path, variables: dict[str, str]) -> None:
        home.mkdir()
        self._server, self._runs = PrefectServer(home, variables), False

    def started(self) -> dict[str, str]:
        """The environment of those who talk to it; it runs."""
        if not self._runs:
            self._server.start()
            self._runs = True
        return self._server.variables

    def kill(self) -> None:
        """Kill -9, of its whole session."""
        self._server.kill()
        self._runs = False

    def deploy(self) -> None:
        """The pools and the deployments of the checkout."""
        pools = ("main", "cpu", "render", "gpu")  # it stops at the first that is absent
        made = [("work-pool", "create", pool, "--type", "process", "--overwrite") for pool in pools]
        for told in [*made, ("deploy", "--all")]:
            command = [str(BIN / "prefect"), "--no-prompt", *told]
            done = subprocess.run(command, env=self.started(), capture_output=True, text=True, timeout=ENDS_IN)
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)

    def end(self) -> None:
        """End it, if it was started."""
        self._server.end()


class Server:
    """A flow whose server dies, and comes back at once or after a while."""

    def __init__(self, flow: Command, server: ServerOfPrefect) -> None:
        self._flow, self._server, self._tried = flow, server, 0

    def prepare(self) -> None:
        """The flow without interruption."""
        self._flow.place = self._flow.place.with_name("server")
        self._flow.prepare()

    def trial(self, chance: Random, most: int, found: Found) -> None:
        """Kill the server once; the flow may fail or go on."""
        self._tried += 1
        out = self._flow.place / str(self._tried) / "out"
        out.parent.mkdir(parents=True)
        process = self._flow.start(out)
        process.wait(chance.uniform(0, self._flow.seconds))
        self._server.kill()
        found.kills += 1
        if chance.random() < 0.5:
            process.wait(5)
        self._server.started()
        if process.wait(ENDS_IN) not in (0, 1):
            found.fell(f"{out}: its server was killed, exit code {process.code}: {process.last_words()}")
            process.kill(whole=True)
        self._flow.settle(out, [process], found)

    def end(self) -> None:
        """The server ends with the other kinds."""


class Worker:
    """A worker that dies with its run or without; the next one gets a new run of the same."""

    def __init__(self, place: Path, recipe: Path, server: ServerOfPrefect, flow: Command) -> None:
        self._place, self._recipe, self._server, self._flow, self._tried = place, recipe, server, flow, 0
        self._workers: list[Process] = []

    def prepare(self) -> None:
        """Deployments, and the flow without interruption, by the command line."""
        self._flow.place = self._place
        self._flow.prepare()
        self._server.deploy()
        self._api = Api(self._server.started()["PREFECT_API_URL"])
        self._start()
        began = time.monotonic()
        self._ends(self._run(self._place / "measured"))
        self._seconds = time.monotonic() - began

    def trial(self, chance: Random, most: int, found: Found) -> None:
        """Kill the worker, at times with its run, and have a new run take the old one's place."""
        self._tried += 1
        out = self._place / str(self._tried) / "out"
        out.parent.mkdir(parents=True)
        worker, run = self._workers[-1], self._run(out)
        deadline = time.monotonic() + chance.uniform(0, self._seconds)
        while time.monotonic() < deadline and self._api.state(run) not in ENDED:
            time.sleep(0.05)
        whole = chance.random() < 0.5
        worker.kill(whole)
        found.kills += 1
        if self._api.state(run) not in ENDED:
            self._api.crash(run)  # as the shipped automation would later
        self._start()
        for _ in range(3):
            ended = self._ends(self._run(out))
            if ended == "COMPLETED" or not worker.living():
                break
            # The dead worker's run goes on by itself, and the new one was told so.
            until(lambda: not worker.living(), ENDS_IN, "the end of a dead worker's run")
        if ended != "COMPLETED":
            found.fell(f"{out}: the new run is {ended}: {self._workers[-1].last_words()}")
        found.remain(left := worker.end(), f"{out}: {left} processes of the dead worker live on")
        found.compare(self._flow.whole, digests(out) if out.exists() else {})

    def end(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.kill(whole=True)

    def _start(self) -> None:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # runs are of the first python there
        variables = {**self._server.started(), "PREFECT_WORKER_QUERY_SECONDS": "1", "PATH": path}
        told = ["worker", "start", "--pool", "main"]
        self._workers.append(Process(told, variables, self._place / "worker.txt", program="prefect"))

    def _run(self, out: Path) -> str:
        given = {"recipe": str(self._recipe), "out": str(out), "only": ["trohn-text"]}
        return self._api.start_run("build-eqben/local", **given)

    def _ends(self, run: str) -> str:
        until(lambda: self._api.state(run) in ENDED, ENDS_IN, f"the end of run {run}", pause=0.3)
        return self._api.state(run)
