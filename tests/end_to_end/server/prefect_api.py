"""Prefect's REST interface, as far as the tests ask for it."""

import time
from typing import Any

import httpx

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class Api:
    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, given: dict[str, Any] | None = None) -> Any:
        """GET, or POST what is given; the answer's JSON."""
        method = "GET" if given is None else "POST"
        while True:
            answer = httpx.request(method, self._url + path, json=given, timeout=300)
            if answer.status_code != 503:
                return answer.raise_for_status().json() if answer.content else None
            time.sleep(1)  # SQLite is busy with a killed run's last words; Prefect's own client asks again too

    def start_run(self, deployment: str, **parameters: Any) -> str:
        """Ask for a run of a deployment now; its id."""
        known = self.ask(f"/deployments/name/{deployment}")
        run: str = self.ask(f"/deployments/{known['id']}/create_flow_run", {"parameters": parameters})["id"]
        return run

    def crash(self, run: str) -> None:
        """Mark a run whose machine died, as the shipped automation would later: it gives its place to the next."""
        state = {"type": "CRASHED", "name": "Crashed", "message": "killed by a test"}
        self.ask(f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def state(self, run: str) -> str:
        return str(self.ask(f"/flow_runs/{run}")["state_type"])

    def tasks(self, run: str) -> dict[str, str]:
        asked = {"flow_runs": {"id": {"any_": [run]}}, "limit": 200}
        return {task["name"]: task["state_type"] for task in self.ask("/task_runs/filter", asked)}

    def runs_of(self, deployment: str) -> list[dict[str, Any]]:
        known = self.ask(f"/deployments/name/{deployment}")
        asked = {"deployments": {"id": {"any_": [known["id"]]}}, "sort": "START_TIME_ASC", "limit": 200}
        runs: list[dict[str, Any]] = self.ask("/flow_runs/filter", asked)
        return runs

    def artifacts(self, run: str | None = None) -> dict[str, str]:
        """The artifacts of a flow run, or the latest of all, by key."""
        asked = {"artifacts": {"flow_run_id": {"any_": [run]}}} if run else {}
        path = "/artifacts/filter" if run else "/artifacts/latest/filter"
        return {artifact["key"]: artifact["data"] for artifact in self.ask(path, {**asked, "limit": 200})}

    def events(self, run: str) -> set[str]:
        asked = {"filter": {"resource": {"id": [f"prefect.flow-run.{run}"]}}, "limit": 50}
        return {event["event"] for event in self.ask("/events/filter", asked)["events"]}
