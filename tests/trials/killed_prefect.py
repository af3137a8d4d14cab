"""Prefect's server and a worker of its pools, killed while a flow uses them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.end_to_end.server.conftest import PrefectServer, deploy_all
from tests.end_to_end.server.prefect_api import ENDED, Api
from tests.trials.killed_kinds import ENDS_IN, Command
from tests.trials.killed_processes import Process, until
from tests.trials.kills import Tally, digests


class ServedFlow(Command):
    """A flow whose server dies, and comes back at once or after a while."""

    ends_with = (0, 1)

    def __init__(self, place: Path, arguments: Sequence[str], server: PrefectServer) -> None:
        super().__init__(place, arguments, server.started())
        self._server = server

    def interrupt(self, process: Process, chance: Random) -> bool:
        """Kill the server once; the flow may fail or go on."""
        process.wait(chance.uniform(0, self.seconds))
        self._server.kill()
        if chance.random() < 0.5:
            process.wait(5)
        self._server.started()
        if process.wait(ENDS_IN) is None:
            process.kill(whole=True)
        return True


class Worker(Command):
    """A worker that dies with its run or without; the next one gets a new run of the same."""

    def __init__(self, place: Path, arguments: Sequence[str], server: PrefectServer) -> None:
        super().__init__(place, arguments, server.started())
        self._recipe = arguments[1]
        self._workers: list[Process] = []

    def prepare(self) -> None:
        """Deployments, and the flow without interruption, by the command line."""
        super().prepare()
        deploy_all(self.variables)
        self._api = Api(self.variables["PREFECT_API_URL"])
        self._start()
        began = time.monotonic()
        self._ends(self._run(self.place / "measured"))
        self.seconds = time.monotonic() - began

    def trial(self, out: Path, chance: Random, most: int, tally: Tally) -> None:
        """Kill the worker, at times with its run, and have a new run take the old one's place."""
        worker, run = self._workers[-1], self._run(out)
        deadline = time.monotonic() + chance.uniform(0, self.seconds)
        while time.monotonic() < deadline and self._api.state(run) not in ENDED:
            time.sleep(0.05)
        worker.kill(whole=chance.random() < 0.5)
        tally.counts["kills"] += 1
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
            tally.add("lost", [f"the new run is {ended}: {self._workers[-1].last_words()}"], out)
        tally.add("left over", worker.end(), out)
        tally.compare(self.whole, digests(out) if out.exists() else {})

    def end(self) -> None:
        for worker in self._workers:
            worker.kill(whole=True)

    def _start(self) -> None:
        variables = {**self.variables, "PREFECT_WORKER_QUERY_SECONDS": "1"}
        arguments = ["worker", "start", "--pool", "main"]
        self._workers.append(Process(arguments, variables, self.place / "worker.txt", program="prefect"))

    def _run(self, out: Path) -> str:
        return self._api.start_run("build-eqben/local", recipe=self._recipe, out=str(out), only=["trohn-text"])

    def _ends(self, run: str) -> str:
        until(lambda: self._api.state(run) in ENDED, ENDS_IN, f"the end of run {run}", pause=0.3)
        return self._api.state(run)
