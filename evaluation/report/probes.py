"""What blind probes found in a benchmark, where a run has it: ``probes/BENCHMARK.json``, as the probes write it."""

from pathlib import Path

import pydantic

from twinset.manifests.errors import WrongUse


class _Lenient(pydantic.BaseModel):
    """What the report shows; a file may hold more."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)


class Probe(_Lenient):
    """How often a blind guess is right, in percent: strictly, and with ties broken at random, of which is the interval.

    solves: whether it answers the questions of this row without seeing what they ask about.
    """

    guess: str
    n: int
    groups: int
    right: float
    expected: float
    low: float | None
    high: float | None
    ties: float
    solves: bool


class ProbedRow(_Lenient):
    """All pairs, or those of a subset. same_bag: percent of pairs whose captions share one bag of words."""

    pairs: int
    same_bag: float | None = None
    probes: dict[str, Probe]


class Probes(_Lenient):
    """What was found on all pairs and by subset. notes: what was not probed, and why."""

    all: ProbedRow
    by: dict[str, ProbedRow] = {}
    notes: list[str] = []

    @property
    def solved(self) -> list[str]:
        """In words, each row that a probe solves."""
        return [
            f"{row}: {name}, {probe.guess}"
            for row, probed in {"all": self.all, **self.by}.items()
            for name, probe in probed.probes.items()
            if probe.solves
        ]


def probes_of(out: Path, folder: str) -> Probes | None:
    """The probes of a benchmark; None where the run has none.

    Args:
        out: folder of the run. folder: the benchmark's below ``scores``.

    Raises:
        WrongUse: the file is not what the probes write.
    """
    path = out / "probes" / f"{folder}.json"
    if not path.is_file():
        return None
    try:
        return Probes.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        raise WrongUse(f"{path}: not a report of blind probes; remove it or probe again ({error})") from error
