"""Writing a shard with sha256 and fsync against plain ``tar`` of the same bytes followed by fsync: goal >= 0.9 as fast.

    python tests/benchmarks/bench_tar.py [--megabytes N] [--runs N] [--folder DIR]

Members have the sizes of JPEG frames and captions. The members are in the page cache for both: `tar` reads them from
files, TarWriter gets them from memory as it does in a build. Runs alternate, so that other work on the machine slows
both alike; the medians are compared. ``--folder`` is where the tars are written (default: the temporary folder).
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measured import row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.shards.storage.store import Store  # noqa: E402
from twinset.shards.storage.tar_reader import TarWriter  # noqa: E402

GOAL = 0.9
Members = list[tuple[str, bytes]]


def members(megabytes: int) -> Members:
    """Pairs of pictures of 30 to 300 kB with captions and JSON, as many as fill so many MB."""
    drawn, found, size = random.Random(0), [], 0
    while size < megabytes << 20:
        key = f"eq-x-{len(found):016d}"
        for field, low, high in (
            ("image0.jpg", 30_000, 300_000),
            ("image1.jpg", 30_000, 300_000),
            ("caption0.txt", 30, 90),
            ("caption1.txt", 30, 90),
            ("json", 700, 1500),
        ):
            content = drawn.randbytes(drawn.randint(low, high))
            found.append((f"{key}.{field}", content))
            size += len(content)
    return found


def with_twinset(content: Members, folder: Path, check: bool) -> float:
    """Seconds to write, hash and fsync a shard and move it to its place. check: whether to hash the file again."""
    store, began = Store(str(folder / "out")), time.perf_counter()
    with store.spool() as spool:
        with TarWriter(spool / "tar") as tar:
            for name, field in content:
                tar.add(name, field)
        store.move_in(spool / "tar", "twinset.tar")
    took = time.perf_counter() - began
    if check and store.sha256("twinset.tar") != (tar.sha256, tar.size):
        sys.exit("the sha256 of the written tar is not that of its bytes")
    store.remove("twinset.tar")
    return took


def with_tar(names: Path, source: Path, folder: Path) -> float:
    """Seconds of GNU tar in USTAR format, with names in the same order, and of the fsync of its file."""
    target, began = folder / "plain.tar", time.perf_counter()
    command = [
        "tar",
        "--format=ustar",
        "-C",
        str(source),
        "-cf",
        str(target),
        "--verbatim-files-from",
        "-T",
        str(names),
    ]
    subprocess.run(command, check=True, timeout=600)
    with target.open("rb+") as stream:
        os.fsync(stream.fileno())
    took = time.perf_counter() - began
    target.unlink()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if shutil.which("tar") is None:
        sys.exit("GNU tar is not installed")
    content = members(asked.megabytes)
    with TemporaryDirectory(dir=asked.folder) as temporary:
        folder = Path(temporary)
        source, names = folder / "members", folder / "names"
        source.mkdir()
        for name, field in content:
            (source / name).write_bytes(field)
        names.write_text("".join(f"{name}\n" for name, _ in content))
        os.sync()
        seconds: dict[str, list[float]] = {"tar": [], "twinset": []}
        for run in range(asked.runs + 1):
            # Who comes second finds another state of memory and disk: each goes first in every other run.
            for name in sorted(seconds, reverse=run % 2 == 1):
                took = with_tar(names, source, folder) if name == "tar" else with_twinset(content, folder, not run)
                if run:  # the first run of each only warms the page cache
                    seconds[name].append(took)
            print(f"run {run}: " + ", ".join(f"{name} {took[-1]:.2f} s" for name, took in seconds.items() if took))
    ratio = statistics.median(seconds["tar"]) / statistics.median(seconds["twinset"])
    row(
        f"{asked.megabytes} MB shard with sha256 and fsync",
        "GNU tar and fsync",
        [one / two for one, two in zip(seconds["tar"], seconds["twinset"], strict=True)],
        f"goal ≥ {GOAL}",
    )
    print(f"{asked.megabytes} MB: {ratio:.2f} of plain tar's throughput; the goal is {GOAL}")


if __name__ == "__main__":
    main()
