"""What a benchmark's server takes where its targets are not public: the images that a model ranks first."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Picture, Query
from twinset.evaluation.features.score_table import windows
from twinset.evaluation.features.store import default_cache
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Running
from twinset.shards.storage.whole_file import write_text


def write_submissions(
    benchmark: Reader, model: str, out: Path, cache: Path | None = None, running: Running | None = None
) -> list[Path]:
    """Rank the galleries of a benchmark and write a file a subset into a folder.

    Entries that score the same keep the order of the gallery. Arguments as `evaluation.run.run` takes them.

    Raises:
        WrongUse: the benchmark has no server, the model cannot answer it, or a query cannot be asked: a server takes
            all of them or nothing.
    """
    if not benchmark.submissions:
        raise WrongUse(f"--benchmark {benchmark.name}: its targets are public; score it with twinset eval run")
    running = running or Running()
    rankings: dict[str, dict[str, object]] = {subset: {} for subset in benchmark.subsets}
    left_out = Counter[str]()
    similarities = similarities_of(open_model(model, running), cache or default_cache(), running)
    for window in windows(benchmark, lambda key, where, reason: left_out.update([reason]), similarities.by_pairs):
        unusable = similarities.prepare(window)
        left_out.update(problem.reason for problem in unusable.values())
        for query in window:
            if isinstance(query, Query) and query.key not in unusable:
                form = benchmark.submissions[query.subset]
                names = ranked(query, similarities.gallery(query), form.places)
                rankings[query.subset][query.key.rpartition("/")[2]] = [form.entry(name) for name in names]
    if left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common())
        raise WrongUse(f"{benchmark.place}: {reasons}; a server takes all queries or none: fetch what is missing")
    for subset, answers in rankings.items():
        form = benchmark.submissions[subset]
        write_text(out / form.file, json.dumps({**form.header, **answers}))
    return [out / benchmark.submissions[subset].file for subset in rankings]


def ranked(query: Query, scores: np.ndarray[tuple[int, ...], np.dtype[np.float32]], places: int) -> list[str]:
    """The names of the files of the entries that score highest, without suffix; scores of shape (entries,)."""
    order = np.argsort(-scores, kind="stable")
    entries = (query.gallery[at] for at in order[: places + len(query.excluded)] if at not in query.excluded)
    return [Path(entry.where).stem for entry in entries if isinstance(entry, Picture)][:places]
