"""Which kinds of table of scores a file is, by its columns, and what of it is grouped."""

import math

from twinset.evaluation.metrics.grounding import Groundings
from twinset.evaluation.metrics.matching import CORRECT, RELEASED, SCORES, Matchings
from twinset.evaluation.metrics.outcomes import ScoreKind
from twinset.evaluation.metrics.recall import RANKS, TIED_TARGETS, Queries
from twinset.evaluation.score_files.opening import ScoreFile
from twinset.manifests.doors import Registry
from twinset.manifests.errors import WrongUse

KINDS: dict[str, str] = {}  # twinset's own are chosen by their columns alone
METRICS = Registry[ScoreKind]("metric", ScoreKind, __name__, "twinset.metrics")
#: Columns of each of twinset's kinds; the first that a file has are read.
COLUMNS = (SCORES, SCORES[:2], (*RANKS, TIED_TARGETS), RANKS, Groundings.columns, *RELEASED, CORRECT)
NO_THRESHOLD = (
    "VALSE's acc, p_c, p_f and min are left out: they need a threshold. Name one with --threshold, such as 0.5 where "
    "scores are probabilities of a match; the similarities of models such as CLIP have none"
)


def kinds_of(file: ScoreFile, threshold: float | None = None) -> list[ScoreKind]:
    """The kind of scores that a file has, then metrics of installed packages whose columns it has.

    Args:
        threshold: as `kind_of` takes it.

    Raises:
        WrongUse: as `kind_of`, where no metric reads the file either.
    """
    metrics = [METRICS.find(name)() for name in METRICS.kinds()]
    found = [one for one in metrics if {*one.columns} <= {*file.names}]
    if found and threshold is None and not any({*columns} <= {*file.names} for columns in COLUMNS):
        return found
    return [kind_of(file, threshold), *found]


def kind_of(file: ScoreFile, threshold: float | None = None) -> ScoreKind:
    """The kind of scores that a file has, of twinset's own.

    Args:
        threshold: see `Matchings`; None: as the file says of itself (``"threshold"`` in its metadata), else none.

    Raises:
        WrongUse: the columns are those of no kind of table; or of half a kind.
    """
    names = {*file.names}
    columns = next((kind for kind in COLUMNS if names >= {*kind}), None)
    if columns is None or (columns == SCORES[:2] and names & {*SCORES[2:]}):
        kinds = "; or ".join(", ".join(kind) for kind in COLUMNS)
        raise WrongUse(f"{file.where}: no scores in its columns: {file.listed}; needed are {kinds}")
    for name in columns:
        file.require(name, "")
    if threshold is not None and columns[0] not in SCORES:
        raise WrongUse(f"{file.where}: --threshold is about scores, and it has none; leave the option out")
    if columns[: len(RANKS)] == RANKS:
        return Queries(columns)
    if columns == Groundings.columns:
        return Groundings()
    if columns[0] in SCORES and threshold is None:
        threshold = file.about.get("threshold")
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool) and math.isfinite(threshold)
        if threshold is not None and not number:
            raise WrongUse(f"{file.where}: its metadata has the threshold {threshold!r}; write a number, or none")
    return Matchings(columns, threshold)


def group_column(file: ScoreFile, group: str | None) -> str | None:
    """The column whose rows belong together: as asked for, else ``group``; None where every row is its own group."""
    if group is not None:
        file.require(group, "--group")
        return group
    return "group" if "group" in file.names else None
