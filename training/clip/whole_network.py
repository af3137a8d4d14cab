"""Runs whose best and last weights are one file each: what they write, and what a finished one is."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.shards.storage.whole_file import write_text
from twinset.training.clip.settings import RunSettings
from twinset.training.report.write import About, write_report
from twinset.training.runs.checkpoints import Files, write_tensors
from twinset.training.runs.history import History, Row
from twinset.training.runs.loop import RESULT, B, Loop

BEST, LAST = "best.safetensors", "last.safetensors"


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished run.

    best, last: safetensors, of the best validation (without one, the last) and of the last step. history: a row a step.
    digest: sha256 of ``last``. best_step: steps after which the best were written. resumed_at: steps that earlier calls
    took; all of them where nothing was left to do.
    """

    best: Path
    last: Path
    history: list[Row]
    digest: str
    best_step: int
    resumed_at: int


def trained(out: Path, result: Mapping[str, Any], history: History, resumed_at: int) -> Trained:
    """A run from its ``result.json``."""
    digest, best = result["sha256"][LAST], result["best"]["step"]
    return Trained(out / BEST, out / LAST, history.rows, digest, best, resumed_at)


class WholeNetwork(Loop[B]):
    """A run that trains a network and writes all of it."""

    settings: RunSettings

    def weights(self) -> Files:
        return {BEST: self.network.state_dict()}

    def finish(
        self, history: History, published: str, facts: Mapping[str, Any], about: About, report: bool
    ) -> dict[str, Any]:
        """Write the weights, the receipt of the run and its reports, and remove the checkpoints.

        Args:
            published: the name under which a library looks for the weights of a folder: a link to the best.
            facts: every dataset and shard.
            report: whether the page is written.

        Returns:
            What ``result.json`` holds.
        """
        weights = self.network.state_dict()
        best = self.best or {"step": self.steps, "value": None}
        if self.process.is_first:
            files = {LAST: write_tensors(self.out / LAST, weights)}
            if self.best is None:
                files[BEST] = write_tensors(self.out / BEST, weights)
            else:
                self.checkpoints.show_best(self.best)
                files |= self.best["sha256"]
            _link(self.out / published, BEST)
            result = {
                "identity": self.identity, "runtime": self.process.runtime, "steps": self.steps,
                "best": {name: best[name] for name in ("step", "value")}, "sha256": files,
            }  # fmt: skip
            write_report(self.out, self.settings, facts, result, history.rows, about, pictures=report)
            write_text(self.out / RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")
            self.checkpoints.clear()
        self.process.wait()
        found: dict[str, Any] = json.loads((self.out / RESULT).read_bytes())
        return found


def _link(path: Path, name: str) -> None:
    """Link to a file by a second name, without a second copy of it; replaces what a copied folder has there."""
    if not path.is_symlink() or os.readlink(path) != name:
        path.unlink(missing_ok=True)
        path.symlink_to(name)
