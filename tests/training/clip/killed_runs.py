"""Ending a run at a step."""

from typing import Any

from twinset.training.clip import train


class Killed(Exception):
    """Instead of SIGKILL: nothing of the run catches it."""


def killed_after(step: int) -> train.OnProgress:
    def stop(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == step:
            raise Killed

    return stop
