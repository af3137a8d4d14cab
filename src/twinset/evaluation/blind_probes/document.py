"""What blind probes of a benchmark found, as ``OUT/probes/BENCHMARK.json`` has it and the report of a run shows it."""

from pathlib import Path

from pydantic import BaseModel, ValidationError, computed_field

from twinset.contracts.errors import WrongUse
from twinset.generators.words_alone.guesses import CHANCE, LEAST_GROUPS, MARGIN
from twinset.shards.storage.whole_file import write_text


class Guessed(BaseModel):
    """How often a blind guess is right, in percent.

    right: ties count as wrong. expected: half of them count as right; the interval, low
    to high, is of this. flagged: it begins above chance by more than the margin. solves: and answers the questions.
    """

    guess: str
    n: int
    groups: int
    right: float
    expected: float
    ties: float
    low: float | None
    high: float | None
    flagged: bool
    solves: bool


class ProbedRow(BaseModel):
    """All pairs, or those of a subset or category.

    same_bag: percent of pairs whose captions share one bag of words. detectors: percent that detectors of synthetic
    halves get right, by what (`evaluation.blind_probes.detectors`).
    """

    pairs: int
    groups: int = 0
    same_bag: float | None = None
    probes: dict[str, Guessed]
    detectors: dict[str, float] = {}


class Probes(BaseModel):
    """What was found on all pairs, and by subset and category. notes: what was not probed, and why."""

    benchmark: str = ""
    title: str = ""
    left_out: dict[str, int] = {}
    rule: dict[str, float] = {"chance": 100 * CHANCE, "margin": 100 * MARGIN, "least_groups": LEAST_GROUPS}
    notes: list[str] = []
    all: ProbedRow
    by: dict[str, ProbedRow] = {}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def solved(self) -> list[dict[str, str]]:
        """Rows that a probe solves, with the best one."""
        solved = []
        for row, probed in {"all": self.all, **self.by}.items():
            if names := [name for name, guessed in probed.probes.items() if guessed.solves]:
                best = max(names, key=lambda name: probed.probes[name].expected)
                solved.append({"row": row, "probe": best, "guess": probed.probes[best].guess})
        return solved


def write_probes(probes: Probes, out: Path) -> Path:
    """Write what was found where the report of a run reads it; returns the path."""
    path = out / "probes" / f"{probes.benchmark}.json"
    write_text(path, probes.model_dump_json(indent=2) + "\n")
    return path


def probes_of(out: Path, folder: str) -> Probes | None:
    """The probes of a benchmark, by its folder below ``scores``; None where the run has none.

    Raises `WrongUse`: the file is not what the probes write.
    """
    path = out / "probes" / f"{folder}.json"
    try:
        return Probes.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError as error:
        raise WrongUse(f"{path}: not a report of blind probes; remove it or probe again ({error})") from error
