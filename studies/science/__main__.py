"""Tests claims of the papers at small scale, and writes what was decided.

python -m studies.science --out out/science      from a checkout; the same command resumes
"""

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path

from twinset.cli.options import between
from twinset.contracts.errors import TwinsetError, WrongUse

MOST_SEEDS, MOST_WORKERS = 1000, 256


def main() -> int:
    """Run the study. Exit codes: 0 done, 1 something failed and the same command resumes, 2 wrong use."""
    testing = argparse.ArgumentParser(
        prog="python -m studies.science",
        description="Tests the papers' claims at small scale: builds a small world, trains models on it, scores them, "
        "decides. The same command resumes.",
    )
    testing.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder of the study")
    testing.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the built world (default: OUT/data, which is built first)",
    )
    testing.add_argument(
        "--recipe", metavar="RECIPE", help="recipe of the world, a name or a YAML file (default: as the design says)"
    )
    testing.add_argument(
        "--design", type=Path, metavar="FILE", help="another design: arms, claims, seeds and thresholds as YAML"
    )
    testing.add_argument(
        "--seeds", type=between(2, MOST_SEEDS), metavar="N", help="number of seeds (default: those of the design)"
    )
    testing.add_argument("--full", action="store_true", help="twice the seeds, twice the steps; hours")
    testing.add_argument(
        "--workers",
        type=between(0, MOST_WORKERS),
        default=0,
        metavar="N",
        help="runs at a time, of one thread each (default: 0, one a core)",
    )
    only = testing.add_mutually_exclusive_group()
    only.add_argument(
        "--gate-only", action="store_true", help="train the base of the calibration seed and no more; check the gate"
    )
    only.add_argument(
        "--power-only", action="store_true", help="train what the calibration seeds need, and say what can be detected"
    )
    only.add_argument(
        "--report-only",
        action="store_true",
        help="train nothing: write the report of the arms that are done for every seed",
    )
    testing.add_argument(
        "--ship",
        type=Path,
        metavar="DIR",
        help="write the best arm's CLIP, or with --gate-only the base, and its card into this folder",
    )
    testing.add_argument("--docs", type=Path, metavar="DIR", help="copy the report and its plots into this folder")
    try:
        science(testing.parse_args())
    except TwinsetError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, WrongUse) else 1
    return 0


def science(asked: argparse.Namespace) -> None:
    """Carry out the study, or the parts that were asked for."""
    import twinset
    from studies.science.design import DESIGN, read_design
    from studies.science.findings import best_arm
    from studies.science.report import ARMS_PNG, CLAIMS_PNG
    from studies.science.ship import ship
    from studies.science.study import REPORT, carry_out_study, pass_gate, report_study

    design = read_design(asked.full, asked.seeds, asked.design or DESIGN)
    data = asked.data or asked.out / "data"
    workers = asked.workers or len(os.sched_getaffinity(0))
    with contextlib.redirect_stdout(sys.stderr):
        if asked.data is None and not asked.report_only:
            twinset.build(asked.recipe or design.recipe, str(data), design.subsets)
        if asked.gate_only:
            study, found = pass_gate(design, data, asked.out, _tell), None
        else:
            found = (
                report_study(design, data, asked.out)
                if asked.report_only
                else carry_out_study(design, data, asked.out, workers, _tell, asked.power_only)
            )
            if found is None:
                return
            study = found.study
    if asked.ship is not None:
        run = study.bases()[0] if found is None else best_arm(found)
        ship(study, run, asked.ship)
        print(f"{run.name}: shipped into {asked.ship}", file=sys.stderr)
    if asked.gate_only:
        return
    if asked.docs is not None:
        asked.docs.mkdir(parents=True, exist_ok=True)
        for name in (REPORT, CLAIMS_PNG, ARMS_PNG):
            shutil.copyfile(asked.out / name, asked.docs / name)
    print(asked.out / REPORT)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
