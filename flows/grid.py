"""The flow ``train-grid``: all arms of a paper's table, each a run of ``train/POOL``, in the order of their DAG."""

from pathlib import Path
from typing import Any, Literal

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact

from twinset.flows.artifacts import cosmetic
from twinset.flows.login import warn_without_login
from twinset.flows.models import TRAIN_NAME
from twinset.flows.pools import Piece, cancel_parts, check_pools, label_run, labels_of, run_pieces
from twinset.models.encoders.contract import Running
from twinset.training.grids.run import ArmRun, Grid, open_grid, score_grid


@flow(name="train-grid", flow_run_name="{design} in {out}", persist_result=False, on_cancellation=[cancel_parts])
def train_grid(
    design: str,
    data: list[str],
    tests: list[str],
    out: str,
    settings: list[str] | None = None,
    only: list[str] | None = None,
    pool: Literal["", "cpu", "gpu"] = "",
    device: Literal["cpu", "gpu"] = "cpu",
) -> dict[str, Any]:
    """Train and score all arms of a design, or resume it; what is done is not done again.

    Args:
        design: a paper's design by its name, such as ``bivlc``, or the path of one.
        data, tests: ``NAME=PLACE``, as ``twinset train grid --data`` and ``--test``.
        out: folder that the workers share.
        settings: overrides ``KEY.PATH=VALUE`` of the design.
        only: arms; all by default.
        pool: whose deployment ``train/POOL`` trains each arm, those that wait for no other side by side; empty: all are
            trained within this run.
        device: where models are scored, within this run.

    Returns:
        ``{"tables": PATHS, "figures": {TEST: {ARM: {FIGURE: [value, low, high]}}}}``.

    Raises:
        WrongUse: before any work.
        BuildFailed: arms failed, after the others of their level were trained; the same run resumes.
    """
    warn_without_login()
    label_run(out)
    if pool:
        check_pools([f"train/{pool}"])
    grid = open_grid(Path(design), data, tests, Path(out), settings or [], Running(device), only or [])
    for level in grid.levels():
        if pool:
            left = [run for run in level if not (grid.kept(run).is_file() and run.folder.is_dir())]
            run_pieces([_piece(grid, run, pool, out) for run in left])
        for run in level:  # what a worker trained is found finished
            get_run_logger().info("%s: %s", run.name, grid.train(run)["model"])
    found = score_grid(grid, get_run_logger().info)
    text = Path(found["tables"][0]).read_text("utf-8")
    with cosmetic():
        create_markdown_artifact(text, key="train-grid", description=f"The table in {out}")
    return found


def _piece(grid: Grid, run: ArmRun, pool: str, out: str) -> Piece:
    given = grid.settings(run)
    data, task = given.pop("data"), grid.design.arms[run.arm].task
    parameters = {"data": data, "out": str(run.folder), "settings": {**given, "device": pool}, "task": task}
    name = TRAIN_NAME.format(**parameters)
    return Piece(name, "train", pool, parameters, ["train", parameters], [*labels_of(out), run.arm])
