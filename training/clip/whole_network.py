"""Runs whose best and last weights are one file each: what they write, and what a finished one is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.canonical import sha256_of_file
from manifests.errors import BuildFailed
from shards.storage.whole_file import write_text
from training.clip.checkpoints import write_tensors
from training.clip.history import History, Row
from training.clip.loop import RESULT, B, Loop
from training.clip.settings import RunSettings
from training.report.about import About
from training.report.write import write_report

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

    def write_best(self) -> str:
        """As `Loop.write_best`: the sha256 of `BEST`."""
        return write_tensors(self.out / BEST, self.network.state_dict())

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
        weights, best = self.network.state_dict(), self.best
        if self.process.is_first:
            last = write_tensors(self.out / LAST, weights)
            if best is None:
                best = {"step": self.steps, "value": None, "sha256": write_tensors(self.out / BEST, weights)}
            elif sha256_of_file(self.out / BEST)[0] != best["sha256"]:
                raise BuildFailed(f"{self.out / BEST}: not what step {best['step']} wrote; train into a new --out")
            _link(self.out / published, BEST)
            result = {
                "identity": self.identity, "runtime": self.process.runtime, "steps": self.steps, "best": best,
                "sha256": {BEST: best["sha256"], LAST: last},
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
