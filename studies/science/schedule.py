"""Carries out runs in processes of one thread each, as many at a time as there are cores."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from statistics import fmean

from studies.science.runs import Run, Study
from twinset.contracts.errors import BuildFailed, TwinsetError

#: Called with a line of progress.
Tell = Callable[[str], None]


def carry_out(
    study: Study, runs: Sequence[Run], do: Callable[[Study, Run], None], workers: int, tell: Tell, more: int = 0
) -> None:
    """Carry out the runs that are not done yet; they must not depend on each other.

    Args:
        do: carries out one run in a process of its own, and records it with `Study.record`.
        workers: processes.
        more: runs that come after these, for the time left.

    Raises:
        BuildFailed: a run failed or its process was ended. What is finished stays; the same command resumes.
    """
    left = [run for run in runs if study.done(run) is None]
    finished, seconds, running = len(runs) - len(left), list[float](), dict[Future[None], tuple[Run, float]]()
    if finished and left:
        tell(f"{finished} of {len(runs)} runs are done already")
    spawning = multiprocessing.get_context("spawn")  # torch does not survive a fork
    executor = ProcessPoolExecutor(max(1, min(workers, len(left))), spawning, _start, (os.getpid(),))
    try:
        while left or running:
            while left and len(running) < workers:
                run = left.pop(0)
                running[executor.submit(do, study, run)] = (run, time.monotonic())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                run, began = running.pop(future)
                try:
                    future.result()
                except BrokenProcessPool as error:
                    raise BuildFailed(
                        f"{study.folder(run)}: its process was ended from outside; the same command resumes, and "
                        "--workers 1 needs less memory"
                    ) from error
                except TwinsetError as error:
                    raise BuildFailed(f"{study.folder(run)}: {error}") from error
                finished += 1
                seconds.append(time.monotonic() - began)
                minutes = fmean(seconds) * (len(runs) - finished + more) / workers / 60
                tell(f"[{finished:3} of {len(runs)}] {run.name}: {seconds[-1]:.0f} s, {minutes:.0f} min left")
    except BaseException:
        # What runs is not waited for: it would be minutes, and it resumes.
        for process in list((executor._processes or {}).values()):
            process.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _start(parent: int) -> None:
    """Prepare a process: one thread, and no life of its own, so that nobody writes into a study that is run again."""
    import torch

    torch.set_num_threads(1)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
