"""The face filter on two cores against face_recognition on the full frame, one by one in one process.

    python tests/benchmarks/bench_faces.py [--every N] [--clips FOLDER] [--sheet FOLDER]

Every N-th frame of the clips is judged three ways, clip by clip in turn, so that other work on the machine slows all
of them alike: by ``face_recognition.face_locations``, by the filter's ``exact`` mode and by its ``fast`` mode, the
filter in two processes with half of a clip's frames each, as the engine runs shards. Models are loaded before the
clocks start; frames are decoded before, and read from memory-mapped files by all three. Printed: the ratios of wall
time, those of CPU time (a core; what holds on a busy machine, where two processes may get no more than one does),
whether ``exact`` ever disagrees, and every frame on which ``fast`` does; ``--sheet`` saves these as ``faces-fast.png``.
"""

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache, partial
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import av
import cv2
import numpy as np
from measured import row
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.contracts.kinds.samples import Drop, Frame, MediaFile  # noqa: E402
from twinset.filters.faces import Faces, FacesFilter  # noqa: E402

Mode = Literal["exact", "fast"]
WORKERS = 2
TILE = 320  # pixels, width of a frame on the sheet


def clips(folder: Path, every: int) -> Iterator[tuple[str, list[int], NDArray[np.uint8]]]:
    """Name, frame numbers and frames (n, height, width, 3) of each clip."""
    for path in sorted(folder.iterdir()):
        numbers, frames = [], []
        with av.open(path) as container:
            for number, frame in enumerate(container.decode(video=0)):
                if number % every == 0:
                    numbers.append(number)
                    frames.append(frame.to_ndarray(format="rgb24"))
        if frames:
            yield path.name, numbers, np.stack(frames)


@cache
def the_filter(mode: Mode) -> FacesFilter:
    return FacesFilter(Faces(kind="faces", mode=mode))


def naive(path: Path) -> tuple[list[bool], float]:
    """Verdicts, and CPU seconds spent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import face_recognition
    start = time.process_time()
    verdicts = [bool(face_recognition.face_locations(np.asarray(pixels))) for pixels in np.load(path, mmap_mode="r")]
    return verdicts, time.process_time() - start


def ours(path: Path, mode: Mode) -> tuple[list[bool], float]:
    """Verdicts, and CPU seconds spent."""
    start = time.process_time()
    frames = [Frame(str(n), pixels, 0.0, MediaFile("", 0, "")) for n, pixels in enumerate(np.load(path, mmap_mode="r"))]
    verdicts = [isinstance(verdict, Drop) for verdict in the_filter(mode)(frames)]
    return verdicts, time.process_time() - start


def in_one(pool: Executor, path: Path) -> tuple[list[bool], float]:
    return pool.submit(naive, path).result()


def in_shards(pool: Executor, shards: list[Path], mode: Mode) -> tuple[list[bool], float]:
    """Verdicts in frame order; shard n of m holds every m-th frame from n."""
    parts = list(pool.map(ours, shards, [mode] * len(shards)))
    rows = zip_longest(*(verdicts for verdicts, _ in parts))
    return [verdict for row in rows for verdict in row if verdict is not None], sum(cpu for _, cpu in parts)


def sheet(tiles: list[tuple[str, NDArray[np.uint8]]], path: Path) -> None:
    """A contact sheet of titled frames, four in a row."""
    cells = []
    for title, pixels in tiles:
        height = pixels.shape[0] * TILE // pixels.shape[1]
        cell = np.zeros((TILE, TILE, 3), np.uint8)
        cell[: min(height, TILE)] = cv2.resize(pixels, (TILE, height), interpolation=cv2.INTER_AREA)[:TILE, :, ::-1]
        cv2.putText(cell, title, (4, TILE - 6), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (255, 255, 255))
        cells.append(cell)
    cells += [np.zeros_like(cells[0])] * (-len(cells) % 4)
    cv2.imwrite(str(path), np.vstack([np.hstack(cells[row : row + 4]) for row in range(0, len(cells), 4)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=10, help="judge every N-th frame (default 10)")
    parser.add_argument("--clips", type=Path, default=ROOT.parent / "shared" / "data" / "videos")
    parser.add_argument("--sheet", type=Path, help="folder for a picture of the frames on which fast disagrees")
    options = parser.parse_args()
    if not options.clips.is_dir():
        sys.exit(f"{options.clips} is not there; name a folder of clips with --clips")
    spawn = get_context("spawn")
    seconds, cpu = defaultdict[str, float](float), defaultdict[str, float](float)
    frames = faces = wrong = 0
    rows: list[str] = []
    tiles: list[tuple[str, NDArray[np.uint8]]] = []
    with (
        ProcessPoolExecutor(1, spawn) as alone,
        ProcessPoolExecutor(WORKERS, spawn) as pool,
        TemporaryDirectory() as scratch,
    ):
        for clip, (name, numbers, stack) in enumerate(clips(options.clips, options.every)):
            whole, shards = Path(scratch, "whole.npy"), [Path(scratch, f"{n}.npy") for n in range(WORKERS)]
            np.save(whole, stack)
            for n, shard in enumerate(shards):
                np.save(shard, stack[n::WORKERS])
            runs: dict[str, Callable[[], tuple[list[bool], float]]] = {
                "naive": partial(in_one, alone, whole),
                "exact": partial(in_shards, pool, shards, "exact"),
                "fast": partial(in_shards, pool, shards, "fast"),
            }
            if clip == 0:  # loads every model once
                for run in runs.values():
                    run()
            found = {}
            for way, run in runs.items():
                start = time.perf_counter()
                found[way], spent = run()
                seconds[way] += time.perf_counter() - start
                cpu[way] += spent
            frames, faces = frames + len(numbers), faces + sum(found["naive"])
            other = sum(a != b for a, b in zip(found["naive"], found["exact"], strict=True))
            wrong += other
            print(f"{name}: {len(numbers)} frames, exact disagrees on {other}", file=sys.stderr, flush=True)
            for number, pixels, theirs, fast in zip(numbers, stack, found["naive"], found["fast"], strict=True):
                if theirs != fast:
                    rows.append(f"{name:<42} {number:>6}  {yes(theirs):<16}  {yes(fast)}")
                    tiles.append((f"{name[:24]} {number}: {yes(theirs)}, fast {yes(fast)}", pixels))
    print(f"{frames} frames, {faces} with a face ({WORKERS} processes against 1)")
    print(f"face_recognition {seconds['naive']:7.1f} s  {frames / seconds['naive']:6.1f} frames/s")
    for way, disagree in (("exact", wrong), ("fast", len(rows))):
        speed, a_core = seconds["naive"] / seconds[way], cpu["naive"] / cpu[way]
        print(
            f"{way:<16} {seconds[way]:7.1f} s  {frames / seconds[way]:6.1f} frames/s  {speed:.2f} x "
            f"({a_core:.2f} x a core)  agreement {1 - disagree / frames:.2%}"
        )
    row(
        f"face filter on {frames} frames of real clips, {WORKERS} processes",
        "`face_recognition` frame by frame, one process",
        [seconds["naive"] / seconds["exact"]],
        f"{wrong} other verdicts; `fast` {seconds['naive'] / seconds['fast']:.1f} × with {len(rows)} others",
    )
    print(f"exact disagrees on {wrong} frames, fast on {len(rows)}:")
    if rows:
        print(f"{'clip':<42} {'frame':>6}  face_recognition  fast", *rows, sep="\n")
    if options.sheet and tiles:
        options.sheet.mkdir(parents=True, exist_ok=True)
        sheet(tiles, options.sheet / "faces-fast.png")
        print(f"shown in {options.sheet / 'faces-fast.png'}")


def yes(face: bool) -> str:
    return "face" if face else "none"


if __name__ == "__main__":
    main()
