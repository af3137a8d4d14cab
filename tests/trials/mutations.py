"""Mutated inputs: ``python -m tests.trials.mutations --cases 10000 --seed N [--kind K] [--case N] [--keep DIR]``.

A case takes valid small inputs of one kind, changes one file (`tests.trials.mutators`), and calls what reads it. It
must end well or in one of twinset's own errors, within 20 s and 2 GB. Everything about a case follows from seed and
number, so that ``--case N`` repeats it. Cases run in processes that live on; one that dies or hangs is a finding, and
is replaced.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.trials.mutation_workers import ENDED, FINDING, REFUSED, SLOW, Case, Worker


def kind_of(number: int) -> str:
    """The kind of a case: by turns, as often as the kind's weight says."""
    from tests.trials.mutated_kinds import KINDS

    turns = [
        kind.name
        for at in range(max(kind.weight for kind in KINDS.values()))
        for kind in KINDS.values()
        if at < kind.weight
    ]
    return turns[number % len(turns)]


def run(
    numbers: Sequence[int], seed: int, processes: int = 2, keep: Path | None = None, minutes: float = 1e9
) -> list[Case]:
    """Run cases by number, those of a kind in one process; what did not begin in time is left out."""
    from tests.trials.mutated_kinds import KINDS

    by_kind = defaultdict[str, list[int]](list)
    for number in numbers:
        by_kind[kind_of(number)].append(number)
    waiting = sorted(by_kind.items(), key=lambda item: (KINDS[item[0]].torch, -len(item[1])))
    cases, lock, ends = list[Case](), threading.Lock(), time.monotonic() + 60 * minutes
    folder = keep or Path(tempfile.mkdtemp(prefix="mutations-"))
    (folder / "home").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TWINSET_CACHE", str(Path.home() / ".cache" / "twinset"))

    def work(place: int) -> None:
        worker: Worker | None = None
        while True:
            with lock:
                if not waiting or time.monotonic() > ends:
                    break
                name, asked = waiting.pop(place)
            if worker is None or worker.torch != KINDS[name].torch:
                if worker is not None:
                    worker.end()
                worker = Worker(folder, seed, KINDS[name].torch)
            made = worker.run(Case(-1, name))
            if made.outcome != ENDED:
                with lock:
                    cases.append(made)
                continue
            for number in asked:
                if time.monotonic() > ends:
                    break
                found = worker.run(Case(number, name))
                if found.outcome == FINDING and SLOW in found.detail:  # the neighbours' work may have slowed it
                    found = worker.run(Case(number, name))
                with lock:
                    cases.append(found)
                    if found.outcome == FINDING:
                        _show(found)
        if worker is not None:
            worker.end()

    # The second begins at the end, with what needs torch: in little time both sorts have their turn.
    threads = [threading.Thread(target=work, args=(-(number % 2),)) for number in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return cases


def _show(case: Case) -> None:
    print(f"case {case.number} [{case.kind}, {case.act}] {case.mutation}\n    {case.detail[-600:]}", flush=True)


def main() -> int:
    """Run the cases that the command line asks for; exit code 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="cases of kinds of this name only; as of files, such as 'model: *'")
    parser.add_argument("--case", type=int, help="this one case, with all that it says")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep inputs there; the last case lies in scratch-PID")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no case later")
    asked = parser.parse_args()
    numbers = range(asked.cases)
    if asked.case is not None:
        numbers = range(asked.case, asked.case + 1)
    elif asked.kind is not None:
        own = (number for number in range(1 << 30) if fnmatch(kind_of(number), asked.kind))
        numbers = [next(own) for _ in range(asked.cases)]  # type: ignore[assignment]
    began = time.monotonic()
    cases = run(numbers, asked.seed, asked.processes, asked.keep, asked.minutes)
    if asked.case is not None:
        for case in cases:
            print(case.outcome)
            _show(case)
    counts = defaultdict[str, Counter[str]](Counter)
    for case in cases:
        if case.number >= 0:
            counts[case.kind][case.outcome] += 1
        elif case.outcome == FINDING:
            counts[case.kind][FINDING] += 1
            _show(case)
    print(f"{'kind':32} {'cases':>6} {ENDED:>11} {REFUSED:>8} findings  slowest")
    for kind, found in sorted(counts.items()):
        slowest = max(case.seconds for case in cases if case.kind == kind)
        print(f"{kind:32} {found.total():6} {found[ENDED]:11} {found[REFUSED]:8} {found[FINDING]:8} {slowest:7.2f} s")
    total = sum(counts.values(), Counter[str]())
    print(
        f"{total.total()} of {len(numbers)} cases of seed {asked.seed}, {time.monotonic() - began:.0f} s: {dict(total)}"
    )
    return 1 if total[FINDING] else 0


if __name__ == "__main__":
    sys.exit(main())
