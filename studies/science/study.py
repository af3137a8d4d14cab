"""A whole study: builds the world, trains bases, checks the gate, trains and scores the arms, and writes the report."""

import json
from dataclasses import asdict
from pathlib import Path

from studies.science import plots, report
from studies.science.design import Design
from studies.science.findings import Findings, find
from studies.science.gate import check_gate
from studies.science.one_run import do
from studies.science.power import detectable
from studies.science.runs import Study
from studies.science.schedule import Tell, carry_out
from studies.science.verdicts import overall
from twinset.shards.storage.whole_file import whole_file, write_text

#: What `write_report` writes into a folder.
REPORT = "README.md"
POWER = "power.json"


def carry_out_study(
    design: Design, data: Path, out: Path, workers: int, tell: Tell, only_power: bool = False
) -> Findings | None:
    """Carry out what is not done of a study, and write its report and plots into ``out``.

    Args:
        data: the built world.
        workers: runs at a time; each has one thread.
        only_power: stop when it is known what can be detected; then nothing is returned.
        tell: called with lines of progress.

    Raises:
        BuildFailed: a run failed, or the base does not pass the gate. The same command resumes.
        WrongUse: the data lack a test set.
    """
    study = Study(design, out, data)
    write_text(out / "design.json", json.dumps(design.model_dump(mode="json"), indent=2) + "\n")
    bases, calibration, more = study.bases(), study.calibration(), len(study.after_base())
    first = len(design.calibration_seeds)
    tell(f"design {design.digest}: {len(bases)} bases, {len(calibration)} runs of calibration, then {more} runs")
    carry_out(study, bases[:first], do, workers, tell, more=len(bases) - first + len(calibration) + more)
    passed = check_gate(study)
    scores = ", ".join(f"{kind} {score:.1f} %" for kind, score in passed.by_kind.items())
    tell(f"gate passed: {design.gate.figure} score of the base of seed {passed.seed}: {scores}")
    carry_out(study, calibration, do, workers, tell, more=len(bases) - first + more)
    # Written before any arm of a seed that decides is trained.
    powers = detectable(study)
    write_text(out / POWER, json.dumps([asdict(one) for one in powers], indent=2) + "\n")
    for one in powers:
        tell(f"{one.claim}: {one.better} − {one.than}, {one.figure}: {one.detectable:.1f} points can be detected")
    if only_power:
        return None
    carry_out(study, bases[first:], do, workers, tell, more=more)
    carry_out(study, study.after_base(), do, workers, tell)
    found = find(study)
    write_report(found, out)
    return found


def pass_gate(design: Design, data: Path, out: Path, tell: Tell) -> Study:
    """Train the base of the calibration seed, if it is not done, and check the gate; raises as `carry_out_study`."""
    study = Study(design, out, data)
    carry_out(study, study.bases()[:1], do, 1, tell)
    passed = check_gate(study)
    tell(f"gate passed: {', '.join(f'{kind} {score:.1f} %' for kind, score in passed.by_kind.items())}")
    return study


def report_study(design: Design, data: Path, out: Path) -> Findings:
    """Write the report of what is done of a study, and carry out nothing; as `carry_out_study`."""
    found = find(Study(design, out, data))
    write_report(found, out)
    return found


def write_report(found: Findings, folder: Path) -> Path:
    """Write the report, its plots and its numbers as JSON; returns the report's path."""
    for name, picture in ((report.CLAIMS_PNG, plots.plot_claims(found)), (report.ARMS_PNG, plots.plot_arms(found))):
        with whole_file(folder / name) as temporary:
            temporary.write_bytes(picture)
    design = found.study.design
    numbers = {
        "design": design.digest,
        "power": [asdict(one) for one in found.powers],
        "data": found.study.data_digests,
        "verdicts": {test: overall(design, found.judged, test) for test in found.judged},
        "comparisons": [asdict(one) for compared in found.judged.values() for one in compared],
        "scores": [asdict(one) for one in found.scores],
        "gate": [asdict(one) for one in found.gates],
        "detectors": {test: asdict(one) for test, one in found.detected.items()},
    }
    write_text(folder / "results.json", json.dumps(numbers, indent=2) + "\n")
    write_text(folder / REPORT, report.write(found))
    return folder / REPORT
