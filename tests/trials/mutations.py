"""Mutated inputs: ``python -m tests.trials.mutations --cases 10000 --seed N [--kind K] [--case N] [--keep DIR]``.

A case takes valid small inputs of one kind, changes one file (`tests.trials.mutators`), and calls what reads it. It
must end well or in one of twinset's own errors, within 20 s and 2 GB. Everything about a case follows from seed and
number, so that ``--case N`` repeats it. ``--kind 'model: *'``: of some kinds alone. ``--keep DIR`` keeps the inputs
there; the last case lies in scratch-PID. No case begins after ``--minutes``. Cases run in processes that live on; one
that dies or hangs is a finding, and is replaced.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatch
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue

from pebble import ProcessExpired, ProcessPool

from tests.options import options
from tests.trials.mutated_kinds import KINDS
from tests.trials.mutation_workers import ENDED, FINDING, REFUSED, SLOW, VALID, Case, prepare, tried

HANGS = 1500.0  # seconds of the clock, after which a case that takes no processor is taken to wait for ever
TURNS = [
    kind.name
    for turn in range(max(kind.weight for kind in KINDS.values()))
    for kind in KINDS.values()
    if turn < kind.weight
]


def kind_of(number: int) -> str:
    """The kind of a case: by turns, as often as the kind's weight says."""
    return TURNS[number % len(TURNS)]


def run(
    numbers: Sequence[int], seed: int, processes: int = 2, keep: Path | None = None, minutes: float = 1e9
) -> list[Case]:
    """Run cases by number, those of a kind in one process; what did not begin in time is left out."""
    by_kind = defaultdict[str, list[int]](list)
    for number in numbers:
        by_kind[kind_of(number)].append(number)
    ends = time.monotonic() + 60 * minutes
    folder = keep or Path(tempfile.mkdtemp(prefix="mutations-"))
    (folder / "home").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TWINSET_CACHE", str(Path.home() / ".cache" / "twinset"))
    pools, spawn = SimpleQueue[ProcessPool](), get_context("spawn")
    for _ in range(processes):
        pools.put(ProcessPool(1, initializer=prepare, initargs=[folder], context=spawn))

    def cases_of(kind: str) -> list[Case]:
        pool, cases = pools.get(), list[Case]()
        for number in (VALID, *by_kind[kind]):
            if time.monotonic() > ends:
                break
            case = _ended(pool, folder, seed, Case(number, kind))
            if case.outcome == FINDING and SLOW in case.detail and number != VALID:  # the neighbours' work slows too
                case = _ended(pool, folder, seed, Case(number, kind))
            if case.outcome == FINDING:
                _show(case)
            cases.append(case)
            if number == VALID and case.outcome != ENDED:
                break
        pools.put(pool)
        return cases

    with ThreadPoolExecutor(processes) as threads:
        kinds = sorted(by_kind, key=lambda kind: -len(by_kind[kind]))
        cases = [case for results in threads.map(cases_of, kinds) for case in results]
    for _ in range(processes):
        pool = pools.get()
        pool.stop()
        pool.join()
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return [case for case in cases if case.number != VALID or case.outcome == FINDING]


def _ended(pool: ProcessPool, folder: Path, seed: int, case: Case) -> Case:
    began, future = time.monotonic(), pool.schedule(tried, args=[case, folder, seed], timeout=HANGS)
    try:
        ended: Case = future.result()
        return ended
    except TimeoutError:
        detail = f"{SLOW} over {HANGS:.0f} s"
    except ProcessExpired as error:
        log = folder / f"log-{error.pid}"
        words = log.read_text("utf-8", "replace").strip()[-300:] if log.exists() else ""
        detail = f"the process died, exit code {error.exitcode}: {words}"
    return replace(case, outcome=FINDING, detail=detail, seconds=time.monotonic() - began)


def _show(case: Case) -> None:
    print(f"case {case.number} [{case.kind}, {case.act}] {case.mutation}\n    {case.detail[-600:]}", flush=True)


def main() -> int:
    given = options(__doc__, cases=500, seed=0, kind="*", case=-1, keep="", processes=2, minutes=1e9)
    own = (number for number in count() if fnmatch(kind_of(number), given.kind))
    numbers = [*islice(own, given.cases)] if given.case < 0 else [given.case]
    began = time.monotonic()
    cases = run(numbers, given.seed, given.processes, Path(given.keep).resolve() if given.keep else None, given.minutes)
    if given.case >= 0:
        for case in cases:
            print(case.outcome)
            _show(case)
    print(f"{'kind':32} {'cases':>6} {ENDED:>11} {REFUSED:>8} findings  slowest")
    for kind in sorted({case.kind for case in cases}):
        outcomes = [case.outcome for case in cases if case.kind == kind]
        slowest = max(case.seconds for case in cases if case.kind == kind)
        counts = f"{outcomes.count(ENDED):11} {outcomes.count(REFUSED):8} {outcomes.count(FINDING):8}"
        print(f"{kind:32} {len(outcomes):6} {counts} {slowest:7.2f} s")
    total = Counter(case.outcome for case in cases)
    seconds = time.monotonic() - began
    print(f"{len(cases)} of {len(numbers)} cases of seed {given.seed}, {seconds:.0f} s: {dict(total)}")
    return 1 if total[FINDING] else 0


if __name__ == "__main__":
    sys.exit(main())
